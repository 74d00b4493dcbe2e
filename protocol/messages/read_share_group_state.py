"""ReadShareGroupState (84): read the stored state of a share partition."""

from protocol.primitives import INT8, INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class PartitionData(Struct):
    partition: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class ReadStateData(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[ReadStateData] = wire(Array(ReadStateData), "0+", factory=list)


class StateBatch(Struct):
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    delivery_state: int = wire(INT8, "0+", default=0)
    delivery_count: int = wire(INT16, "0+", default=0)


class PartitionResult(Struct):
    partition: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    state_epoch: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)
    state_batches: list[StateBatch] = wire(Array(StateBatch), "0+", factory=list)


class ReadStateResult(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+", factory=list)


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    results: list[ReadStateResult] = wire(Array(ReadStateResult), "0+", factory=list)
