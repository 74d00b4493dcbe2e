"""CreatePartitions (37): give topics more partitions."""

from protocol.primitives import BOOL, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = wire(Array(INT32), "0+", factory=list)


class CreatePartitionsTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    count: int = wire(INT32, "0+", default=0)
    assignments: list[CreatePartitionsAssignment] | None = wire(
        Array(CreatePartitionsAssignment), "0+", factory=list, nullable="0+"
    )


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsTopic] = wire(Array(CreatePartitionsTopic), "0+", factory=list)
    timeout_ms: int = wire(INT32, "0+", default=0)
    validate_only: bool = wire(BOOL, "0+", default=False)


class CreatePartitionsTopicResult(Struct):
    name: str = wire(STRING, "0+", default="")
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    results: list[CreatePartitionsTopicResult] = wire(Array(CreatePartitionsTopicResult), "0+", factory=list)
