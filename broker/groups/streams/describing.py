"""Topologies as StreamsGroupDescribe shows them."""

from collections.abc import Iterable, Mapping

from broker.groups.java_order import text_as_java_compares
from broker.groups.streams.configured import ConfiguredSubtopology, InternalTopic
from protocol.messages.streams_group_describe import KeyValue, Subtopology, TopicInfo, Topology
from protocol.stored.group_records import StreamsGroupTopologyTopicInfo, StreamsGroupTopologyValue


def describe_told(topology: StreamsGroupTopologyValue) -> Topology:
    """A topology as its members told it: internal topics may have no number of partitions."""
    return Topology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=told.subtopology_id,
                source_topics=sorted(told.source_topics, key=text_as_java_compares),
                repartition_sink_topics=sorted(told.repartition_sink_topics, key=text_as_java_compares),
                repartition_source_topics=_told_topics(told.repartition_source_topics),
                state_changelog_topics=_told_topics(told.state_changelog_topics),
            )
            for told in sorted(
                topology.subtopologies, key=lambda told: text_as_java_compares(told.subtopology_id)
            )
        ],
    )


def _told_topics(topics: Iterable[StreamsGroupTopologyTopicInfo]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda topic: text_as_java_compares(topic.name))
    ]


def describe_configured(epoch: int, subtopologies: Mapping[str, ConfiguredSubtopology]) -> Topology:
    """A topology whose topics all exist, with their numbers of partitions."""
    return Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=subtopology_id,
                source_topics=sorted(subtopology.source_topics, key=text_as_java_compares),
                repartition_sink_topics=sorted(
                    subtopology.repartition_sink_topics, key=text_as_java_compares
                ),
                repartition_source_topics=_configured_topics(subtopology.repartition_source_topics.values()),
                state_changelog_topics=_configured_topics(subtopology.changelog_topics.values()),
            )
            for subtopology_id, subtopology in subtopologies.items()
        ],
    )


def _configured_topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partition_count,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in topic.configs.items()],
        )
        for topic in sorted(topics, key=lambda topic: text_as_java_compares(topic.name))
    ]
