"""DescribeProducers (61): the producers that wrote to a partition lately."""

from protocol.primitives import INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class TopicRequest(Struct):
    name: str = wire(STRING, "0+", default="")
    partition_indexes: list[int] = wire(Array(INT32), "0+", factory=list)


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+"):
    topics: list[TopicRequest] = wire(Array(TopicRequest), "0+", factory=list)


class ProducerState(Struct):
    producer_id: int = wire(INT64, "0+", default=0)
    producer_epoch: int = wire(INT32, "0+", default=0)
    last_sequence: int = wire(INT32, "0+", default=-1)
    last_timestamp: int = wire(INT64, "0+", default=-1)
    coordinator_epoch: int = wire(INT32, "0+", default=0)
    current_txn_start_offset: int = wire(INT64, "0+", default=-1)


class PartitionResponse(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    active_producers: list[ProducerState] = wire(Array(ProducerState), "0+", factory=list)


class TopicResponse(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[PartitionResponse] = wire(Array(PartitionResponse), "0+", factory=list)


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    topics: list[TopicResponse] = wire(Array(TopicResponse), "0+", factory=list)
