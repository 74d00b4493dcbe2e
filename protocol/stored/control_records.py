"""Keys and values of control records: transaction markers, and KRaft's notes in its own log."""

from protocol.primitives import INT16, INT32, INT64, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class ControlRecordTypeSchema(Message, versions="0", flexible="none"):
    type: int = wire(INT16, "0+", default=0)


class EndTxnMarker(Message, versions="0", flexible="none"):
    coordinator_epoch: int = wire(INT32, "0+", default=0)


class LeaderChangeMessageVoter(Struct):
    voter_id: int = wire(INT32, "0+", default=0)
    voter_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID)


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = wire(INT16, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    voters: list[LeaderChangeMessageVoter] = wire(Array(LeaderChangeMessageVoter), "0+", factory=list)
    granting_voters: list[LeaderChangeMessageVoter] = wire(
        Array(LeaderChangeMessageVoter), "0+", factory=list
    )


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = wire(INT16, "0+", default=0)
    last_contained_log_timestamp: int = wire(INT64, "0+", default=0)


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = wire(INT16, "0+", default=0)


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int = wire(INT16, "0+", default=0)
    kraft_version: int = wire(INT16, "0+", default=0)


class Endpoint(Struct):
    name: str = wire(STRING, "0+", default="")
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)


class KRaftVersionFeature(Struct):
    min_supported_version: int = wire(INT16, "0+", default=0)
    max_supported_version: int = wire(INT16, "0+", default=0)


class VotersVoter(Struct):
    voter_id: int = wire(INT32, "0+", default=0)
    voter_directory_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    endpoints: list[Endpoint] = wire(Array(Endpoint), "0+", factory=list)
    kraft_version_feature: KRaftVersionFeature = wire(KRaftVersionFeature, "0+", factory=KRaftVersionFeature)


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = wire(INT16, "0+", default=0)
    voters: list[VotersVoter] = wire(Array(VotersVoter), "0+", factory=list)
