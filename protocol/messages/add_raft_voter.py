"""AddRaftVoter (80): add a voter to the metadata quorum."""

from protocol.primitives import BOOL, INT16, INT32, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class Listener(Struct):
    name: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", flexible="0+"):
    cluster_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    timeout_ms: int = wire(INT32, "0+", default=0)
    voter_id: int = wire(INT32, "0+", default=0)
    voter_directory_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    listeners: list[Listener] = wire(Array(Listener), "0+", factory=list)
    ack_when_committed: bool = wire(BOOL, "1+", default=True)


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+", ignorable=True)
