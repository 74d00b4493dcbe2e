"""SyncGroup (14): hand out the leader's assignment, and take one's own."""

from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.requests import Synced, Syncing
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def handle(request: SyncGroupRequest, call: Call) -> SyncGroupResponse | Waiting[SyncGroupResponse]:
    """The answer waits for the leader's request."""
    must_name_protocol = call.version >= 5  # KIP-559
    if must_name_protocol and (request.protocol_type is None or request.protocol_name is None):
        return answer(Synced(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    syncing = Syncing(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={assigned.member_id: assigned.assignment for assigned in request.assignments},
    )
    return answer_of(commands.sync(call.services.groups, request.group_id, syncing), answer, droppable=True)


def answer(synced: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=synced.error,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )
