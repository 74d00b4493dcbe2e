"""DeleteRecords (21): move the start of partitions forward."""

from protocol.primitives import INT16, INT32, INT64, STRING, Array
from protocol.schema import Message, Struct, wire


class DeleteRecordsPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    offset: int = wire(INT64, "0+", default=0)


class DeleteRecordsTopic(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[DeleteRecordsPartition] = wire(Array(DeleteRecordsPartition), "0+", factory=list)


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsTopic] = wire(Array(DeleteRecordsTopic), "0+", factory=list)
    timeout_ms: int = wire(INT32, "0+", default=0)


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    low_watermark: int = wire(INT64, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)


class DeleteRecordsTopicResult(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: list[DeleteRecordsPartitionResult] = wire(
        Array(DeleteRecordsPartitionResult), "0+", factory=list
    )


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    topics: list[DeleteRecordsTopicResult] = wire(Array(DeleteRecordsTopicResult), "0+", factory=list)
