"""OffsetFetch (9): where groups stopped reading."""

from protocol.primitives import BOOL, INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class OffsetFetchRequestTopic(Struct):
    name: str = wire(STRING, "0-7", default="")
    partition_indexes: list[int] = wire(Array(INT32), "0-7", factory=list)


class OffsetFetchRequestTopics(Struct):
    name: str = wire(STRING, "8-9", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "10+", default=ZERO_UUID, ignorable=True)
    partition_indexes: list[int] = wire(Array(INT32), "8+", factory=list)


class OffsetFetchRequestGroup(Struct):
    group_id: str = wire(STRING, "8+", default="")
    member_id: str | None = wire(STRING, "9+", default=None, nullable="9+", ignorable=True)
    member_epoch: int = wire(INT32, "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = wire(
        Array(OffsetFetchRequestTopics), "8+", factory=list, nullable="8+"
    )


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+"):
    group_id: str = wire(STRING, "0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = wire(
        Array(OffsetFetchRequestTopic), "0-7", factory=list, nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = wire(Array(OffsetFetchRequestGroup), "8+", factory=list)
    require_stable: bool = wire(BOOL, "7+", default=False)


class OffsetFetchResponsePartition(Struct):
    partition_index: int = wire(INT32, "0-7", default=0)
    committed_offset: int = wire(INT64, "0-7", default=0)
    committed_leader_epoch: int = wire(INT32, "5-7", default=-1, ignorable=True)
    metadata: str | None = wire(STRING, "0-7", default="", nullable="0-7")
    error_code: int = wire(INT16, "0-7", default=0)


class OffsetFetchResponseTopic(Struct):
    name: str = wire(STRING, "0-7", default="")
    partitions: list[OffsetFetchResponsePartition] = wire(
        Array(OffsetFetchResponsePartition), "0-7", factory=list
    )


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = wire(INT32, "8+", default=0)
    committed_offset: int = wire(INT64, "8+", default=0)
    committed_leader_epoch: int = wire(INT32, "8+", default=-1, ignorable=True)
    metadata: str | None = wire(STRING, "8+", default="", nullable="8+")
    error_code: int = wire(INT16, "8+", default=0)


class OffsetFetchResponseTopics(Struct):
    name: str = wire(STRING, "8-9", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "10+", default=ZERO_UUID, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = wire(
        Array(OffsetFetchResponsePartitions), "8+", factory=list
    )


class OffsetFetchResponseGroup(Struct):
    group_id: str = wire(STRING, "8+", default="")
    topics: list[OffsetFetchResponseTopics] = wire(Array(OffsetFetchResponseTopics), "8+", factory=list)
    error_code: int = wire(INT16, "8+", default=0)


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: int = wire(INT32, "3+", default=0, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = wire(Array(OffsetFetchResponseTopic), "0-7", factory=list)
    error_code: int = wire(INT16, "2-7", default=0, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = wire(Array(OffsetFetchResponseGroup), "8+", factory=list)
