"""InitProducerId (22): get an identity for an idempotent or transactional producer."""

from broker.coordination.tickets import answer_of
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
"""In the place of a producer id or epoch: the producer has none yet."""

PRODUCER_FENCED_VERSION = 4  # KIP-588


def handle(
    request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse | Waiting[InitProducerIdResponse]:
    """A producer without transactions gets a new id and epoch 0, whatever id and epoch it had before."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return answer(KafkaError(ErrorCode.INVALID_REQUEST))
    if request.transactional_id == "":
        return answer(KafkaError(ErrorCode.INVALID_REQUEST))
    if request.transactional_id is not None:
        return initialize(request, request.transactional_id, call)
    producer_ids = call.services.producer_ids
    producer_id = producer_ids.take()
    if producer_id is not None:
        return answer(producer_id)
    waiting: Waiting[InitProducerIdResponse] = Waiting()
    producer_ids.request(lambda given: waiting.answer(answer(given)))
    return waiting


def initialize(
    request: InitProducerIdRequest, transactional_id: str, call: Call
) -> InitProducerIdResponse | Waiting[InitProducerIdResponse]:
    """The next epoch of a transactional id; whatever is still open in its name is aborted."""
    from broker.transactions import commands
    from broker.transactions.requests import Identified, Identity, Initializing

    known: Identity | None = None
    if request.producer_id != NONE:
        known = Identity(request.producer_id, request.producer_epoch)
    asked = Initializing(
        request.transaction_timeout_ms,
        known,
        two_phase_commit=request.enable2_pc,
        keeps_prepared=request.keep_prepared_txn,
    )
    ticket = commands.initialize(call.services.transactions, transactional_id, asked)

    def told(identified: Identified) -> InitProducerIdResponse:
        error = identified.error
        if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_VERSION:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(
            error_code=error,
            producer_id=identified.producer_id,
            producer_epoch=identified.producer_epoch,
        )

    return answer_of(ticket, told)


def answer(given: int | KafkaError) -> InitProducerIdResponse:
    if isinstance(given, KafkaError):
        return InitProducerIdResponse(error_code=given.code, producer_epoch=NONE)
    return InitProducerIdResponse(producer_id=given, producer_epoch=0)
