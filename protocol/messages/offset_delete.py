"""OffsetDelete (47): forget offsets of a group."""

from protocol.primitives import INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)


class OffsetDeleteRequestTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[OffsetDeleteRequestPartition] = wire(
        Array(OffsetDeleteRequestPartition), "0+", factory=list
    )


class OffsetDeleteRequest(Message, api_key=47, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[OffsetDeleteRequestTopic] = wire(Array(OffsetDeleteRequestTopic), "0+", factory=list)


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class OffsetDeleteResponseTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[OffsetDeleteResponsePartition] = wire(
        Array(OffsetDeleteResponsePartition), "0+", factory=list
    )


class OffsetDeleteResponse(Message, api_key=47, versions="0", flexible="none"):
    error_code: int = wire(INT16, "0+", default=0)
    throttle_time_ms: int = wire(INT32, "0+", default=0, ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = wire(Array(OffsetDeleteResponseTopic), "0+", factory=list)
