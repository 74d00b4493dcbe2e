"""How many partitions the internal topics of a streams application must have."""

from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import NoReturn

from broker.groups.java_order import in_java_order, text_as_java_compares
from broker.groups.streams.statuses import StatusDetail, StreamsStatus
from broker.groups.streams.topology import source_topics
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import Subtopology


class WrongTopics(Exception):
    """Topics are missing, or have partitions that do not go together."""

    def __init__(self, status: StreamsStatus, detail: str) -> None:
        super().__init__(detail)
        self.problem = StatusDetail(status, detail)


class PartitionCounts:
    """The counts of internal topics, decided step by step.

    ``partition_count`` tells those of existing topics, which always go first.  All source topics exist.
    Raises STREAMS_INVALID_TOPOLOGY for a topology whose counts can never be told.
    """

    def __init__(
        self, subtopologies: Collection[Subtopology], partition_count: Callable[[str], int | None]
    ) -> None:
        self._subtopologies = subtopologies
        self._existing = partition_count
        repartitioned = [topic for of in subtopologies for topic in of.repartition_source_topics]
        self._fixed = {topic.name for topic in repartitioned if topic.partitions}
        self._flexible = {topic.name for topic in repartitioned if not topic.partitions}
        self.decided: dict[str, int] = {
            topic.name: topic.partitions for topic in repartitioned if topic.partitions
        }
        """By internal topic."""
        self._decide_sinks()
        if any(topic.name not in self.decided for topic in repartitioned):
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic.",
            )

    def _decide_sinks(self) -> None:
        """What is written to has as many partitions as the largest topic that is read for it.

        Kafka goes through all subtopologies as often as it takes; which counts are known when it comes to one
        depends on that.  The same order is kept here, but only who can decide something has its turn.
        """
        subtopologies = list(self._subtopologies)
        readers: dict[str, list[int]] = {}
        for index, subtopology in enumerate(subtopologies):
            for topic in subtopology.repartition_source_topics:
                readers.setdefault(topic.name, []).append(index)
        turns = [index for index, of in enumerate(subtopologies) if self._largest_source(of) is not None]
        had_turn = set(turns)
        next_turns: list[int] = []
        while turns:
            index = heappop(turns)
            for sink in self._decide_sinks_of(subtopologies[index]):
                for reader in readers.get(sink, ()):
                    if reader not in had_turn:
                        had_turn.add(reader)
                        heappush(turns if reader > index else next_turns, reader)
            if not turns:
                turns, next_turns = next_turns, turns
        if any(sink not in self.decided for of in subtopologies for sink in of.repartition_sink_topics):
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved.",
            )

    def _decide_sinks_of(self, subtopology: Subtopology) -> list[str]:
        count = self._largest_source(subtopology)
        assert count is not None, "its turn comes when one is known"
        sinks = [sink for sink in subtopology.repartition_sink_topics if sink not in self.decided]
        self.decided.update(dict.fromkeys(sinks, count))
        return sinks

    def _largest_source(self, subtopology: Subtopology) -> int | None:
        """Of those topics whose count is known."""
        known = [self.decided.get(topic.name) for topic in subtopology.repartition_source_topics]
        known += map(self._existing, subtopology.source_topics)
        return max((count for count in known if count is not None), default=None)

    def _count(self, topic: str) -> int:
        existing = self._existing(topic)
        return self.decided[topic] if existing is None else existing

    def most(self, topics: Iterable[str]) -> int:
        """The most partitions that one of them has."""
        return max(map(self._count, topics))

    def copartition(self, topics: list[str]) -> None:
        """Let topics that are read together have the same number; raises ``WrongTopics`` if they cannot."""
        if not topics:
            return
        repartitioned = in_java_order(
            topic for topic in topics if topic in self._fixed or topic in self._flexible
        )
        counts = {topic: self._count(topic) for topic in topics}
        own = {topic: counts[topic] for topic in repartitioned}
        others = {topic: count for topic, count in counts.items() if topic not in own}
        if others:
            same = _the_same(others.values(), others)
        elif self._fixed:
            same = _the_same(map(self._count, self._fixed), own)
        else:
            same = max(own.values())
        for topic, count in own.items():
            if topic in self._fixed and count != same:
                raise WrongTopics(
                    StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{count}] of repartition topic [{topic}] doesn't match number of "
                    f"partitions [{same}] of the source topic.",
                )
        self.decided.update(dict.fromkeys(own, same))

    def decide_changelogs(self) -> None:
        """Each store has a changelog partition for every task."""
        decided: dict[str, int] = {}
        for subtopology in self._subtopologies:
            sources = list(source_topics(subtopology))
            if not sources:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"No source topics found for subtopology {subtopology.subtopology_id}",
                )
            count = self.most(sources)
            decided.update((topic.name, count) for topic in subtopology.state_changelog_topics)
        self.decided |= decided


def _the_same(counts: Iterable[int], shown: Mapping[str, int]) -> int:
    different = set(counts)
    if len(different) > 1:
        _refuse(shown)
    return different.pop()


def _refuse(counts: Mapping[str, int]) -> NoReturn:
    pairs = ", ".join(f"{topic}={counts[topic]}" for topic in sorted(counts, key=text_as_java_compares))
    raise WrongTopics(
        StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
        f"Following topics do not have the same number of partitions: [{{{pairs}}}]",
    )
