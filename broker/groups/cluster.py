"""The cluster as groups see it: topics, and the settings that operators made for a group."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker.metadata.image import MetadataImage, ResourceType, TopicImage

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from broker.metadata.replay import MetadataChanges


class ConsumerTimes(NamedTuple):
    """What a consumer group goes by, in ms: the broker's settings under those made for the group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    """From one target assignment to the next (KIP-1263)."""


class ShareTimes(NamedTuple):
    """What the members of a share group go by, in the same way."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class StreamsSettings(NamedTuple):
    """What a streams group and its members go by, in the same way."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    initial_rebalance_delay_ms: int
    """How long a group waits for more members when it gets its first."""
    task_offset_interval_ms: int
    """How often members are to tell how far their copies of state are."""
    acceptable_recovery_lag: int
    """Offsets that a copy may lack and still count as caught up."""
    assignor: str
    standby_replicas: int
    rack_aware_tags: tuple[str, ...]


class Cluster:
    """Follows published images.  All machines of a broker share one.

    ``version`` and ``version_with_new_topics`` count as Kafka's records of regular expressions do: in
    offsets of the metadata log.
    """

    def __init__(self, image: MetadataImage, config: "BrokerConfig") -> None:
        self.image = image
        self.version_with_new_topics = image.offset
        """The image in which a topic was last created, as far as is known."""
        self._config = config
        self._changed_at: dict[str, int] = {}
        """In which image a topic was made, changed or deleted, by name."""
        self._last_change = image.offset
        self._topic_hashes: dict[str, int] = {}
        self._consumer_times: dict[str, ConsumerTimes] = {}
        self._share_times: dict[str, ShareTimes] = {}
        self._streams_settings: dict[str, StreamsSettings] = {}

    @property
    def version(self) -> int:
        return self.image.offset

    def follow(self, image: MetadataImage, changes: "MetadataChanges") -> None:
        """Take over a new image."""
        if any(topic_id not in self.image.topics_by_id for topic_id in changes.topics):
            self.version_with_new_topics = image.offset
        self.image = image
        if changes.configs:
            self._consumer_times.clear()
            self._share_times.clear()
            self._streams_settings.clear()
        if changes.brokers:
            self._topic_hashes.clear()  # their racks are part of it
        for topic in (*changes.deleted_topics.values(), *changes.topics.values()):
            self._topic_hashes.pop(topic.name, None)
            self._changed_at[topic.name] = self._last_change = image.offset

    # Topics

    def topic(self, name: str) -> TopicImage | None:
        return self.image.topics.get(name)

    def topic_of(self, topic_id: bytes) -> TopicImage | None:
        return self.image.topics_by_id.get(topic_id)

    def have_changed_since(self, version: int, names: Iterable[str]) -> bool:
        """Whether one of these topics is not what it was when ``version`` was the newest image."""
        if self._last_change <= version:
            return False
        return any(self._changed_at.get(name, -1) > version for name in names)

    def partition_count(self, topic_id: bytes) -> int:
        """How many partitions the topic has; 0 if it is gone."""
        topic = self.image.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def topic_ids(self, names: Iterable[str]) -> set[bytes]:
        """The ids of those topics that exist."""
        topics = self.image.topics
        return {topics[name].id for name in names if name in topics}

    def metadata_hash(self, names: Iterable[str]) -> int:
        """One number for all that a group's assignment depends on: its topics, their partitions and racks.

        Topics that do not exist are left out; 0 if none does.
        """
        from broker.groups.metadata_hash import group_hash, topic_hash

        known = []
        for name in sorted(names):
            topic = self.image.topics.get(name)
            if topic is None:
                continue
            value = self._topic_hashes.get(name)
            if value is None:
                value = self._topic_hashes[name] = topic_hash(topic, self.image.brokers)
            known.append(value)
        return group_hash(known)

    # Settings

    def consumer_times(self, group_id: str) -> ConsumerTimes:
        overrides = self.image.config(ResourceType.GROUP, group_id)
        kept_as = group_id if overrides else ""
        times = self._consumer_times.get(kept_as)
        if times is None:
            times = self._consumer_times[kept_as] = self._read_consumer_times(overrides)
        return times

    def _read_consumer_times(self, overrides: Mapping[str, str]) -> ConsumerTimes:
        values = self._config.group(overrides)
        return ConsumerTimes(
            values["consumer.session.timeout.ms"],
            values["consumer.heartbeat.interval.ms"],
            values["consumer.assignment.interval.ms"],
        )

    def share_times(self, group_id: str) -> ShareTimes:
        overrides = self.image.config(ResourceType.GROUP, group_id)
        kept_as = group_id if overrides else ""
        times = self._share_times.get(kept_as)
        if times is None:
            times = self._share_times[kept_as] = self._read_share_times(overrides)
        return times

    def _read_share_times(self, overrides: Mapping[str, str]) -> ShareTimes:
        values = self._config.group(overrides)
        return ShareTimes(
            values["share.session.timeout.ms"],
            values["share.heartbeat.interval.ms"],
            values["share.assignment.interval.ms"],
        )

    def streams_settings(self, group_id: str) -> StreamsSettings:
        overrides = self.image.config(ResourceType.GROUP, group_id)
        kept_as = group_id if overrides else ""
        settings = self._streams_settings.get(kept_as)
        if settings is None:
            settings = self._streams_settings[kept_as] = self._read_streams_settings(overrides)
        return settings

    def _read_streams_settings(self, overrides: Mapping[str, str]) -> StreamsSettings:
        values = self._config.group(overrides)
        assignors = self._config.get("group.streams.assignors")
        assignor = values["streams.assignor.name"]
        return StreamsSettings(
            session_timeout_ms=values["streams.session.timeout.ms"],
            heartbeat_interval_ms=values["streams.heartbeat.interval.ms"],
            assignment_interval_ms=values["streams.assignment.interval.ms"],
            initial_rebalance_delay_ms=values["streams.initial.rebalance.delay.ms"],
            task_offset_interval_ms=values["streams.task.offset.interval.ms"],
            acceptable_recovery_lag=values["streams.acceptable.recovery.lag"],
            # Another broker may know one that is not here.
            assignor=assignor if assignor in assignors else assignors[0],
            standby_replicas=values["streams.num.standby.replicas"],
            rack_aware_tags=tuple(values["streams.rack.aware.assignment.tags"]),
        )
