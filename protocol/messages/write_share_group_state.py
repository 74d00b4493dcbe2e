"""WriteShareGroupState (85): store the state of a share partition."""

from protocol.primitives import INT8, INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class StateBatch(Struct):
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    delivery_state: int = wire(INT8, "0+", default=0)
    delivery_count: int = wire(INT16, "0+", default=0)


class PartitionData(Struct):
    partition: int = wire(INT32, "0+", default=0)
    state_epoch: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)
    delivery_complete_count: int = wire(INT32, "1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = wire(Array(StateBatch), "0+", factory=list)


class WriteStateData(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[WriteStateData] = wire(Array(WriteStateData), "0+", factory=list)


class PartitionResult(Struct):
    partition: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class WriteStateResult(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+", factory=list)


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    results: list[WriteStateResult] = wire(Array(WriteStateResult), "0+", factory=list)
