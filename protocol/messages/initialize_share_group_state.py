"""InitializeShareGroupState (83): start the stored state of a share partition."""

from protocol.primitives import INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class PartitionData(Struct):
    partition: int = wire(INT32, "0+", default=0)
    state_epoch: int = wire(INT32, "0+", default=0)
    start_offset: int = wire(INT64, "0+", default=0)


class InitializeStateData(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[InitializeStateData] = wire(Array(InitializeStateData), "0+", factory=list)


class PartitionResult(Struct):
    partition: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class InitializeStateResult(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+", factory=list)


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    results: list[InitializeStateResult] = wire(Array(InitializeStateResult), "0+", factory=list)
