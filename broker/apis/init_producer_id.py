"""InitProducerId (22): get an identity for an idempotent producer."""

from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
"""In the place of a producer id or epoch: the producer has none yet."""


def handle(
    request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse | Waiting[InitProducerIdResponse]:
    """A producer without transactions gets a new id and epoch 0, whatever id and epoch it had before."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return answer(KafkaError(ErrorCode.INVALID_REQUEST))
    if request.transactional_id == "":
        return answer(KafkaError(ErrorCode.INVALID_REQUEST))
    if request.transactional_id is not None:  # see FindCoordinator, which such a producer asks first
        return answer(KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    producer_ids = call.services.producer_ids
    producer_id = producer_ids.take()
    if producer_id is not None:
        return answer(producer_id)
    waiting: Waiting[InitProducerIdResponse] = Waiting()
    producer_ids.request(lambda given: waiting.answer(answer(given)))
    return waiting


def answer(given: int | KafkaError) -> InitProducerIdResponse:
    if isinstance(given, KafkaError):
        return InitProducerIdResponse(error_code=given.code, producer_epoch=NONE)
    return InitProducerIdResponse(producer_id=given, producer_epoch=0)
