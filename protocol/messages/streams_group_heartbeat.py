"""StreamsGroupHeartbeat (88): members of a streams group tell their state, and get tasks (KIP-1071)."""

from protocol.primitives import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, Array
from protocol.schema import Message, Struct, wire


class KeyValue(Struct):
    key: str = wire(STRING, "0+", default="")
    value: str = wire(STRING, "0+", default="")


class TopicInfo(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: int = wire(INT32, "0+", default=0)
    replication_factor: int = wire(INT16, "0+", default=0)
    topic_configs: list[KeyValue] = wire(Array(KeyValue), "0+", factory=list)


class CopartitionGroup(Struct):
    source_topics: list[int] = wire(Array(INT16), "0+", factory=list)
    source_topic_regex: list[int] = wire(Array(INT16), "0+", factory=list)
    repartition_source_topics: list[int] = wire(Array(INT16), "0+", factory=list)


class Subtopology(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    source_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    source_topic_regex: list[str] = wire(Array(STRING), "0+", factory=list)
    state_changelog_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+", factory=list)
    repartition_sink_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    repartition_source_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+", factory=list)
    copartition_groups: list[CopartitionGroup] = wire(Array(CopartitionGroup), "0+", factory=list)


class Topology(Struct):
    epoch: int = wire(INT32, "0+", default=0)
    subtopologies: list[Subtopology] = wire(Array(Subtopology), "0+", factory=list)


class TaskIds(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class Endpoint(Struct):
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)


class TaskOffset(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    partition: int = wire(INT32, "0+", default=0)
    offset: int = wire(INT64, "0+", default=0)


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0-1", flexible="0+"):
    group_id: str = wire(STRING, "0+", default="")
    member_id: str = wire(STRING, "0+", default="")
    member_epoch: int = wire(INT32, "0+", default=0)
    endpoint_information_epoch: int = wire(INT32, "0+", default=0)
    instance_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    rack_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = wire(INT32, "0+", default=-1)
    topology: Topology | None = wire(Topology, "0+", default=None, nullable="0+")
    active_tasks: list[TaskIds] | None = wire(Array(TaskIds), "0+", default=None, nullable="0+")
    standby_tasks: list[TaskIds] | None = wire(Array(TaskIds), "0+", default=None, nullable="0+")
    warmup_tasks: list[TaskIds] | None = wire(Array(TaskIds), "0+", default=None, nullable="0+")
    process_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    user_endpoint: Endpoint | None = wire(Endpoint, "0+", default=None, nullable="0+")
    client_tags: list[KeyValue] | None = wire(Array(KeyValue), "0+", default=None, nullable="0+")
    task_offsets: list[TaskOffset] | None = wire(Array(TaskOffset), "0+", default=None, nullable="0+")
    task_end_offsets: list[TaskOffset] | None = wire(Array(TaskOffset), "0+", default=None, nullable="0+")
    shutdown_application: bool = wire(BOOL, "0+", default=False)


class Status(Struct):
    status_code: int = wire(INT8, "0+", default=0)
    status_detail: str = wire(STRING, "0+", default="")


class TopicPartition(Struct):
    topic: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = wire(Endpoint, "0+", factory=Endpoint)
    active_partitions: list[TopicPartition] = wire(Array(TopicPartition), "0+", factory=list)
    standby_partitions: list[TopicPartition] = wire(Array(TopicPartition), "0+", factory=list)


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    member_id: str = wire(STRING, "0+", default="")
    member_epoch: int = wire(INT32, "0+", default=0)
    heartbeat_interval_ms: int = wire(INT32, "0+", default=0)
    acceptable_recovery_lag_legacy: int = wire(INT32, "0", default=0)
    task_offset_interval_ms: int = wire(INT32, "0+", default=0)
    acceptable_recovery_lag: int = wire(INT64, "1+", default=-1, ignorable=True)
    status: list[Status] | None = wire(Array(Status), "0+", factory=list, nullable="0+")
    active_tasks: list[TaskIds] | None = wire(Array(TaskIds), "0+", default=None, nullable="0+")
    standby_tasks: list[TaskIds] | None = wire(Array(TaskIds), "0+", default=None, nullable="0+")
    warmup_tasks: list[TaskIds] | None = wire(Array(TaskIds), "0+", default=None, nullable="0+")
    topology_description_required: bool = wire(BOOL, "1+", default=False)
    endpoint_information_epoch: int = wire(INT32, "0+", default=0)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = wire(
        Array(EndpointToPartitions), "0+", default=None, nullable="0+"
    )
