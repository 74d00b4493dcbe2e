"""RemoveRaftVoter (81): remove a voter from the metadata quorum."""

from protocol.primitives import INT16, INT32, STRING, UUID
from protocol.schema import Message, wire
from protocol.uuids import ZERO_UUID


class RemoveRaftVoterRequest(Message, api_key=81, versions="0", flexible="0+"):
    cluster_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    voter_id: int = wire(INT32, "0+", default=0)
    voter_directory_id: bytes = wire(UUID, "0+", default=ZERO_UUID)


class RemoveRaftVoterResponse(Message, api_key=81, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+", ignorable=True)
