"""EndQuorumEpoch (54): a leader of the metadata quorum resigns."""

from protocol.primitives import INT16, INT32, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class ReplicaInfo(Struct):
    candidate_id: int = wire(INT32, "1+", default=0)
    candidate_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID)


class EndQuorumEpochRequestPartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    preferred_successors: list[int] = wire(Array(INT32), "0", factory=list, ignorable=True)
    preferred_candidates: list[ReplicaInfo] = wire(Array(ReplicaInfo), "1+", factory=list, ignorable=True)


class EndQuorumEpochRequestTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[EndQuorumEpochRequestPartitionData] = wire(
        Array(EndQuorumEpochRequestPartitionData), "0+", factory=list
    )


class LeaderEndpoint(Struct):
    name: str = wire(STRING, "1+", default="")
    host: str = wire(STRING, "1+", default="")
    port: int = wire(UINT16, "1+", default=0)


class EndQuorumEpochRequest(Message, api_key=54, versions="0-1", flexible="1+"):
    cluster_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    topics: list[EndQuorumEpochRequestTopicData] = wire(
        Array(EndQuorumEpochRequestTopicData), "0+", factory=list
    )
    leader_endpoints: list[LeaderEndpoint] = wire(Array(LeaderEndpoint), "1+", factory=list, ignorable=True)


class EndQuorumEpochResponsePartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class EndQuorumEpochResponseTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[EndQuorumEpochResponsePartitionData] = wire(
        Array(EndQuorumEpochResponsePartitionData), "0+", factory=list
    )


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "1+", default=0)
    host: str = wire(STRING, "1+", default="")
    port: int = wire(UINT16, "1+", default=0)


class EndQuorumEpochResponse(Message, api_key=54, versions="0-1", flexible="1+"):
    error_code: int = wire(INT16, "0+", default=0)
    topics: list[EndQuorumEpochResponseTopicData] = wire(
        Array(EndQuorumEpochResponseTopicData), "0+", factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "1+", factory=list, tag=0, tagged="1+")
