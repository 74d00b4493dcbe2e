"""SyncGroup (14): the leader of a classic group hands out the assignment, and members receive theirs."""

from protocol.primitives import BYTES, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class SyncGroupRequestAssignment(Struct):
    member_id: str = wire(STRING, "0+", default="")
    assignment: bytes = wire(BYTES, "0+", default=b"")


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+"):
    group_id: str = wire(STRING, "0+", default="")
    generation_id: int = wire(INT32, "0+", default=0)
    member_id: str = wire(STRING, "0+", default="")
    group_instance_id: str | None = wire(STRING, "3+", default=None, nullable="3+")
    protocol_type: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = wire(
        Array(SyncGroupRequestAssignment), "0+", factory=list
    )


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    protocol_type: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)
    assignment: bytes = wire(BYTES, "0+", default=b"")
