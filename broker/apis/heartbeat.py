"""Heartbeat (12): a member of a classic group says that it is alive, and learns of a rebalance."""

from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse | Waiting[HeartbeatResponse]:
    ticket = commands.heartbeat(
        call.services.groups,
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
    )
    return answer_of(ticket, answer)


def answer(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)
