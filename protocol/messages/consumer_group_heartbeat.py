"""ConsumerGroupHeartbeat (68): members of a KIP-848 group tell their state, and are assigned."""

from protocol.primitives import INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class TopicPartitions(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    member_id: str = wire(STRING, "0+", default="")
    member_epoch: int = wire(INT32, "0+", default=0)
    instance_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    rack_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = wire(INT32, "0+", default=-1)
    subscribed_topic_names: list[str] | None = wire(Array(STRING), "0+", default=None, nullable="0+")
    subscribed_topic_regex: str | None = wire(STRING, "1+", default=None, nullable="1+")
    server_assignor: str | None = wire(STRING, "0+", default=None, nullable="0+")
    topic_partitions: list[TopicPartitions] | None = wire(
        Array(TopicPartitions), "0+", default=None, nullable="0+"
    )


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = wire(Array(TopicPartitions), "0+", factory=list)


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_epoch: int = wire(INT32, "0+", default=0)
    heartbeat_interval_ms: int = wire(INT32, "0+", default=0)
    assignment: Assignment | None = wire(Assignment, "0+", default=None, nullable="0+")
