"""Produce (0): append record batches to partitions."""

from typing import Any

from protocol.primitives import INT16, INT32, INT64, RECORDS, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class PartitionProduceData(Struct):
    index: int = wire(INT32, "0+", default=0)
    records: Any = wire(RECORDS, "0+", default=None, nullable="0+")


class TopicProduceData(Struct):
    name: str = wire(STRING, "0-12", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "13+", default=ZERO_UUID, ignorable=True)
    partition_data: list[PartitionProduceData] = wire(Array(PartitionProduceData), "0+", factory=list)


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+"):
    transactional_id: str | None = wire(STRING, "3+", default=None, nullable="3+")
    acks: int = wire(INT16, "0+", default=0)
    timeout_ms: int = wire(INT32, "0+", default=0)
    topic_data: list[TopicProduceData] = wire(Array(TopicProduceData), "0+", factory=list)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = wire(INT32, "8+", default=0)
    batch_index_error_message: str | None = wire(STRING, "8+", default=None, nullable="8+")


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire(INT32, "10+", default=-1)
    leader_epoch: int = wire(INT32, "10+", default=-1)


class PartitionProduceResponse(Struct):
    index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    base_offset: int = wire(INT64, "0+", default=0)
    log_append_time_ms: int = wire(INT64, "2+", default=-1, ignorable=True)
    log_start_offset: int = wire(INT64, "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = wire(
        Array(BatchIndexAndErrorMessage), "8+", factory=list, ignorable=True
    )
    error_message: str | None = wire(STRING, "8+", default=None, nullable="8+", ignorable=True)
    current_leader: LeaderIdAndEpoch = wire(
        LeaderIdAndEpoch, "10+", factory=LeaderIdAndEpoch, tag=0, tagged="10+"
    )


class TopicProduceResponse(Struct):
    name: str = wire(STRING, "0-12", default="", ignorable=True)
    topic_id: bytes = wire(UUID, "13+", default=ZERO_UUID, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = wire(
        Array(PartitionProduceResponse), "0+", factory=list
    )


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "10+", default=0)
    host: str = wire(STRING, "10+", default="")
    port: int = wire(INT32, "10+", default=0)
    rack: str | None = wire(STRING, "10+", default=None, nullable="10+")


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    responses: list[TopicProduceResponse] = wire(Array(TopicProduceResponse), "0+", factory=list)
    throttle_time_ms: int = wire(INT32, "1+", default=0, ignorable=True)
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "10+", factory=list, tag=0, tagged="10+")
