"""DeleteTopics (20): remove topics with their records."""

from protocol.primitives import INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class DeleteTopicState(Struct):
    name: str | None = wire(STRING, "6+", default=None, nullable="6+")
    topic_id: bytes = wire(UUID, "6+", default=ZERO_UUID)


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+"):
    topics: list[DeleteTopicState] = wire(Array(DeleteTopicState), "6+", factory=list)
    topic_names: list[str] = wire(Array(STRING), "0-5", factory=list, ignorable=True)
    timeout_ms: int = wire(INT32, "0+", default=0)


class DeletableTopicResult(Struct):
    name: str | None = wire(STRING, "0+", default="", nullable="6+")
    topic_id: bytes = wire(UUID, "6+", default=ZERO_UUID, ignorable=True)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "5+", default=None, nullable="5+", ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    responses: list[DeletableTopicResult] = wire(Array(DeletableTopicResult), "0+", factory=list)
