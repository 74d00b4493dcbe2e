"""StreamsGroupDescribe (89): state and members of streams groups."""

from protocol.primitives import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, Array
from protocol.schema import Message, Struct, wire


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0-1", flexible="0+"):
    group_ids: list[str] = wire(Array(STRING), "0+", factory=list)
    include_authorized_operations: bool = wire(BOOL, "0+", default=False)
    include_topology_description: bool = wire(BOOL, "1+", default=False)


class KeyValue(Struct):
    key: str = wire(STRING, "0+", default="")
    value: str = wire(STRING, "0+", default="")


class TopicInfo(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: int = wire(INT32, "0+", default=0)
    replication_factor: int = wire(INT16, "0+", default=0)
    topic_configs: list[KeyValue] = wire(Array(KeyValue), "0+", factory=list)


class Subtopology(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    source_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    repartition_sink_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    state_changelog_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+", factory=list)
    repartition_source_topics: list[TopicInfo] = wire(Array(TopicInfo), "0+", factory=list)


class Topology(Struct):
    epoch: int = wire(INT32, "0+", default=0)
    subtopologies: list[Subtopology] | None = wire(Array(Subtopology), "0+", default=None, nullable="0+")


class Endpoint(Struct):
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)


class TaskOffset(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    partition: int = wire(INT32, "0+", default=0)
    offset: int = wire(INT64, "0+", default=0)


class TaskIds(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class Assignment(Struct):
    active_tasks: list[TaskIds] = wire(Array(TaskIds), "0+", factory=list)
    standby_tasks: list[TaskIds] = wire(Array(TaskIds), "0+", factory=list)
    warmup_tasks: list[TaskIds] = wire(Array(TaskIds), "0+", factory=list)


class Member(Struct):
    member_id: str = wire(STRING, "0+", default="")
    member_epoch: int = wire(INT32, "0+", default=0)
    instance_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    rack_id: str | None = wire(STRING, "0+", default=None, nullable="0+")
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    topology_epoch: int = wire(INT32, "0+", default=0)
    process_id: str = wire(STRING, "0+", default="")
    user_endpoint: Endpoint | None = wire(Endpoint, "0+", default=None, nullable="0+")
    client_tags: list[KeyValue] = wire(Array(KeyValue), "0+", factory=list)
    task_offsets: list[TaskOffset] = wire(Array(TaskOffset), "0+", factory=list)
    task_end_offsets: list[TaskOffset] = wire(Array(TaskOffset), "0+", factory=list)
    assignment: Assignment = wire(Assignment, "0+", factory=Assignment)
    target_assignment: Assignment = wire(Assignment, "0+", factory=Assignment)
    is_classic: bool = wire(BOOL, "0+", default=False)


class TopologyDescriptionNode(Struct):
    name: str = wire(STRING, "1+", default="")
    node_type: int = wire(INT8, "1+", default=0)
    source_topics: list[str] = wire(Array(STRING), "1+", factory=list)
    sink_topic: str | None = wire(STRING, "1+", default=None, nullable="1+")
    stores: list[str] = wire(Array(STRING), "1+", factory=list)
    successors: list[str] = wire(Array(STRING), "1+", factory=list)


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = wire(STRING, "1+", default="")
    nodes: list[TopologyDescriptionNode] = wire(Array(TopologyDescriptionNode), "1+", factory=list)


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = wire(TopologyDescriptionNode, "1+", factory=TopologyDescriptionNode)
    processor: TopologyDescriptionNode = wire(TopologyDescriptionNode, "1+", factory=TopologyDescriptionNode)


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = wire(
        Array(TopologyDescriptionSubtopology), "1+", factory=list
    )
    global_stores: list[TopologyDescriptionGlobalStore] = wire(
        Array(TopologyDescriptionGlobalStore), "1+", factory=list
    )


class DescribedGroup(Struct):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default=None, nullable="0+")
    group_id: str = wire(STRING, "0+", default="")
    group_state: str = wire(STRING, "0+", default="")
    group_epoch: int = wire(INT32, "0+", default=0)
    assignment_epoch: int = wire(INT32, "0+", default=0)
    topology: Topology | None = wire(Topology, "0+", default=None, nullable="0+")
    members: list[Member] = wire(Array(Member), "0+", factory=list)
    authorized_operations: int = wire(INT32, "0+", default=-2147483648)
    topology_description: TopologyDescription | None = wire(
        TopologyDescription, "1+", default=None, nullable="1+"
    )
    topology_description_status: int = wire(INT8, "1+", default=0)
    assignor_name: str | None = wire(STRING, "1+", default=None, nullable="1+", ignorable=True)


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0-1", flexible="0+"):
    throttle_time_ms: int = wire(INT32, "0+", default=0)
    groups: list[DescribedGroup] = wire(Array(DescribedGroup), "0+", factory=list)
