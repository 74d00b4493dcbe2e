"""LeaveGroup (13): members give up their place in a classic group."""

from protocol.primitives import INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class MemberIdentity(Struct):
    member_id: str = wire(STRING, "3+", default="")
    group_instance_id: str | None = wire(STRING, "3+", default=None, nullable="3+")
    reason: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+"):
    group_id: str = wire(STRING, "0+", default="")
    member_id: str = wire(STRING, "0-2", default="")
    members: list[MemberIdentity] = wire(Array(MemberIdentity), "3+", factory=list)


class MemberResponse(Struct):
    member_id: str = wire(STRING, "3+", default="")
    group_instance_id: str | None = wire(STRING, "3+", default="", nullable="3+")
    error_code: int = wire(INT16, "3+", default=0)


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    members: list[MemberResponse] = wire(Array(MemberResponse), "3+", factory=list)
