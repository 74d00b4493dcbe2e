"""Heartbeat (12): a member of a classic group says that it is alive."""

from protocol.primitives import INT16, INT32, STRING
from protocol.schema import Message, wire


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
    group_id: str = wire(STRING, "0+", default="")
    generation_id: int = wire(INT32, "0+", default=0)
    member_id: str = wire(STRING, "0+", default="")
    group_instance_id: str | None = wire(STRING, "3+", default=None, nullable="3+")


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
