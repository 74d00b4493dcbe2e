"""What a streams application reads, writes and keeps, as its members tell it and as a group stores it."""

from collections.abc import Iterator, Mapping

from broker.groups.java_order import in_java_order
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import TopicInfo, Topology
from protocol.stored.group_records import (
    CopartitionGroup,
    StreamsGroupTopologyTopicInfo,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
)


def check_is_supported(topology: Topology) -> None:
    """Raises INVALID_REQUEST for source topics that are given by regular expressions."""
    if any(subtopology.source_topic_regex for subtopology in topology.subtopologies):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Regular expressions for source topics are not supported yet."
        )


def check_changelogs(topology: Topology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY for changelog topics that say how many partitions they have."""
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}.",
                )


def stored_topology(topology: Topology) -> StreamsGroupTopologyValue:
    """The record for what a member told.

    Raises UNKNOWN_SERVER_ERROR, as Kafka does, for a negative epoch and for two subtopologies of one id.
    """
    if topology.epoch < 0 or len({of.subtopology_id for of in topology.subtopologies}) < len(
        topology.subtopologies
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=told.subtopology_id,
                source_topics=told.source_topics,
                source_topic_regex=told.source_topic_regex,
                state_changelog_topics=list(map(_stored_topic, told.state_changelog_topics)),
                repartition_sink_topics=told.repartition_sink_topics,
                repartition_source_topics=list(map(_stored_topic, told.repartition_source_topics)),
                copartition_groups=[
                    CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in told.copartition_groups
                ],
            )
            for told in topology.subtopologies
        ],
    )


def _stored_topic(told: TopicInfo) -> StreamsGroupTopologyTopicInfo:
    return StreamsGroupTopologyTopicInfo(
        name=told.name,
        partitions=told.partitions,
        replication_factor=told.replication_factor,
        topic_configs=[TopicConfig(key=config.key, value=config.value) for config in told.topic_configs],
    )


def is_same_topology(one: StreamsGroupTopologyValue, other: StreamsGroupTopologyValue) -> bool:
    """Whether the epochs are the same and every subtopology is, in whatever order they come."""
    return one.epoch == other.epoch and subtopologies_by_id(one) == subtopologies_by_id(other)


def subtopologies_by_id(topology: StreamsGroupTopologyValue) -> Mapping[str, Subtopology]:
    """In the order in which Kafka goes through them."""
    by_id = {subtopology.subtopology_id: subtopology for subtopology in topology.subtopologies}
    return {name: by_id[name] for name in in_java_order(by_id)}


def source_topics(subtopology: Subtopology) -> Iterator[str]:
    """All topics whose partitions make a subtopology's tasks."""
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def required_topics(topology: StreamsGroupTopologyValue) -> list[str]:
    """All topics that must be there before anybody gets tasks, in the order in which Kafka looks at them."""
    names: dict[str, None] = {}
    for subtopology in subtopologies_by_id(topology).values():
        names.update(dict.fromkeys(source_topics(subtopology)))
        names.update((topic.name, None) for topic in subtopology.state_changelog_topics)
    return in_java_order(names)
