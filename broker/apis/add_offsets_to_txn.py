"""AddOffsetsToTxn (25): announce that a transaction commits offsets of a group."""

from broker.coordination.tickets import answer_of
from broker.metadata.topic_names import GROUP_OFFSETS
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.transactions import commands
from broker.transactions.requests import Identity
from protocol.error_codes import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

PRODUCER_FENCED_VERSION = 2  # KIP-588


def handle(
    request: AddOffsetsToTxnRequest, call: Call
) -> AddOffsetsToTxnResponse | Waiting[AddOffsetsToTxnResponse]:
    """The partition that keeps the group becomes part of the transaction."""
    services = call.services
    ticket = commands.add_partitions(
        services.transactions,
        request.transactional_id,
        Identity(request.producer_id, request.producer_epoch),
        [(GROUP_OFFSETS, services.groups.partition_for(request.group_id))],
    )

    def told(code: ErrorCode) -> AddOffsetsToTxnResponse:
        if code is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_VERSION:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)

    return answer_of(ticket, told)
