"""LeaveGroup (13): members leave a classic group, or are removed from it."""

from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.requests import Leaving, Left
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


def handle(request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse | Waiting[LeaveGroupResponse]:
    speaks_for_many = call.version >= 3  # KIP-345
    if speaks_for_many:
        leaving = [Leaving(member.member_id, member.group_instance_id) for member in request.members]
    else:
        leaving = [Leaving(request.member_id, None)]
    ticket = commands.leave(call.services.groups, request.group_id, leaving)
    return answer_of(ticket, lambda left: answer(left, leaving) if speaks_for_many else answer_one(left))


def answer(left: Left, leaving: list[Leaving]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=left.error,
        members=[
            MemberResponse(member_id=who.member_id, group_instance_id=who.instance_id, error_code=code)
            for who, code in zip(leaving, left.codes, strict=False)  # no codes at all beside an error
        ],
    )


def answer_one(left: Left) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=left.codes[0] if left.error is ErrorCode.NONE else left.error)
