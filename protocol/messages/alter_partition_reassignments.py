"""AlterPartitionReassignments (45): start or cancel the move of partitions to other brokers."""

from protocol.primitives import BOOL, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ReassignablePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    replicas: list[int] | None = wire(Array(INT32), "0+", default=None, nullable="0+")


class ReassignableTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[ReassignablePartition] = wire(Array(ReassignablePartition), "0+", factory=list)


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible="0+"):
    timeout_ms: int = wire(INT32, "0+", default=60000)
    allow_replication_factor_change: bool = wire(BOOL, "1+", default=True)
    topics: list[ReassignableTopic] = wire(Array(ReassignableTopic), "0+", factory=list)


class ReassignablePartitionResponse(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[ReassignablePartitionResponse] = wire(
        Array(ReassignablePartitionResponse), "0+", factory=list
    )


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    allow_replication_factor_change: bool = wire(BOOL, "1+", default=True, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    responses: list[ReassignableTopicResponse] = wire(Array(ReassignableTopicResponse), "0+", factory=list)
