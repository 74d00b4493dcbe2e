"""DescribeTopicPartitions (75): topics and their partitions, page by page."""

from protocol.primitives import BOOL, INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class TopicRequest(Struct):
    name: str = wire(STRING, "0+", default="")


class Cursor(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partition_index: int = wire(INT32, "0+", default=0)


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible="0+"):
    topics: list[TopicRequest] = wire(Array(TopicRequest), "0+", factory=list)
    response_partition_limit: int = wire(INT32, "0+", default=2000)
    cursor: Cursor | None = wire(Cursor, "0+", default=None, nullable="0+")


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    partition_index: int = wire(INT32, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=-1, ignorable=True)
    replica_nodes: list[int] = wire(Array(INT32), "0+", factory=list)
    isr_nodes: list[int] = wire(Array(INT32), "0+", factory=list)
    eligible_leader_replicas: list[int] | None = wire(Array(INT32), "0+", default=None, nullable="0+")
    last_known_elr: list[int] | None = wire(Array(INT32), "0+", default=None, nullable="0+")
    offline_replicas: list[int] = wire(Array(INT32), "0+", factory=list, ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    name: str | None = wire(STRING, "0+", default="", nullable="0+")
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = wire(BOOL, "0+", default=False, ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = wire(
        Array(DescribeTopicPartitionsResponsePartition), "0+", factory=list
    )
    topic_authorized_operations: int = wire(INT32, "0+", default=-2147483648)


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0, ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = wire(
        Array(DescribeTopicPartitionsResponseTopic), "0+", factory=list
    )
    next_cursor: Cursor | None = wire(Cursor, "0+", default=None, nullable="0+")
