"""FindCoordinator (10): which broker looks after a group, a transaction or a share partition."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible="3+"):
    key: str = wire(STRING, "0-3", default="")
    key_type: int = wire(INT8, "1+", default=0)
    coordinator_keys: list[str] = wire(Array(STRING), "4+", factory=list)


class Coordinator(Struct):
    key: str = wire(STRING, "4+", default="")
    node_id: int = wire(INT32, "4+", default=0)
    host: str = wire(STRING, "4+", default="")
    port: int = wire(INT32, "4+", default=0)
    error_code: int = wire(INT16, "4+", default=0)
    error_message: str | None = wire(STRING, "4+", default="", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    error_code: int = wire(INT16, "0-3", default=0)
    error_message: str | None = wire(STRING, "1-3", default="", nullable="1-3", ignorable=True)
    node_id: int = wire(INT32, "0-3", default=0)
    host: str = wire(STRING, "0-3", default="")
    port: int = wire(INT32, "0-3", default=0)
    coordinators: list[Coordinator] = wire(Array(Coordinator), "4+", factory=list)
