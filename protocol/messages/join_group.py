"""JoinGroup (11): become, or stay, a member of a classic group."""

from protocol.primitives import BOOL, BYTES, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class JoinGroupRequestProtocol(Struct):
    name: str = wire(STRING, "0+", default="")
    metadata: bytes = wire(BYTES, "0+", default=b"")


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    group_id: str = wire(STRING, "0+", default="")
    session_timeout_ms: int = wire(INT32, "0+", default=0)
    rebalance_timeout_ms: int = wire(INT32, "1+", default=-1, ignorable=True)
    member_id: str = wire(STRING, "0+", default="")
    group_instance_id: str | None = wire(STRING, "5+", default=None, nullable="5+")
    protocol_type: str = wire(STRING, "0+", default="")
    protocols: list[JoinGroupRequestProtocol] = wire(Array(JoinGroupRequestProtocol), "0+", factory=list)
    reason: str | None = wire(STRING, "8+", default=None, nullable="8+", ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = wire(STRING, "0+", default="")
    group_instance_id: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)
    metadata: bytes = wire(BYTES, "0+", default=b"")


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = wire(INT32, "2+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    generation_id: int = wire(INT32, "0+", default=-1)
    protocol_type: str | None = wire(STRING, "7+", default=None, nullable="7+", ignorable=True)
    protocol_name: str | None = wire(STRING, "0+", default="", nullable="7+")
    leader: str = wire(STRING, "0+", default="")
    skip_assignment: bool = wire(BOOL, "9+", default=False)
    member_id: str = wire(STRING, "0+", default="")
    members: list[JoinGroupResponseMember] = wire(Array(JoinGroupResponseMember), "0+", factory=list)
