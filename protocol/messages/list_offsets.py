"""ListOffsets (2): turn a timestamp or a marker into an offset, per partition."""

from protocol.primitives import INT8, INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class ListOffsetsPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    current_leader_epoch: int = wire(INT32, "4+", default=-1, ignorable=True)
    timestamp: int = wire(INT64, "0+", default=0)


class ListOffsetsTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[ListOffsetsPartition] = wire(Array(ListOffsetsPartition), "0+", factory=list)


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+"):
    replica_id: int = wire(INT32, "0+", default=0)
    isolation_level: int = wire(INT8, "2+", default=0)
    topics: list[ListOffsetsTopic] = wire(Array(ListOffsetsTopic), "0+", factory=list)
    timeout_ms: int = wire(INT32, "10+", default=0, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    timestamp: int = wire(INT64, "1+", default=-1)
    offset: int = wire(INT64, "1+", default=-1)
    leader_epoch: int = wire(INT32, "4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[ListOffsetsPartitionResponse] = wire(
        Array(ListOffsetsPartitionResponse), "0+", factory=list
    )


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    throttle_time_ms: int = wire(INT32, "2+", default=0, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = wire(Array(ListOffsetsTopicResponse), "0+", factory=list)
