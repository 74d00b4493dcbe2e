"""ShareAcknowledge (79): acknowledge records acquired by a share group."""

from protocol.primitives import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class AcknowledgementBatch(Struct):
    first_offset: int = wire(INT64, "0+", default=0)
    last_offset: int = wire(INT64, "0+", default=0)
    acknowledge_types: list[int] = wire(Array(INT8), "0+", factory=list)


class AcknowledgePartition(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    acknowledgement_batches: list[AcknowledgementBatch] = wire(
        Array(AcknowledgementBatch), "0+", factory=list
    )


class AcknowledgeTopic(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[AcknowledgePartition] = wire(Array(AcknowledgePartition), "0+", factory=list)


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible="0+"):
    group_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    share_session_epoch: int = wire(INT32, "0+", default=0)
    is_renew_ack: bool = wire(BOOL, "2+", default=False)
    topics: list[AcknowledgeTopic] = wire(Array(AcknowledgeTopic), "0+", factory=list)


class LeaderIdAndEpoch(Struct):
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "0+", default=0)


class PartitionData(Struct):
    partition_index: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+", factory=LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[PartitionData] = wire(Array(PartitionData), "0+", factory=list)


class NodeEndpoint(Struct):
    node_id: int = wire(INT32, "0+", default=0)
    host: str = wire(STRING, "0+", default="")
    port: int = wire(INT32, "0+", default=0)
    rack: str | None = wire(STRING, "0+", default=None, nullable="0+")


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = wire(INT32, "2+", default=0, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = wire(
        Array(ShareAcknowledgeTopicResponse), "0+", factory=list
    )
    node_endpoints: list[NodeEndpoint] = wire(Array(NodeEndpoint), "0+", factory=list)
