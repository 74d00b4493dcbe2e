"""Records of ``__consumer_offsets``: offsets, and groups of every kind.

The ``api_key`` of a class is its record type.
"""

from protocol.primitives import BYTES, INT8, INT16, INT32, INT64, STRING, UINT16, UUID, Array
from protocol.schema import Message, Struct, wire
from protocol.uuids import ZERO_UUID


class LegacyOffsetCommitKey(Message, api_key=0, versions="0", flexible="none"):
    group: str = wire(STRING, "0", default="")
    topic: str = wire(STRING, "0", default="")
    partition: int = wire(INT32, "0", default=0)


class LegacyOffsetCommitValue(Message, api_key=0, versions="0", flexible="none"):
    offset: int = wire(INT64, "0", default=0)
    metadata: str = wire(STRING, "0", default="")
    commit_timestamp: int = wire(INT64, "0", default=0)


class OffsetCommitKey(Message, api_key=1, versions="0", flexible="none"):
    group: str = wire(STRING, "0", default="")
    topic: str = wire(STRING, "0", default="")
    partition: int = wire(INT32, "0", default=0)


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    offset: int = wire(INT64, "0+", default=0)
    leader_epoch: int = wire(INT32, "3+", default=-1, ignorable=True)
    metadata: str = wire(STRING, "0+", default="")
    commit_timestamp: int = wire(INT64, "0+", default=0)
    expire_timestamp: int = wire(INT64, "1", default=-1, ignorable=True)
    topic_id: bytes = wire(UUID, "4+", default=ZERO_UUID, tag=0, tagged="4+", ignorable=True)


class GroupMetadataKey(Message, api_key=2, versions="0", flexible="none"):
    group: str = wire(STRING, "0", default="")


