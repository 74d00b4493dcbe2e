"""ConsumerGroupDescribe (69): state and members of consumer groups (KIP-848)."""

from protocol.primitives import BOOL, INT8, INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+"):
    group_ids: list[str] = wire(Array(STRING), "0+", factory=list)
    include_authorized_operations: bool = wire(BOOL, "0+", default=False)


class TopicPartitions(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = wire(Array(TopicPartitions), "0+", factory=list)


class Member(Struct):
    member_id: str = wire(STRING, "0+", default="")
    instance_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    rack_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_epoch: int = wire(INT32, "0+", default=0)
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    subscribed_topic_names: list[str] = wire(Array(STRING), "0+", factory=list)
    subscribed_topic_regex: str | None = wire(STRING, "0+", default=None, nullable="0+")
    assignment: Assignment = wire(Assignment, "0+", factory=Assignment)
    target_assignment: Assignment = wire(Assignment, "0+", factory=Assignment)
    member_type: int = wire(INT8, "1+", default=-1, ignorable=True)


class DescribedGroup(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    group_id: str = wire(STRING, "0+", default="")
    group_state: str = wire(STRING, "0+", default="")
    group_epoch: int = wire(INT32, "0+", default=0)
    assignment_epoch: int = wire(INT32, "0+", default=0)
    assignor_name: str = wire(STRING, "0+", default="")
    members: list[Member] = wire(Array(Member), "0+", factory=list)
    authorized_operations: int = wire(INT32, "0+", default=-2147483648)


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    groups: list[DescribedGroup] = wire(Array(DescribedGroup), "0+", factory=list)
