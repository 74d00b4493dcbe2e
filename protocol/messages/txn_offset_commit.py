"""TxnOffsetCommit (28): commit offsets of a group as part of a transaction."""

from protocol.primitives import INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    committed_offset: int = wire(INT64, "0+", default=0)
    committed_leader_epoch: int = wire(INT32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = wire(STRING, "0+", default="", nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    name: str = wire(STRING, "0-5", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "6+", default=ZERO_UUID, ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = wire(
        Array(TxnOffsetCommitRequestPartition), "0+", factory=list
    )


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-6", flexible="3+"):
    transactional_id: str = wire(STRING, "0+", default="")
    group_id: str = wire(STRING, "0+", default="")
    producer_id: int = wire(INT64, "0+", default=0)
    producer_epoch: int = wire(INT16, "0+", default=0)
    generation_id_or_member_epoch: int = wire(INT32, "3+", default=-1)
    member_id: str = wire(STRING, "3+", default="")
    group_instance_id: str | None = wire(STRING, "3+", default=None, nullable="3+")
    topics: list[TxnOffsetCommitRequestTopic] = wire(Array(TxnOffsetCommitRequestTopic), "0+", factory=list)


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class TxnOffsetCommitResponseTopic(Struct):
    name: str = wire(STRING, "0-5", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "6+", default=ZERO_UUID, ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = wire(
        Array(TxnOffsetCommitResponsePartition), "0+", factory=list
    )


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-6", flexible="3+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    topics: list[TxnOffsetCommitResponseTopic] = wire(Array(TxnOffsetCommitResponseTopic), "0+", factory=list)
