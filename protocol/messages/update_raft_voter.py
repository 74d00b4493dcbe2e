"""UpdateRaftVoter (82): a voter of the metadata quorum tells its endpoints and versions."""

from protocol.primitives import INT16, INT32, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class Listener(Struct):
    name: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)


class KRaftVersionFeature(Struct):
    min_supported_version: int = wire(INT16, "0+", default=0)
    max_supported_version: int = wire(INT16, "0+", default=0)


class UpdateRaftVoterRequest(Message, api_key=82, versions="0", flexible="0+"):
    cluster_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    current_leader_epoch: int = wire(INT32, "0+", default=0)
    voter_id: int = wire(INT32, "0+", default=0)
    voter_directory_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    listeners: list[Listener] = wire(Array(Listener), "0+", factory=list)
    kraft_version_feature: KRaftVersionFeature = wire(KRaftVersionFeature, "0+", factory=KRaftVersionFeature)


class CurrentLeader(Struct):
    leader_id: int = wire(INT32, "0+", default=-1)
    leader_epoch: int = wire(INT32, "0+", default=-1)
    host: str = wire(STRING, "0+", default="")
    port: int = wire(INT32, "0+", default=0)


class UpdateRaftVoterResponse(Message, api_key=82, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    current_leader: CurrentLeader = wire(CurrentLeader, "0+", factory=CurrentLeader, tag=0, tagged="0+")
