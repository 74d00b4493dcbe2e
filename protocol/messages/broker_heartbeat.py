"""BrokerHeartbeat (63): a broker stays in the cluster, or asks to leave it."""

from protocol.primitives import BOOL, INT16, INT32, INT64, UUID, Array
from protocol.schema import Message, wire


class BrokerHeartbeatRequest(Message, api_key=63, versions="0-2", flexible="0+"):
    broker_id: int = wire(INT32, "0+", default=0)
    broker_epoch: int = wire(INT64, "0+", default=-1)
    current_metadata_offset: int = wire(INT64, "0+", default=0)
    want_fence: bool = wire(BOOL, "0+", default=False)
    want_shut_down: bool = wire(BOOL, "0+", default=False)
    offline_log_dirs: list[bytes] = wire(Array(UUID), "1+", factory=list, tag=0, tagged="1+")
    cordoned_log_dirs: list[bytes] | None = wire(
        Array(UUID), "2+", default=None, nullable="2+", tag=1, tagged="2+"
    )


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    is_caught_up: bool = wire(BOOL, "0+", default=False)
    is_fenced: bool = wire(BOOL, "0+", default=True)
    should_shut_down: bool = wire(BOOL, "0+", default=False)
