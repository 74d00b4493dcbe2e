"""ElectLeaders (43): move the leadership of partitions to their preferred, or to any, replica."""

from protocol.primitives import INT8, INT16, INT32, STRING, Array
from protocol.schema import Message, Struct, wire


class TopicPartitions(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+"):
    election_type: int = wire(INT8, "1+", default=0)
    topic_partitions: list[TopicPartitions] | None = wire(
        Array(TopicPartitions), "0+", factory=list, nullable="0+"
    )
    timeout_ms: int = wire(INT32, "0+", default=60000)


class PartitionResult(Struct):
    partition_id: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = wire(STRING, "0+", default="")
    partition_result: list[PartitionResult] = wire(Array(PartitionResult), "0+", factory=list)


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = wire(
        Array(ReplicaElectionResult), "0+", factory=list
    )
