"""What consumers of a classic group tell each other through the broker, which only carries it."""

from protocol.primitives import BYTES, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = wire(STRING, "1+", default="")
    partitions: list[int] = wire(Array(INT32), "1+", factory=list)


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    topics: list[str] = wire(Array(STRING), "0+", factory=list)
    user_data: bytes | None = wire(BYTES, "0+", default=None, nullable="0+")
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = wire(
        Array(ConsumerProtocolSubscriptionTopicPartition), "1+", factory=list, ignorable=True
    )
    generation_id: int = wire(INT32, "2+", default=-1, ignorable=True)
    rack_id: str | None = wire(STRING, "3+", default=None, nullable="3+", ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = wire(
        Array(ConsumerProtocolAssignmentTopicPartition), "0+", factory=list
    )
    user_data: bytes | None = wire(BYTES, "0+", default=None, nullable="0+")
