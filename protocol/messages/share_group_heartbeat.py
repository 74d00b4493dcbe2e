"""ShareGroupHeartbeat (76): members of a share group tell their state, and are assigned (KIP-932)."""

from protocol.primitives import INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class ShareGroupHeartbeatRequest(Message, api_key=76, versions="1", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    member_id: str = wire(STRING, "0+", default="")
    member_epoch: int = wire(INT32, "0+", default=0)
    rack_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    subscribed_topic_names: list[str] | None = wire(Array(STRING), "0+", default=None, nullable="0+")


class TopicPartitions(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = wire(Array(TopicPartitions), "0+", factory=list)


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_epoch: int = wire(INT32, "0+", default=0)
    heartbeat_interval_ms: int = wire(INT32, "0+", default=0)
    assignment: Assignment | None = wire(Assignment, "0+", default=None, nullable="0+")
