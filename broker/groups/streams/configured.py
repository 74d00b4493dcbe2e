"""A topology held against the topics that there are: how many tasks it makes, and which topics it lacks."""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final, NamedTuple

from broker.groups.java_order import in_java_order, text_as_java_compares
from broker.groups.streams.partition_counts import PartitionCounts, WrongTopics
from broker.groups.streams.statuses import StatusDetail, StreamsStatus
from broker.groups.streams.topology import required_topics, source_topics, subtopologies_by_id
from broker.metadata.topic_names import check
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import (
    StreamsGroupTopologyTopicInfo,
    StreamsGroupTopologyValue,
    Subtopology,
)

_TOPICS_SHOWN_MAX: Final = 3


class InternalTopic(NamedTuple):
    """A topic that the application makes for itself, or rather the broker for it."""

    name: str
    partition_count: int
    replication_factor: int
    """0: the broker's default."""
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A part of an application whose tasks are known: one for each partition of the largest source topic."""

    task_count: int
    source_topics: Set[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    repartition_sink_topics: Set[str]
    changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelog_topics)


class ConfiguredTopology(NamedTuple):
    """What became of a topology."""

    epoch: int
    metadata_hash: int
    """Of all topics at the time."""
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """In the order of their ids.  None if some topics make it impossible to tell."""
    missing_topics: Mapping[str, InternalTopic]
    """Internal topics that are still to be made."""
    problem: StatusDetail | None
    """Why nobody can get tasks."""

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def configure(
    topology: StreamsGroupTopologyValue, metadata_hash: int, partition_count: Callable[[str], int | None]
) -> ConfiguredTopology:
    """Hold a topology against the topics; ``partition_count`` is None for those that do not exist.

    Raises STREAMS_INVALID_TOPOLOGY, INVALID_TOPIC_EXCEPTION or UNKNOWN_SERVER_ERROR for a topology that can
    never work.
    """
    subtopologies = subtopologies_by_id(topology)
    copartitioned = [_copartitioned_topics(subtopology) for subtopology in subtopologies.values()]
    try:
        _require_sources(subtopologies.values(), partition_count)
        counts = PartitionCounts(subtopologies.values(), partition_count)
        for groups in copartitioned:
            for group in groups:
                counts.copartition(group)
        counts.decide_changelogs()
        configured = {name: _configured(of, counts) for name, of in subtopologies.items()}
        configured = {name: configured[name] for name in sorted(configured, key=text_as_java_compares)}
        missing = _missing_topics(configured.values(), required_topics(topology), partition_count)
    except WrongTopics as wrong:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, {}, wrong.problem)
    problem = None
    if missing:
        problem = StatusDetail(
            StreamsStatus.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(list(missing))}"
        )
    return ConfiguredTopology(topology.epoch, metadata_hash, configured, missing, problem)


def _copartitioned_topics(subtopology: Subtopology) -> list[list[str]]:
    sources = subtopology.source_topics
    repartitioned = [topic.name for topic in subtopology.repartition_source_topics]
    return [
        in_java_order(
            dict.fromkeys(
                [_item(sources, place) for place in group.source_topics]
                + [_item(repartitioned, place) for place in group.repartition_source_topics]
            )
        )
        for group in subtopology.copartition_groups
    ]


def _item(names: list[str], place: int) -> str:
    if not 0 <= place < len(names):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
    return names[place]


def _require_sources(
    subtopologies: Iterable[Subtopology], partition_count: Callable[[str], int | None]
) -> None:
    missing = {
        topic
        for subtopology in subtopologies
        for topic in subtopology.source_topics
        if partition_count(topic) is None
    }
    if missing:
        names = sorted(missing, key=text_as_java_compares)
        raise WrongTopics(
            StreamsStatus.MISSING_SOURCE_TOPICS, f"Source topics {_summary(names)} are missing."
        )


def _summary(names: list[str]) -> str:
    shown = ", ".join(names[:_TOPICS_SHOWN_MAX])
    more = len(names) - _TOPICS_SHOWN_MAX
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        counts.most(source_topics(subtopology)),
        frozenset(subtopology.source_topics),
        _internal_topics(subtopology.repartition_source_topics, counts),
        frozenset(subtopology.repartition_sink_topics),
        _internal_topics(subtopology.state_changelog_topics, counts),
    )


def _internal_topics(
    topics: list[StreamsGroupTopologyTopicInfo], counts: PartitionCounts
) -> dict[str, InternalTopic]:
    """In the order in which Kafka goes through them."""
    found: dict[str, InternalTopic] = {}
    for topic in topics:
        configs = {config.key: config.value for config in topic.topic_configs}
        if len(configs) < len(topic.topic_configs):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it, here and below
        check(topic.name)
        partition_count = topic.partitions or counts.decided[topic.name]
        if partition_count < 1 or topic.name in found:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        found[topic.name] = InternalTopic(
            topic.name,
            partition_count,
            topic.replication_factor,
            {key: configs[key] for key in in_java_order(configs)},
        )
    return {name: found[name] for name in in_java_order(found)}


def _missing_topics(
    subtopologies: Iterable[ConfiguredSubtopology],
    required: list[str],
    partition_count: Callable[[str], int | None],
) -> dict[str, InternalTopic]:
    wanted: dict[str, InternalTopic] = {}
    for subtopology in subtopologies:
        wanted |= subtopology.repartition_source_topics
        wanted |= subtopology.changelog_topics
    in_order = in_java_order(wanted)
    for name in required:
        found = partition_count(name)
        topic = None if found is None else wanted.pop(name, None)
        if topic is not None and topic.partition_count != found:
            raise WrongTopics(
                StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: "
                f"expected {topic.partition_count}, found {found}",
            )
    return {name: wanted[name] for name in in_order if name in wanted}
