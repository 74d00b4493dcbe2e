"""UnregisterController (94): forget a controller that is gone for good."""

from typing import Final

from broker.controller.brokers import unregister_controller
from broker.controller.decision import Decision
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.errors import KafkaError
from protocol.messages.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)

TIMEOUT_MS: Final = 60_000


def handle(
    request: UnregisterControllerRequest, call: Call
) -> UnregisterControllerResponse | Waiting[UnregisterControllerResponse]:
    services = call.services

    def command(image: MetadataImage) -> Decision[None]:
        return unregister_controller(image, request.controller_id, active_id=services.node_id)

    def build(outcome: KafkaError | None) -> UnregisterControllerResponse:
        if outcome is None:
            return UnregisterControllerResponse()
        return UnregisterControllerResponse(error_code=outcome.code, error_message=outcome.message)

    return services.controller.answer(command, build, timeout_ms=TIMEOUT_MS)
