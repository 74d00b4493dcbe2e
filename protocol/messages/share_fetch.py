"""ShareFetch (78): acquire records for a share group, and acknowledge earlier ones."""

from typing import Any

from protocol.primitives import BOOL, INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class AcknowledgementBatch(Struct):
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    acknowledge_types: list[int] = wire(Array(INT8), "0+", factory=list)


class FetchPartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    partition_max_bytes: int = wire(INT32, "0", default=0)
    acknowledgement_batches: list[AcknowledgementBatch] = wire(
        Array(AcknowledgementBatch), "0+", factory=list
    )


class FetchTopic(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[FetchPartition] = wire(Array(FetchPartition), "0+", factory=list)


class ForgottenTopic(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ShareFetchRequest(Message, api_key=78, versions="1-2", flexible="0+"):
    group_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    share_session_epoch: int = wire(INT32, "0+", default=0)
    max_wait_ms: int = wire(INT32, "0+", default=0)
    min_bytes: int = wire(INT32, "0+", default=0)
    max_bytes: int = wire(INT32, "0+", default=2147483647)
    max_records: int = wire(INT32, "1+", default=0)
    batch_size: int = wire(INT32, "1+", default=0)
    share_acquire_mode: int = wire(INT8, "2+", default=0, ignorable=True)
    is_renew_ack: bool = wire(BOOL, "2+", default=False)
    topics: list[FetchTopic] = wire(Array(FetchTopic), "0+", factory=list)
    forgotten_topics_data: list[ForgottenTopic] = wire(Array(ForgottenTopic), "0+", factory=list)


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class AcquiredRecords(Struct):
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    delivery_count: int = wire(INT16, "0+", default=0)


class PartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    acknowledge_error_code: int = wire(INT16, "0+", default=0)
    acknowledge_error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+", factory=LeaderIdAndEpoch)
    records: Any = wire(RECORDS, "0+", default=None, nullable="0")
    acquired_records: list[AcquiredRecords] = wire(Array(AcquiredRecords), "0+", factory=list)


class ShareFetchableTopicResponse(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "0+", default=0)
    host: str = wire(STRING, "0+", default="")
    port: int = wire(INT32, "0+", default=0)
    rack: str | None = wire(STRING, "0+", default=None, nullable="0+")


class ShareFetchResponse(Message, api_key=78, versions="1-2", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = wire(INT32, "1+", default=0)
    responses: list[ShareFetchableTopicResponse] = wire(
        Array(ShareFetchableTopicResponse), "0+", factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "0+", factory=list)
