"""DescribeQuorum (55): leader, voters and observers of the metadata quorum."""

from protocol.primitives import INT16, INT32, INT64, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)


class DescribeQuorumRequestTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[DescribeQuorumRequestPartitionData] = wire(
        Array(DescribeQuorumRequestPartitionData), "0+", factory=list
    )


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible="0+"):
    topics: list[DescribeQuorumRequestTopicData] = wire(
        Array(DescribeQuorumRequestTopicData), "0+", factory=list
    )


class ReplicaState(Struct):
    replica_id: int = wire(INT32, "0+", default=0)
    replica_directory_id: bytes = wire(UUID, "2+", default=ZERO_UUID)
    log_end_offset: int = wire(INT64, "0+", default=0)
    last_fetch_timestamp: int = wire(INT64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = wire(INT64, "1+", default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "2+", default="", nullable="2+", ignorable=True)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    high_watermark: int = wire(INT64, "0+", default=0)
    current_voters: list[ReplicaState] = wire(Array(ReplicaState), "0+", factory=list)
    observers: list[ReplicaState] = wire(Array(ReplicaState), "0+", factory=list)


class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[DescribeQuorumResponsePartitionData] = wire(
        Array(DescribeQuorumResponsePartitionData), "0+", factory=list
    )


class Listener(Struct):
    name: str = wire(STRING, "2+", default="")
    host: str = wire(STRING, "2+", default="")
    port: int = wire(UINT16, "2+", default=0)


class Node(Struct):
    node_id: int = wire(INT32, "2+", default=0)
    listeners: list[Listener] = wire(Array(Listener), "2+", factory=list)


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible="0+"):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "2+", default="", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = wire(
        Array(DescribeQuorumResponseTopicData), "0+", factory=list
    )
    nodes: list[Node] = wire(Array(Node), "2+", factory=list)
