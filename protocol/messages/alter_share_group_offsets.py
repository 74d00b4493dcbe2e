"""AlterShareGroupOffsets (91): move the start offsets of a share group."""

from protocol.primitives import INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = wire(
        Array(AlterShareGroupOffsetsRequestPartition), "0+", factory=list
    )


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[AlterShareGroupOffsetsRequestTopic] = wire(
        Array(AlterShareGroupOffsetsRequestTopic), "0+", factory=list
    )


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = wire(
        Array(AlterShareGroupOffsetsResponsePartition), "0+", factory=list
    )


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    responses: list[AlterShareGroupOffsetsResponseTopic] = wire(
        Array(AlterShareGroupOffsetsResponseTopic), "0+", factory=list
    )
