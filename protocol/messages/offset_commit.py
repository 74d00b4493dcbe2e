"""OffsetCommit (8): remember how far a group has read."""

from protocol.primitives import INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class OffsetCommitRequestPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    committed_offset: int = wire(INT64, "0+", default=0)
    committed_leader_epoch: int = wire(INT32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(STRING, "0+", default="", nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = wire(STRING, "0-9", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = wire(
        Array(OffsetCommitRequestPartition), "0+", factory=list
    )


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+"):
    group_id: str = wire(STRING, "0+", default="")
    generation_id_or_member_epoch: int = wire(INT32, "1+", default=-1, ignorable=True)
    member_id: str = wire(STRING, "1+", default="", ignorable=True)
    group_instance_id: str | None = wire(STRING, "7+", default=None, nullable="7+")
    retention_time_ms: int = wire(INT64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = wire(Array(OffsetCommitRequestTopic), "0+", factory=list)


class OffsetCommitResponsePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class OffsetCommitResponseTopic(Struct):
    name: str = wire(STRING, "0-9", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = wire(
        Array(OffsetCommitResponsePartition), "0+", factory=list
    )


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: int = wire(INT32, "3+", default=0, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = wire(Array(OffsetCommitResponseTopic), "0+", factory=list)
