"""Metadata (3): which topics exist, and which brokers lead their partitions."""

from protocol.primitives import BOOL, INT16, INT32, STRING, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class MetadataRequestTopic(Struct):
    topic_id: bytes = wire(UUID, "10+", default=ZERO_UUID, ignorable=True)
    name: str | None = wire(STRING, "0+", default="", nullable="10+")


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
    topics: list[MetadataRequestTopic] | None = wire(
        Array(MetadataRequestTopic), "0+", factory=list, nullable="1+"
    )
    allow_auto_topic_creation: bool = wire(BOOL, "4+", default=True)
    include_cluster_authorized_operations: bool = wire(BOOL, "8-10", default=False)
    include_topic_authorized_operations: bool = wire(BOOL, "8+", default=False)


class MetadataResponseBroker(Struct):
    node_id: int = wire(INT32, "0+", default=0)
    host: str = wire(STRING, "0+", default="")
    port: int = wire(INT32, "0+", default=0)
    rack: str | None = wire(STRING, "1+", default=None, nullable="1+", ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    partition_index: int = wire(INT32, "0+", default=0)
    leader_id: int = wire(INT32, "0+", default=0)
    leader_epoch: int = wire(INT32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = wire(Array(INT32), "0+", factory=list)
    isr_nodes: list[int] = wire(Array(INT32), "0+", factory=list)
    offline_replicas: list[int] = wire(Array(INT32), "5+", factory=list, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    name: str | None = wire(STRING, "0+", default="", nullable="12+")
    topic_id: bytes = wire(UUID, "10+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = wire(BOOL, "1+", default=False, ignorable=True)
    partitions: list[MetadataResponsePartition] = wire(Array(MetadataResponsePartition), "0+", factory=list)
    topic_authorized_operations: int = wire(INT32, "8+", default=-2147483648)


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: int = wire(INT32, "3+", default=0, ignorable=True)
    brokers: list[MetadataResponseBroker] = wire(Array(MetadataResponseBroker), "0+", factory=list)
    cluster_id: str | None = wire(STRING, "2+", default=None, nullable="2+", ignorable=True)
    controller_id: int = wire(INT32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = wire(Array(MetadataResponseTopic), "0+", factory=list)
    cluster_authorized_operations: int = wire(INT32, "8-10", default=-2147483648)
    error_code: int = wire(INT16, "13+", default=0, ignorable=True)
