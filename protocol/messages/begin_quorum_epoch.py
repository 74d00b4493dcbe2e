"""BeginQuorumEpoch (53): a new leader of the metadata quorum makes itself known."""

from protocol.primitives import INT16, INT32, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class BeginQuorumEpochRequestPartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    voter_directory_id: bytes = wire(UUID, "1+", default=ZERO_UUID, ignorable=True)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class BeginQuorumEpochRequestTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[BeginQuorumEpochRequestPartitionData] = wire(
        Array(BeginQuorumEpochRequestPartitionData), "0+", factory=list
    )


class LeaderEndpoint(Struct):
    name: str = wire(STRING, "1+", default="")
    host: str = wire(STRING, "1+", default="")
    port: int = wire(UINT16, "1+", default=0)


class BeginQuorumEpochRequest(Message, api_key=53, versions="0-1", flexible="1+"):
    cluster_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    voter_id: int = wire(INT32, "1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopicData] = wire(
        Array(BeginQuorumEpochRequestTopicData), "0+", factory=list
    )
    leader_endpoints: list[LeaderEndpoint] = wire(Array(LeaderEndpoint), "1+", factory=list, ignorable=True)


class BeginQuorumEpochResponsePartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class BeginQuorumEpochResponseTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[BeginQuorumEpochResponsePartitionData] = wire(
        Array(BeginQuorumEpochResponsePartitionData), "0+", factory=list
    )


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "1+", default=0)
    host: str = wire(STRING, "1+", default="")
    port: int = wire(UINT16, "1+", default=0)


class BeginQuorumEpochResponse(Message, api_key=53, versions="0-1", flexible="1+"):
    error_code: int = wire(INT16, "0+", default=0)
    topics: list[BeginQuorumEpochResponseTopicData] = wire(
        Array(BeginQuorumEpochResponseTopicData), "0+", factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "1+", factory=list, tag=0, tagged="1+")
