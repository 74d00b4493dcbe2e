"""EndTxn (26): commit or abort a transaction."""

from broker.coordination.tickets import answer_of
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.transactions import commands
from broker.transactions.requests import Ending, Identified, Identity
from protocol.error_codes import ErrorCode
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

PRODUCER_FENCED_VERSION = 2  # KIP-588
EPOCH_BUMP_VERSION = 5  # KIP-890


def handle(request: EndTxnRequest, call: Call) -> EndTxnResponse | Waiting[EndTxnResponse]:
    """The outcome is certain when the answer comes; readers see it a moment later."""
    ending = Ending(
        Identity(request.producer_id, request.producer_epoch),
        request.committed,
        bumps_epoch=call.version >= EPOCH_BUMP_VERSION,
    )
    ticket = commands.end(call.services.transactions, request.transactional_id, ending)

    def told(ended: Identified) -> EndTxnResponse:
        error = ended.error
        if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_VERSION:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(
            error_code=error, producer_id=ended.producer_id, producer_epoch=ended.producer_epoch
        )

    return answer_of(ticket, told)
