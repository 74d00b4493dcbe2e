"""JoinGroup (11): become, or stay, a member of a classic group."""

from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.client_host import java_address
from broker.groups.requests import NO_MEMBER_ID, Joined, Joining
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember


def handle(request: JoinGroupRequest, call: Call) -> JoinGroupResponse | Waiting[JoinGroupResponse]:
    """The answer waits for the other members."""
    client_id = call.client_id or ""
    is_new = request.member_id == NO_MEMBER_ID
    must_rejoin_with_id = call.version >= 4 and is_new and request.group_instance_id is None  # KIP-394
    names = [protocol.name for protocol in request.protocols]
    if len(set(names)) < len(names) and not must_rejoin_with_id:  # which Kafka never answers
        return answer(Joined(NO_MEMBER_ID, ErrorCode.INVALID_REQUEST), call.version)
    joining = Joining(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=java_address(call.peer.host),
        session_timeout_ms=request.session_timeout_ms,
        # Version 0 does not tell them apart.
        rebalance_timeout_ms=(
            request.session_timeout_ms if call.version == 0 else request.rebalance_timeout_ms
        ),
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        new_member_id=(
            call.services.identifiers.member_id(
                client_id if request.group_instance_id is None else request.group_instance_id
            )
            if is_new
            else NO_MEMBER_ID
        ),
        new_consumer_id=call.services.identifiers.uuid_text() if is_new else NO_MEMBER_ID,
        must_rejoin_with_id=must_rejoin_with_id,
        can_skip_assignment=call.version >= 9,  # KIP-814
    )
    ticket = commands.join(call.services.groups, request.group_id, joining)
    return answer_of(ticket, lambda joined: answer(joined, call.version), droppable=True)


def answer(joined: Joined, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        # Null can only be said since KIP-559.
        protocol_name="" if joined.protocol_name is None and version < 7 else joined.protocol_name,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in joined.members
        ],
    )
