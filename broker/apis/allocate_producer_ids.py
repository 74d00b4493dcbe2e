"""AllocateProducerIds (67): a block of producer ids for a broker (KIP-730)."""

from broker.controller.decision import Decision
from broker.controller.producer_ids import ProducerIdBlock, allocate_producer_ids
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.errors import KafkaError
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(
    request: AllocateProducerIdsRequest, call: Call
) -> AllocateProducerIdsResponse | Waiting[AllocateProducerIdsResponse]:
    def command(image: MetadataImage) -> Decision[ProducerIdBlock]:
        return allocate_producer_ids(image, request.broker_id, request.broker_epoch)

    def build(outcome: ProducerIdBlock | KafkaError) -> AllocateProducerIdsResponse:
        if isinstance(outcome, KafkaError):
            return AllocateProducerIdsResponse(error_code=outcome.code)
        return AllocateProducerIdsResponse(producer_id_start=outcome.first, producer_id_len=outcome.size)

    return call.services.controller.answer(command, build, timeout_ms=None)
