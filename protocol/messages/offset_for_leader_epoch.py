"""OffsetForLeaderEpoch (23): where a leader epoch ended, so that a reader can notice truncation."""

from protocol.primitives import INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class OffsetForLeaderPartition(Struct):
    partition: int = wire(INT32, "0+", default=0)
    current_leader_epoch: int = wire(INT32, "2+", default=-1, ignorable=True)
    leader_epoch: int = wire(INT32, "0+", default=0)


class OffsetForLeaderTopic(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[OffsetForLeaderPartition] = wire(Array(OffsetForLeaderPartition), "0+", factory=list)


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="2-4", flexible="4+"):
    replica_id: int = wire(INT32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = wire(Array(OffsetForLeaderTopic), "0+", factory=list)


class EpochEndOffset(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    partition: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "1+", default=-1, ignorable=True)
    end_offset: int = wire(INT64, "0+", default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[EpochEndOffset] = wire(Array(EpochEndOffset), "0+", factory=list)


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible="4+"):
    throttle_time_ms: int = wire(INT32, "2+", default=0, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = wire(Array(OffsetForLeaderTopicResult), "0+", factory=list)
