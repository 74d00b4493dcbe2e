"""DeleteShareGroupState (86): drop the stored state of a share partition."""

from protocol.primitives import INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class PartitionData(Struct):
    partition: int = wire(INT32, "0+", default=0)


class DeleteStateData(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[DeleteStateData] = wire(Array(DeleteStateData), "0+", factory=list)


class PartitionResult(Struct):
    partition: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class DeleteStateResult(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionResult] = wire(Array(PartitionResult), "0+", factory=list)


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    results: list[DeleteStateResult] = wire(Array(DeleteStateResult), "0+", factory=list)
