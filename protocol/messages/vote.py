"""Vote (52): a candidate asks a voter of the metadata quorum for its vote."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class VoteRequestPartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    replica_epoch: int = wire(INT32, "0+", default=0)
    replica_id: int = wire(INT32, "0+", default=0)
    replica_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID, ignorable=True)
    voter_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID, ignorable=True)
    last_offset_epoch: int = wire(INT32, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    pre_vote: bool = wire(BOOL, "2+", default=False)


class VoteRequestTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[VoteRequestPartitionData] = wire(Array(VoteRequestPartitionData), "0+", factory=list)


class VoteRequest(Message, api_key=52, versions="0-2", flexible="0+"):
    cluster_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    voter_id: int = wire(INT32, "1+", default=-1, ignorable=True)
    topics: list[VoteRequestTopicData] = wire(Array(VoteRequestTopicData), "0+", factory=list)


class VoteResponsePartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    vote_granted: bool = wire(BOOL, "0+", default=False)


class VoteResponseTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[VoteResponsePartitionData] = wire(Array(VoteResponsePartitionData), "0+", factory=list)


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "1+", default=0)
    host: str = wire(STRING, "1+", default="")
    port: int = wire(UINT16, "1+", default=0)


class VoteResponse(Message, api_key=52, versions="0-2", flexible="0+"):
    error_code: int = wire(INT16, "0+", default=0)
    topics: list[VoteResponseTopicData] = wire(Array(VoteResponseTopicData), "0+", factory=list)
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "1+", factory=list, tag=0, tagged="1+")
