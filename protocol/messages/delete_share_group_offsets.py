"""DeleteShareGroupOffsets (92): forget the offsets of a share group."""

from protocol.primitives import INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = wire(STRING, "0+", default="")


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = wire(
        Array(DeleteShareGroupOffsetsRequestTopic), "0+", factory=list
    )


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = wire(STRING, "0+", default="")
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    responses: list[DeleteShareGroupOffsetsResponseTopic] = wire(
        Array(DeleteShareGroupOffsetsResponseTopic), "0+", factory=list
    )
