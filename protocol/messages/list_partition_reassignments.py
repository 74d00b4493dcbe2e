"""ListPartitionReassignments (46): the moves of partitions under way."""

from protocol.primitives import INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class ListPartitionReassignmentsTopics(Struct):
    name: str = wire(STRING, "0+", default="")
    partition_indexes: list[int] = wire(Array(INT32), "0+", factory=list)


class ListPartitionReassignmentsRequest(Message, api_key=46, versions="0", flexible="0+"):
    timeout_ms: int = wire(INT32, "0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(
        Array(ListPartitionReassignmentsTopics), "0+", default=None, nullable="0+"
    )


class OngoingPartitionReassignment(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    replicas: list[int] = wire(Array(INT32), "0+", factory=list)
    adding_replicas: list[int] = wire(Array(INT32), "0+", factory=list)
    removing_replicas: list[int] = wire(Array(INT32), "0+", factory=list)


class OngoingTopicReassignment(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[OngoingPartitionReassignment] = wire(
        Array(OngoingPartitionReassignment), "0+", factory=list
    )


class ListPartitionReassignmentsResponse(Message, api_key=46, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    topics: list[OngoingTopicReassignment] = wire(Array(OngoingTopicReassignment), "0+", factory=list)
