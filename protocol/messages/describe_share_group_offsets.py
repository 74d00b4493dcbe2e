"""DescribeShareGroupOffsets (90): where share groups stand."""

from protocol.primitives import INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = wire(
        Array(DescribeShareGroupOffsetsRequestTopic), "0+", factory=list, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", flexible="0+"):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = wire(
        Array(DescribeShareGroupOffsetsRequestGroup), "0+", factory=list
    )


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    lag: int = wire(INT64, "1+", default=-1, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = wire(
        Array(DescribeShareGroupOffsetsResponsePartition), "0+", factory=list
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = wire(
        Array(DescribeShareGroupOffsetsResponseTopic), "0+", factory=list
    )
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = wire(
        Array(DescribeShareGroupOffsetsResponseGroup), "0+", factory=list
    )
