"""UnregisterBroker (64): forget a broker that is gone for good (KIP-500)."""

from typing import Final

from broker.controller.brokers import unregister_broker
from broker.controller.decision import Decision
from broker.controller.start import topic_rules
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.errors import KafkaError
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

TIMEOUT_MS: Final = 60_000


def handle(
    request: UnregisterBrokerRequest, call: Call
) -> UnregisterBrokerResponse | Waiting[UnregisterBrokerResponse]:
    services = call.services

    def command(image: MetadataImage) -> Decision[None]:
        return unregister_broker(image, request.broker_id, topic_rules(services, image))

    def build(outcome: KafkaError | None) -> UnregisterBrokerResponse:
        if outcome is None:
            return UnregisterBrokerResponse()
        return UnregisterBrokerResponse(error_code=outcome.code, error_message=outcome.message)

    return services.controller.answer(command, build, timeout_ms=TIMEOUT_MS)