class MemberMetadata(Struct):
    member_id: str = wire(STRING, "0+", default="")
    group_instance_id: str | None = wire(STRING, "3+", default=None, nullable="3+", ignorable=True)
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    rebalance_timeout: int = wire(INT32, "1+", default=-1, ignorable=True)
    session_timeout: int = wire(INT32, "0+", default=0)
    subscription: bytes = wire(BYTES, "0+", default=b"")
    assignment: bytes = wire(BYTES, "0+", default=b"")


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    protocol_type: str = wire(STRING, "0+", default="")
    generation: int = wire(INT32, "0+", default=0)
    protocol: str | None = wire(STRING, "0+", default="", nullable="0+")
    leader: str | None = wire(STRING, "0+", default="", nullable="0+")
    current_state_timestamp: int = wire(INT64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = wire(Array(MemberMetadata), "0+", factory=list)


class ConsumerGroupMetadataKey(Message, api_key=3, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0", flexible="0+"):
    epoch: int = wire(INT32, "0+", default=0)
    metadata_hash: int = wire(INT64, "0+", default=0, tag=0, tagged="0+")


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class PartitionMetadata(Struct):
    partition: int = wire(INT32, "0+", default=0)
    racks: list[str] = wire(Array(STRING), "0+", factory=list)


class TopicMetadata(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    topic_name: str = wire(STRING, "0+", default="")
    num_partitions: int = wire(INT32, "0+", default=0)
    partition_metadata: list[PartitionMetadata] = wire(Array(PartitionMetadata), "0+", factory=list)


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions="0", flexible="0+"):
    topics: list[TopicMetadata] = wire(Array(TopicMetadata), "0+", factory=list)


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class ClassicProtocol(Struct):
    name: str = wire(STRING, "0+", default="")
    metadata: bytes = wire(BYTES, "0+", default=b"")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = wire(INT32, "0+", default=0)
    supported_protocols: list[ClassicProtocol] = wire(Array(ClassicProtocol), "0+", factory=list)


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0", flexible="0+"):
    instance_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    rack_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    subscribed_topic_names: list[str] = wire(Array(STRING), "0+", factory=list)
    subscribed_topic_regex: str | None = wire(STRING, "0+", default="", nullable="0+")
    rebalance_timeout_ms: int = wire(INT32, "0+", default=-1)
    server_assignor: str | None = wire(STRING, "0+", default="", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        ClassicMemberMetadata, "0+", factory=ClassicMemberMetadata, nullable="0+", tag=0, tagged="0+"
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0", flexible="0+"):
    assignment_epoch: int = wire(INT32, "0+", default=0)
    assignment_timestamp: int = wire(INT64, "0+", default=0, tag=0, tagged="0+", ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class TopicPartition(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = wire(Array(TopicPartition), "0+", factory=list)


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class ConsumerGroupCurrentMemberAssignmentTopicPartitions(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)
    assignment_epochs: list[int] | None = wire(
        Array(INT32), "0+", factory=list, nullable="0+", tag=0, tagged="0+"
    )


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0", flexible="0+"):
    member_epoch: int = wire(INT32, "0+", default=0)
    previous_member_epoch: int = wire(INT32, "0+", default=0)
    state: int = wire(INT8, "0+", default=0)
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = wire(
        Array(ConsumerGroupCurrentMemberAssignmentTopicPartitions), "0+", factory=list
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = wire(
        Array(ConsumerGroupCurrentMemberAssignmentTopicPartitions), "0+", factory=list
    )


class ShareGroupMemberMetadataKey(Message, api_key=10, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class ShareGroupMemberMetadataValue(Message, api_key=10, versions="0", flexible="0+"):
    rack_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    subscribed_topic_names: list[str] = wire(Array(STRING), "0+", factory=list)


class ShareGroupMetadataKey(Message, api_key=11, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class ShareGroupMetadataValue(Message, api_key=11, versions="0", flexible="0+"):
    epoch: int = wire(INT32, "0+", default=0)
    metadata_hash: int = wire(INT64, "0+", default=0)


class ShareGroupTargetAssignmentMetadataKey(Message, api_key=12, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class ShareGroupTargetAssignmentMetadataValue(Message, api_key=12, versions="0", flexible="0+"):
    assignment_epoch: int = wire(INT32, "0+", default=0)
    assignment_timestamp: int = wire(INT64, "0+", default=0, tag=0, tagged="0+", ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, api_key=13, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class ShareGroupTargetAssignmentMemberValue(Message, api_key=13, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = wire(Array(TopicPartition), "0+", factory=list)


class ShareGroupCurrentMemberAssignmentKey(Message, api_key=14, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class ShareGroupCurrentMemberAssignmentTopicPartitions(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ShareGroupCurrentMemberAssignmentValue(Message, api_key=14, versions="0", flexible="0+"):
    member_epoch: int = wire(INT32, "0+", default=0)
    previous_member_epoch: int = wire(INT32, "0+", default=0)
    state: int = wire(INT8, "0+", default=0)
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentTopicPartitions] = wire(
        Array(ShareGroupCurrentMemberAssignmentTopicPartitions), "0+", factory=list
    )


class ShareGroupStatePartitionMetadataKey(Message, api_key=15, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class TopicPartitionsInfo(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    topic_name: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class ShareGroupStatePartitionMetadataTopicInfo(Struct):
    topic_id: bytes = wire(UUID, "0+", default=ZERO_UUID)
    topic_name: str = wire(STRING, "0+", default="")


class ShareGroupStatePartitionMetadataValue(Message, api_key=15, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo] = wire(Array(TopicPartitionsInfo), "0+", factory=list)
    initialized_topics: list[TopicPartitionsInfo] = wire(Array(TopicPartitionsInfo), "0+", factory=list)
    deleting_topics: list[ShareGroupStatePartitionMetadataTopicInfo] = wire(
        Array(ShareGroupStatePartitionMetadataTopicInfo), "0+", factory=list
    )


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    regular_expression: str = wire(STRING, "0", default="")


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0", flexible="0+"):
    topics: list[str] = wire(Array(STRING), "0+", factory=list)
    version: int = wire(INT64, "0+", default=0)
    timestamp: int = wire(INT64, "0+", default=0)


class StreamsGroupMetadataKey(Message, api_key=17, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class LastAssignmentConfig(Struct):
    key: str = wire(STRING, "0+", default="")
    value: str = wire(STRING, "0+", default="")


class StreamsGroupMetadataValue(Message, api_key=17, versions="0", flexible="0+"):
    epoch: int = wire(INT32, "0+", default=0)
    metadata_hash: int = wire(INT64, "0+", default=0)
    validated_topology_epoch: int = wire(INT32, "0+", default=-1, tag=0, tagged="0+")
    last_assignment_configs: list[LastAssignmentConfig] | None = wire(
        Array(LastAssignmentConfig), "0+", factory=list, nullable="0+", tag=1, tagged="0+"
    )
    stored_description_topology_epoch: int = wire(INT32, "0+", default=-1, tag=2, tagged="0+")
    failed_description_topology_epoch: int = wire(INT32, "0+", default=-1, tag=3, tagged="0+")


class StreamsGroupMemberMetadataKey(Message, api_key=19, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class Endpoint(Struct):
    host: str = wire(STRING, "0+", default="")
    port: int = wire(UINT16, "0+", default=0)


class KeyValue(Struct):
    key: str = wire(STRING, "0+", default="")
    value: str = wire(STRING, "0+", default="")


class StreamsGroupMemberMetadataValue(Message, api_key=19, versions="0", flexible="0+"):
    instance_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    rack_id: str | None = wire(STRING, "0+", default="", nullable="0+")
    client_id: str = wire(STRING, "0+", default="")
    client_host: str = wire(STRING, "0+", default="")
    rebalance_timeout_ms: int = wire(INT32, "0+", default=-1)
    topology_epoch: int = wire(INT32, "0+", default=0)
    process_id: str = wire(STRING, "0+", default="")
    user_endpoint: Endpoint | None = wire(Endpoint, "0+", default=None, nullable="0+")
    client_tags: list[KeyValue] = wire(Array(KeyValue), "0+", factory=list)


class StreamsGroupTargetAssignmentMetadataKey(Message, api_key=20, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class StreamsGroupTargetAssignmentMetadataValue(Message, api_key=20, versions="0", flexible="0+"):
    assignment_epoch: int = wire(INT32, "0+", default=0)
    assignment_timestamp: int = wire(INT64, "0+", default=0, tag=0, tagged="0+", ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(Message, api_key=21, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class StreamsGroupTargetAssignmentMemberTaskIds(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)


class StreamsGroupTargetAssignmentMemberValue(Message, api_key=21, versions="0", flexible="0+"):
    active_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = wire(
        Array(StreamsGroupTargetAssignmentMemberTaskIds), "0+", factory=list
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = wire(
        Array(StreamsGroupTargetAssignmentMemberTaskIds), "0+", factory=list
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberTaskIds] = wire(
        Array(StreamsGroupTargetAssignmentMemberTaskIds), "0+", factory=list
    )


class StreamsGroupCurrentMemberAssignmentKey(Message, api_key=22, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")
    member_id: str = wire(STRING, "0", default="")


class StreamsGroupCurrentMemberAssignmentTaskIds(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    partitions: list[int] = wire(Array(INT32), "0+", factory=list)
    assignment_epochs: list[int] | None = wire(
        Array(INT32), "0+", factory=list, nullable="0+", tag=0, tagged="0+"
    )


class StreamsGroupCurrentMemberAssignmentValue(Message, api_key=22, versions="0", flexible="0+"):
    member_epoch: int = wire(INT32, "0+", default=0)
    previous_member_epoch: int = wire(INT32, "0+", default=0)
    state: int = wire(INT8, "0+", default=0)
    active_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = wire(
        Array(StreamsGroupCurrentMemberAssignmentTaskIds), "0+", factory=list
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = wire(
        Array(StreamsGroupCurrentMemberAssignmentTaskIds), "0+", factory=list
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentTaskIds] = wire(
        Array(StreamsGroupCurrentMemberAssignmentTaskIds), "0+", factory=list
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = wire(
        Array(StreamsGroupCurrentMemberAssignmentTaskIds), "0+", factory=list
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = wire(
        Array(StreamsGroupCurrentMemberAssignmentTaskIds), "0+", factory=list
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentTaskIds] = wire(
        Array(StreamsGroupCurrentMemberAssignmentTaskIds), "0+", factory=list
    )


class StreamsGroupTopologyKey(Message, api_key=23, versions="0", flexible="none"):
    group_id: str = wire(STRING, "0", default="")


class TopicConfig(Struct):
    key: str = wire(STRING, "0+", default="")
    value: str = wire(STRING, "0+", default="")


class StreamsGroupTopologyTopicInfo(Struct):
    name: str = wire(STRING, "0+", default="")
    partitions: int = wire(INT32, "0+", default=0)
    replication_factor: int = wire(INT16, "0+", default=0)
    topic_configs: list[TopicConfig] = wire(Array(TopicConfig), "0+", factory=list)


class CopartitionGroup(Struct):
    source_topics: list[int] = wire(Array(INT16), "0+", factory=list)
    source_topic_regex: list[int] = wire(Array(INT16), "0+", factory=list)
    repartition_source_topics: list[int] = wire(Array(INT16), "0+", factory=list)


class Subtopology(Struct):
    subtopology_id: str = wire(STRING, "0+", default="")
    source_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    source_topic_regex: list[str] = wire(Array(STRING), "0+", factory=list)
    state_changelog_topics: list[StreamsGroupTopologyTopicInfo] = wire(
        Array(StreamsGroupTopologyTopicInfo), "0+", factory=list
    )
    repartition_sink_topics: list[str] = wire(Array(STRING), "0+", factory=list)
    repartition_source_topics: list[StreamsGroupTopologyTopicInfo] = wire(
        Array(StreamsGroupTopologyTopicInfo), "0+", factory=list
    )
    copartition_groups: list[CopartitionGroup] = wire(Array(CopartitionGroup), "0+", factory=list)


class StreamsGroupTopologyValue(Message, api_key=23, versions="0", flexible="0+"):
    epoch: int = wire(INT32, "0+", default=0)
    subtopologies: list[Subtopology] = wire(Array(Subtopology), "0+", factory=list)


def _by_type(suffix: str) -> dict[int, type[Message]]:
    classes = [
        value for value in globals().values() if isinstance(value, type) and issubclass(value, Message)
    ]
    return {record.api_key: record for record in classes if record.__name__.endswith(suffix)}


KEY_TYPES = _by_type("Key")
"""The class of each record type's key."""

VALUE_TYPES = _by_type("Value")
"""The class of each record type's value."""
