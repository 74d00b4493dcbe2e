"""The partitions of this broker: which of them it leads, and where their logs are."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from threading import Condition
from typing import TYPE_CHECKING

import trio

from broker import limits
from broker.config.topic_settings import TopicSettings
from broker.errors import ErrorCode, KafkaError
from broker.flushing import run_flush
from broker.metadata.image import (
    METADATA_VERSION,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from broker.metadata.replay import MetadataChanges
from broker.node_directories import cordoned_ids
from broker.partitions.assignments import Assignments
from broker.partitions.cleaning import keep_compacted
from broker.partitions.directory_news import report_cordoned, report_offline
from broker.partitions.fetch_sessions import FetchSessions, PartitionKey
from broker.partitions.housekeeping import keep_house
from broker.partitions.leader import Leader, PendingAppend
from broker.partitions.missing import Missing, MissingReplicas
from broker.partitions.places import Places
from broker.partitions.replica import NO_EPOCH, check_epoch
from broker.partitions.sorting_out import sort_out
from protocol.uuids import LOST_DIRECTORY
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.errors import (
    DiskFailure,
    InconsistentTopicId,
    NoDirectory,
    StorageError,
)
from storage.log_directory import LogDirectory
from storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from broker.node_directories import NodeDirectories
    from broker.partitions import replica as replicas
    from broker.partitions.fetcher import Fetchers
    from broker.partitions.follower import Follower
    from broker.partitions.isr_updates import IsrUpdates
    from broker.partitions.moves import Move, ReplicaMoves
    from broker.partitions.replication import IsrProposal, Replication
    from broker.partitions.throttled_followers import ThrottledFollowers
    from broker.partitions.unwritable import UnwritableReplicas
    from broker.services import Services

CHECKS_AT_ONCE_MAX = 4
"""Batches checked in threads at the same time; more would only take turns at the interpreter."""

COMPLAINT_INTERVAL_MS = 10_000
"""A disk that fails may fail with every request: that is reported once in this time."""

MAKERS = 8
"""Threads that make replicas at the same time: each waits for the device most of the time, and what waits
together costs it one commit of the file system's journal."""

MADE_AT_ONCE = 2
"""Replicas that such a thread makes in one go.  With more, those of a new topic would wait for many fsyncs of
others, and then for each other."""

OPENED_AT_ONCE = 16
"""Logs that a thread opens in one go, of partitions with several replicas."""

NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
STORAGE_FAILED = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
DELETED = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class PartitionManager:
    """Follows the cluster's image: makes, opens and deletes logs, and knows who leads each.

    A partition that this broker has alone is opened when somebody asks for it.  One of several replicas is
    opened in the background: its leader watches who follows, and its followers fetch.  A new log is made in
    the background, too; those that somebody waits for, see ``require_made``, come first.

    Invariant: of one replica there is a ``Leader``, or a ``Follower``, or neither.
    """

    def __init__(self, services: "Services", directories: "NodeDirectories") -> None:
        self.places = Places(directories)
        self._services = services
        self._leaders: dict[PartitionKey, Leader] = {}
        """Every open one twice, under its topic's name and under its id."""
        self._followers: dict[PartitionKey, Follower] = {}
        """Likewise."""
        self._fetchers: Fetchers | None = None
        self._settling: dict[Replica, Follower] = {}
        """Those that follow no longer while somebody works on their logs: nobody leads these meanwhile."""
        self._unopened: dict[Replica, None] = {}
        """Replicas that are to be opened in the background, in this order."""
        self._has_unopened = trio.Event()
        self._homes = self.places.homes
        self.assignments = Assignments(services)
        self._moves: ReplicaMoves | None = None
        self._isr_updates: IsrUpdates | None = None
        self._throttled_followers: ThrottledFollowers | None = None
        self._unwritable: UnwritableReplicas | None = None
        self.missing = MissingReplicas()
        """Replicas that are still to be made."""
        self._refusals: list[tuple[LogDirectory, DiskFailure]] = []
        """Directories that have refused a new replica, for the loop to deal with."""
        self._unmade: list[tuple[Replica, DiskFailure]] = []
        """Replicas that no directory takes, likewise."""
        self.disk_lock = Condition()
        """Held while a replica is opened or deleted, in the loop or in a thread, and as its making begins and
        ends; told when one has been made."""
        self._being_made: set[Replica] = set()
        """Those that threads make just now, without the lock."""
        self._busy_makers = 0
        self._check_slots = trio.CapacityLimiter(CHECKS_AT_ONCE_MAX)
        self._complained_ms = 0
        self._nursery: trio.Nursery | None = None
        self._has_ended = False
        self._to_start: list[tuple[Callable[..., Awaitable[None]], tuple[object, ...]]] = []
        self._fetch_sessions: FetchSessions | None = None

    @property
    def moves(self) -> "ReplicaMoves":
        """Moves between the log directories; loaded with the first of them."""
        if self._moves is None:
            from broker.partitions.moves import ReplicaMoves

            self._moves = ReplicaMoves(self._services, self)
        return self._moves

    @property
    def fetchers(self) -> "Fetchers":
        """Who fetches what others lead; loaded with the first of them."""
        if self._fetchers is None:
            from broker.partitions.fetcher import Fetchers

            self._fetchers = Fetchers(self._services, self)
        return self._fetchers

    @property
    def throttled_followers(self) -> "ThrottledFollowers":
        """Who may copy only so much from here; loaded with the first follower that fetches."""
        if self._throttled_followers is None:
            from broker.partitions.throttled_followers import ThrottledFollowers

            self._throttled_followers = ThrottledFollowers(self._services)
        return self._throttled_followers

    @property
    def unwritable(self) -> "UnwritableReplicas":
        """Replicas that others are to lead, because nothing can be written here; loaded with the first."""
        if self._unwritable is None:
            from broker.partitions.unwritable import UnwritableReplicas

            self._unwritable = UnwritableReplicas(self._services, self)
        return self._unwritable

    def is_assigning(self, replica: Replica) -> bool:
        """Whether the controller is being told of another directory for a replica that has moved."""
        return self._moves is not None and self._moves.is_assigning(replica)

    def is_moving(self, log: PartitionLog) -> bool:
        """Whether a log is being copied to another directory: it is not compacted meanwhile."""
        return self._moves is not None and self._moves.is_moving(log)

    @property
    def directories(self) -> list[LogDirectory]:
        """The log directories in use."""
        return list(self.places.online)

    # Who leads

    def leader(self, topic: str | bytes, partition: int) -> Leader:
        """The leader of a partition; ``topic`` is a name, or an id as bytes.

        Raises UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR.
        """
        return self.leader_at((topic, partition))

    def leader_at(self, key: PartitionKey) -> Leader:
        """The same for topic and partition as one key."""
        leader = self._leaders.get(key)
        return self._lead(key) if leader is None else leader

    def leader_for(self, key: PartitionKey, current_leader_epoch: int) -> Leader:
        """The same for who takes this epoch for the current one, or -1 if it knows none.

        Who asks the wrong broker hears first of all whether that is because it knows too little, as in Kafka:
        if this broker has a replica, FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH are raised, too.
        """
        leader = self._leaders.get(key)
        if leader is not None:
            return leader
        try:
            return self._lead(key)
        except KafkaError as error:
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and current_leader_epoch != NO_EPOCH:
                partition = self._find(key)[2]
                if self._services.node_id in partition.replicas:
                    check_epoch(current_leader_epoch, partition.leader_epoch)
            raise

    def follower_at(self, key: PartitionKey) -> "Follower":
        """The replica here of a partition that another broker leads, or nobody.

        Raises UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR.
        """
        follower = self._followers.get(key)
        if follower is not None:
            return follower
        topic, index, _ = self._find(key)
        self.check_not_lost((topic.name, index))
        raise NOT_LEADER

    def replica_for(self, key: PartitionKey, current_leader_epoch: int) -> "replicas.Replica":
        """The same for who may as well read a follower (KIP-392)."""
        follower = self._followers.get(key)
        return self.leader_for(key, current_leader_epoch) if follower is None else follower

    def require_made(self, keys: Iterable[PartitionKey]) -> None:
        """Raise ``NotYet`` until no log of these partitions is still to be made.

        Making one costs an fsync, which the loop should not wait for hundreds of times.  While nothing is
        ``missing`` there is no need to call this.
        """
        topics_by_id = self._services.image.topics_by_id
        replicas = set()
        for name, index in keys:
            if not isinstance(name, str):
                if (topic := topics_by_id.get(name)) is None:
                    continue
                name = topic.name
            if (name, index) in self.missing:
                replicas.add((name, index))
        self.missing.require_made(replicas)

    @property
    def open_leaders(self) -> list[Leader]:
        """Those that somebody has asked for since the start."""
        return [leader for (topic, _), leader in self._leaders.items() if isinstance(topic, str)]

    def open_leader(self, replica: Replica) -> Leader | None:
        """The leader of a partition if somebody has asked for it since the start."""
        return self._leaders.get(replica)

    @property
    def open_followers(self) -> "list[Follower]":
        """The replicas here that follow others."""
        return [follower for (topic, _), follower in self._followers.items() if isinstance(topic, str)]

    def open_follower(self, replica: Replica) -> "Follower | None":
        """The replica here of a partition that others lead, if it is open."""
        return self._followers.get(replica)

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The sessions of all consumers of this broker."""
        if self._fetch_sessions is None:
            slots = self._services.config.get("max.incremental.fetch.session.cache.slots")
            self._fetch_sessions = FetchSessions(slots, self._services.identifiers.fetch_session_id)
        return self._fetch_sessions

    def _lead(self, key: PartitionKey) -> Leader:
        topic, index, partition = self._find(key)
        replica = topic.name, index
        self.check_not_lost(replica)
        if (
            partition.leader != self._services.node_id
            or replica in self._settling
            or replica in self._followers  # the image is new, and ``publish`` is about to be called
        ):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        settings = self.settings_of(topic.name)
        return self._new_leader(self._open(topic, index, partition, settings), partition, settings)

    def _new_leader(self, log: PartitionLog, partition: PartitionImage, settings: TopicSettings) -> Leader:
        leader = Leader(log, partition=partition, settings=settings, surroundings=self)
        self._leaders[log.topic, log.partition] = self._leaders[log.topic_id, log.partition] = leader
        self._unopened.pop((log.topic, log.partition), None)
        return leader

    def _new_follower(self, log: PartitionLog, partition: PartitionImage, settings: TopicSettings) -> None:
        from broker.partitions.follower import Follower  # a node that is alone needs none

        follower = Follower(log, partition, settings, self)
        self._followers[log.topic, log.partition] = self._followers[log.topic_id, log.partition] = follower
        self._unopened.pop((log.topic, log.partition), None)
        self.fetchers.follow(follower)

    def _end_leader(self, leader: Leader, reason: KafkaError) -> None:
        del self._leaders[leader.topic, leader.partition], self._leaders[leader.topic_id, leader.partition]
        leader.end(reason)

    def _end_follower(self, follower: "Follower", reason: KafkaError) -> None:
        replica = follower.topic, follower.partition
        del self._followers[replica], self._followers[follower.topic_id, follower.partition]
        if follower.is_busy:
            self._settling[replica] = follower
        self.fetchers.release(follower)
        follower.end(reason)

    def _find(self, key: PartitionKey) -> tuple[TopicImage, int, PartitionImage]:
        image = self._services.image
        name, index = key
        if isinstance(name, str):
            topic = image.topics.get(name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            topic = image.topics_by_id.get(name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= index < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic, index, topic.partitions[index]

    def settings_of(self, topic: str) -> TopicSettings:
        """A topic's effective settings."""
        return self._services.config.topic(self._services.image.topic_config(topic))

    # Logs

    def _open(
        self, topic: TopicImage, index: int, partition: PartitionImage, settings: TopicSettings
    ) -> PartitionLog:
        replica = topic.name, index
        config = LogConfig.from_settings(settings)
        now_ms = self._services.clock.now_ms()
        directory: LogDirectory | None = None
        try:
            with self.disk_lock:
                self._wait_while_made(replica)
                directory = self._homes.get(replica)
                if directory is not None:
                    if directory not in self.places.online:  # it failed while the replica was made
                        raise NoDirectory(*replica)
                    try:
                        log = directory.open_log(*replica, topic.id, config, now_ms=now_ms)
                        log.config = config  # it may have been open with older settings
                        return log
                    except InconsistentTopicId as inconsistency:
                        self.set_aside(directory, replica, str(inconsistency))
                        directory = None
                assigned = partition.directory_of(self._services.node_id)
                log = self._make(replica, Missing(topic.id, config, assigned))
            self.tell_place(replica)
            return log
        except StorageError as failure:
            if directory is None or not self.note_failure(directory, failure):
                self._complain(f"partition {index} of {topic.name} cannot be opened: {failure}")
                if isinstance(failure, DiskFailure):
                    self.unwritable.note(replica, failure)
            raise STORAGE_FAILED from failure
        finally:
            self._note_refusals()

    def _make(self, replica: Replica, missing: Missing) -> PartitionLog:
        """A new log, in the best place that takes it.  Perhaps in a thread; nobody else makes it meanwhile.

        ``_note_refusals`` is to be called afterwards.
        """
        refused: DiskFailure | None = None
        if self.places.may_make(missing.assigned):
            for directory in self.places.candidates(replica, missing.assigned):
                try:
                    log = directory.create_log(
                        *replica, missing.topic_id, missing.config, now_ms=self._services.clock.now_ms()
                    )
                except DiskFailure as failure:
                    refused = failure
                    self.note_refusal(directory, failure)
                else:
                    self._homes[replica] = directory
                    self.missing.pop(replica, None)
                    self.places.wanted.pop(replica, None)
                    return log
        self.missing.pop(replica, None)
        raise refused or NoDirectory(*replica)

    def tell_place(self, replica: Replica) -> None:
        """Let the cluster know where a replica lies, if that is not what the metadata says."""
        topic = self._services.image.topics.get(replica[0])
        if topic is not None and replica[1] < len(topic.partitions):
            self._tell_place(topic, replica[1], topic.partitions[replica[1]])

    def _tell_place(self, topic: TopicImage, index: int, partition: PartitionImage) -> None:
        replica = topic.name, index
        directory = self._homes.get(replica)
        if directory is None or directory.id is None or self._services.node_id not in partition.replicas:
            return
        known = partition.directory_of(self._services.node_id)
        if known == directory.id or self.is_assigning(replica):
            return
        may_be_lost = known == LOST_DIRECTORY or self._unwritable is not None
        if not (may_be_lost and self.unwritable.holds_back(replica, topic.id, partition)):
            self.assignments.assign(topic.id, index, directory.id)

    def local_log(self, topic: str, index: int) -> PartitionLog:
        """The log of a replica of this broker, whoever leads it.

        Raises UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR.
        """
        found, _, partition = self._find((topic, index))
        if self._services.node_id not in partition.replicas:
            raise NOT_LEADER
        if (topic, index) not in self._homes and not self.places.may_make(
            partition.directory_of(self._services.node_id)
        ):
            raise NOT_LEADER
        log = self._open(found, index, partition, self.settings_of(topic))
        self._open_made((topic, index))  # if it was still to be made, nobody else does that
        return log

    def check_not_lost(self, replica: Replica) -> None:
        """Raise KAFKA_STORAGE_ERROR if the replica is in a directory that has failed."""
        topic = self._services.image.topics.get(replica[0])
        if topic is not None and self._is_lost(topic, replica[1]):
            raise STORAGE_FAILED

    def take_over(self, move: "Move") -> LogDirectory:
        """Put the copy in the place of the replica, and delete that; return from where.

        Raises DiskFailure, and then nothing has changed.
        """
        replica = move.replica
        leader, follower = self._leaders.get(replica), self._followers.get(replica)
        with self.disk_lock:
            source = self._homes[replica]
            log = move.target.promote_future_log(*replica)
            self._homes[replica] = move.target
            if move.cleaned_to is not None:
                move.target.note_cleaned(*replica, move.cleaned_to)
            if leader is not None:
                leader.replace_log(log)
            if follower is not None:
                follower.replace_log(log)
            try:
                source.delete_log(
                    *replica,
                    delay_ms=log.config.file_delete_delay_ms,
                    now_ms=self._services.clock.now_ms(),
                )
            except DiskFailure as failure:
                self.note_refusal(source, failure)
        self._note_refusals()
        return source

    def set_aside(self, directory: LogDirectory, replica: Replica, reason: str) -> None:
        """Keep a folder that is no replica of this broker under another name, if anything is in it.

        Raises DiskFailure.
        """
        path = directory.set_aside(*replica)
        del self._homes[replica]
        if path is None:
            self._services.log.info(f"{reason}; nothing is in it, so it is removed")
        else:
            self._services.log.warn(f"{reason}; it is kept as {path}")

    def _delete(self, replica: Replica) -> None:
        self.missing.pop(replica, None)
        self._unopened.pop(replica, None)
        self.places.lost.pop(replica, None)
        if self._moves is not None:
            self._moves.abandon(replica)
        settings = self._services.config.topic({})  # the topic's own are gone with it
        leader, follower = self._leaders.pop(replica, None), self._followers.get(replica)
        if leader is not None:
            settings = leader.settings
            self._leaders.pop((leader.topic_id, leader.partition), None)
        if follower is not None:
            settings = follower.settings
            self._end_follower(follower, DELETED)
        with self.disk_lock:
            self._wait_while_made(replica)
            directory = self._homes.pop(replica, None)
            if directory is not None:
                try:
                    directory.delete_log(
                        *replica, delay_ms=settings.file_delete_delay_ms, now_ms=self._services.clock.now_ms()
                    )
                except DiskFailure as failure:
                    self._services.log.error(f"partition {replica[1]} of {replica[0]} stays: {failure}")
                    self.note_refusal(directory, failure)
        self._note_refusals()
        if leader is not None:
            leader.end(DELETED)

    # Following the image

    def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        """Do what a new image says.  The settings of the broker itself are up to date already."""
        if self._has_ended:  # a controller in the same process stops after the partitions
            return
        for topic in changes.deleted_topics.values():
            for index in range(len(topic.partitions)):
                self._delete((topic.name, index))
        for topic in changes.topics.values():
            self._follow(topic)
        if self._fetchers is not None and changes.brokers:
            self._fetchers.brokers_changed(changes.brokers)
        self._change_settings(image, changes)

    def _follow(self, topic: TopicImage) -> None:
        """Make, lead, follow or drop the replicas of a topic that is new or has changed."""
        node_id = self._services.node_id
        config: LogConfig | None = None
        for index, partition in enumerate(topic.partitions):
            replica = topic.name, index
            is_open = replica in self._leaders or replica in self._followers
            if node_id not in partition.replicas:
                if is_open or replica in self._homes or replica in self.missing:
                    self._delete(replica)
            elif is_open or replica in self._homes:
                self._assume_role(topic, index, partition)
                self._tell_place(topic, index, partition)
            elif replica not in self.missing and not self._is_lost(topic, index):
                assigned = partition.directory_of(node_id)
                if not self.places.may_make(assigned):
                    continue
                if config is None:
                    config = LogConfig.from_settings(self.settings_of(topic.name))
                self.missing.note(replica, Missing(topic.id, config, assigned))

    def _assume_role(self, topic: TopicImage, index: int, partition: PartitionImage) -> None:
        """Lead or follow, as the image says, or let the log be opened for that."""
        replica = topic.name, index
        leader, follower = self._leaders.get(replica), self._followers.get(replica)
        log: PartitionLog | None = None
        if partition.leader == self._services.node_id:
            if leader is not None:
                leader.lead(partition)
                return
            if follower is not None:
                log = follower.log
                self._end_follower(follower, NOT_LEADER)
        else:
            if follower is not None:
                if follower.follow(partition):
                    self.fetchers.follow(follower)
                return
            if leader is not None:
                log = leader.log
                self._end_leader(leader, NOT_LEADER)
        if replica in self._settling:
            return
        if log is not None:
            self._begin_role(log, partition)
        elif len(partition.replicas) > 1:
            self._unopened[replica] = None
            self._has_unopened.set()

    def _begin_role(self, log: PartitionLog, partition: PartitionImage) -> None:
        settings = self.settings_of(log.topic)
        if partition.leader == self._services.node_id:
            self._new_leader(log, partition, settings)
        elif len(partition.replicas) > 1:
            self._new_follower(log, partition, settings)

    def was_cut(self, log: PartitionLog, offset: int) -> None:
        """A log that is followed has lost everything from ``offset`` on."""
        if self._moves is not None:
            self._moves.source_was_cut(log, offset)

    def is_busy_no_longer(self, follower: "Follower") -> None:
        """The log of one that has ended may have another role now."""
        replica = follower.topic, follower.partition
        if self._settling.get(replica) is follower:
            del self._settling[replica]
            topic = self._services.image.topics.get(replica[0])
            if topic is not None and replica[1] < len(topic.partitions) and replica in self._homes:
                partition = topic.partitions[replica[1]]
                if self._services.node_id in partition.replicas:
                    self._assume_role(topic, replica[1], partition)

    def _is_lost(self, topic: TopicImage, index: int) -> bool:
        """Whether the replica is in a directory that has failed.  One of an older topic does not count."""
        replica = topic.name, index
        return replica in self.places.lost and self.places.lost[replica] in (None, topic.id)

    def _change_settings(self, image: MetadataImage, changes: MetadataChanges) -> None:
        names = {name for kind, name in changes.configs if kind == ResourceType.TOPIC}
        all_topics = any(kind == ResourceType.BROKER for kind, _ in changes.configs)
        if all_topics or METADATA_VERSION in changes.features:
            self._cordon()
        for replica in self._opened(image, None if all_topics else names):
            settings = self.settings_of(replica.topic)
            if settings is not replica.settings:
                replica.change_settings(settings)
        if all_topics or names:
            self._change_settings_of_recovered(None if all_topics else names)
        if all_topics and self._fetchers is not None:
            self._fetchers.apply_settings()

    def _change_settings_of_recovered(self, topics: Container[str] | None) -> None:
        """Of logs that are open although nobody has asked for them: retention goes by what they say."""
        configs: dict[str, LogConfig] = {}
        for directory in self.directories:
            for log in directory.logs:
                replica = log.topic, log.partition
                if topics is not None and log.topic not in topics:
                    continue
                if replica in self._leaders or replica in self._followers:
                    continue
                if log.topic not in configs:
                    configs[log.topic] = LogConfig.from_settings(self.settings_of(log.topic))
                log.config = configs[log.topic]

    def _opened(self, image: MetadataImage, topics: Iterable[str] | None) -> "list[Leader | Follower]":
        """Replicas that are open; of these topics, or all."""
        if topics is None:
            return [*self.open_leaders, *self.open_followers]
        opened: list[Leader | Follower] = []
        for name in topics:
            topic = image.topics.get(name)
            for index in range(0 if topic is None else len(topic.partitions)):
                replica = name, index
                opened += filter(None, (self._leaders.get(replica), self._followers.get(replica)))
        return opened

    def _cordon(self) -> None:
        """Follow ``cordoned.log.dirs``."""
        named = self._services.config.get("cordoned.log.dirs") or ()
        self.places.cordoned = cordoned_ids(self.places.online, named)
        report_cordoned(self._services, self.places.cordoned)

    # In the background

    async def load(self) -> None:
        """Before anything is served: sort out what lies on disk, recover what was not closed.

        After a clean stop this looks at names only.  Raises DuplicateReplica, and DiskFailure if the broker
        cannot do without the directory.
        """
        self._cordon()
        await sort_out(self._services, self)
        for topic in self._services.image.topics.values():
            self._follow(topic)
        unrecovered = {
            replica: self._homes[replica]
            for replica in sorted(self._homes)
            if self._homes[replica].needs_recovery(*replica)
        }
        if unrecovered:
            from broker.partitions.recovering import recover_logs

            await recover_logs(self._services, self, unrecovered)
            self._note_refusals()

    async def _make_missing(self) -> None:
        """Give new replicas their folders, as one of several tasks: each costs an fsync."""
        while True:
            await self.missing.wait_for_some()
            self.assignments.gather()
            self._busy_makers += 1
            while replicas := self.missing.take(MADE_AT_ONCE):
                for replica in await self._services.run_blocking(self._make_some, replicas):
                    self.tell_place(replica)
                    self._open_made(replica)
                self._note_refusals()
                for replica in replicas:
                    self.missing.settled(replica)
            self._busy_makers -= 1
            if not self._busy_makers:
                self.assignments.send_gathered()

    def _make_some(self, replicas: Sequence[Replica]) -> list[Replica]:
        """Return those that were made."""
        return [replica for replica in replicas if self._make_missing_one(replica)]

    def _make_missing_one(self, replica: Replica) -> bool:
        """Whether the replica was made."""
        with self.disk_lock:
            self._wait_while_made(replica)
            missing = self.missing.get(replica)
            if missing is None:
                return False  # somebody has asked for it meanwhile, or deleted it
            self._being_made.add(replica)
        try:
            self._make(replica, missing)
        except StorageError as failure:  # tried again, and answered for, when somebody asks for it
            self.missing.pop(replica, None)
            self._complain(f"partition {replica[1]} of {replica[0]} cannot be made yet: {failure}")
            if isinstance(failure, DiskFailure):
                self._unmade.append((replica, failure))
            return False
        finally:
            with self.disk_lock:
                self._being_made.discard(replica)
                self.disk_lock.notify_all()
        return True

    def _wait_while_made(self, replica: Replica) -> None:
        """Under ``disk_lock``: wait until no thread makes this replica, which takes an fsync."""
        while replica in self._being_made:
            self.disk_lock.wait()

    def make_again(self, topic: str) -> None:
        """Let the replicas of a topic that could not be made be tried again, in the background."""
        if (image := self._services.image.topics.get(topic)) is not None:
            self._follow(image)

    async def _open_replicated(self) -> None:
        """Open the logs of partitions with several replicas, and lead or follow these."""
        while True:
            await self._has_unopened.wait()
            self._has_unopened = trio.Event()
            while self._unopened:
                replicas = list(islice(self._unopened, OPENED_AT_ONCE))
                await self._services.run_blocking(self._open_some, replicas)
                for replica in replicas:
                    if replica in self._unopened:  # else somebody has asked for it, or deleted it
                        del self._unopened[replica]
                        self._open_made(replica)

    def _open_some(self, replicas: Sequence[Replica]) -> None:
        """In a thread; what fails is tried again on the loop, which deals with it."""
        topics = self._services.image.topics
        now_ms = self._services.clock.now_ms()
        for replica in replicas:
            topic = topics.get(replica[0])
            if topic is None:
                continue
            config = LogConfig.from_settings(self.settings_of(topic.name))
            with self.disk_lock:
                directory = self._homes.get(replica)
                if directory is not None and directory in self.places.online:
                    try:
                        directory.open_log(*replica, topic.id, config, now_ms=now_ms)
                    except StorageError:
                        pass

    def _open_made(self, replica: Replica) -> None:
        """Lead or follow a replica of several, whose log is there."""
        topic = self._services.image.topics.get(replica[0])
        if topic is None or not replica[1] < len(topic.partitions) or replica in self._settling:
            return
        partition = topic.partitions[replica[1]]
        if (
            len(partition.replicas) == 1
            or self._services.node_id not in partition.replicas
            or replica in self._leaders
            or replica in self._followers
        ):
            return
        try:
            log = self._open(topic, replica[1], partition, self.settings_of(topic.name))
        except KafkaError:
            return  # reported, and tried again when somebody asks for it or the metadata changes
        self._begin_role(log, partition)

    # Directories that fail

    def note_failure(self, directory: LogDirectory, failure: StorageError) -> bool:
        """Something in a log directory could not be read or written: use it no longer, as Kafka does.

        False, and nothing has changed, if the directory is not at fault, or if the broker cannot do
        without it: it holds the metadata log, or is the last one.
        """
        if not isinstance(failure, DiskFailure) or failure.lacks_descriptor:
            return False
        if directory not in self.places.online:
            return True  # that is known
        if not self.places.can_spare(directory):
            return False
        self._services.log.error(
            f"log directory {directory.path} has failed, and is offline until the next start: {failure}"
        )
        leaders = [leader for leader in self.open_leaders if self._home_of(leader) is directory]
        followers = [follower for follower in self.open_followers if self._home_of(follower) is directory]
        self.places.take_offline(directory, failure, self._services.image)
        for leader in leaders:
            self._end_leader(leader, STORAGE_FAILED)
        for follower in followers:
            self._end_follower(follower, STORAGE_FAILED)
        if self._moves is not None:
            self._moves.directory_failed(directory)
        if directory.id is not None:
            self.start_soon(report_offline, self._services, directory.id)
        return True

    def note_failure_of(self, log: PartitionLog, failure: StorageError) -> bool:
        """The same for the directory in which a log lies."""
        return self.note_failure_at(log.directory, failure)

    def note_failure_at(self, path: str, failure: StorageError) -> bool:
        """The same for the directory in which a file lies."""
        for directory in self.places.online:
            if path == directory.path or path.startswith(directory.path.rstrip("/") + "/"):
                return self.note_failure(directory, failure)
        return isinstance(failure, DiskFailure)  # offline already

    def _home_of(self, leader: "replicas.Replica") -> LogDirectory | None:
        return self._homes.get((leader.topic, leader.partition))

    def note_refusal(self, directory: LogDirectory, failure: StorageError) -> None:
        """The same from a thread: the loop deals with it later."""
        if isinstance(failure, DiskFailure):
            self._refusals.append((directory, failure))

    def _note_refusals(self) -> None:
        """Deal with directories that have refused something."""
        while self._refusals:  # one by one: threads add to these lists
            self.note_failure(*self._refusals.pop(0))
        while self._unmade:
            self.unwritable.note(*self._unmade.pop(0))

    # What leaders ask for

    def start_soon(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run a task for as long as this manager serves: from its beginning, if it does not yet."""
        if self._has_ended:
            return
        if self._nursery is None:
            self._to_start.append((function, arguments))
        else:
            self._nursery.start_soon(function, *arguments)

    def check_aside(self, pending: PendingAppend) -> None:
        self.start_soon(self._check, pending)

    async def _check(self, pending: PendingAppend) -> None:
        async with self._check_slots:
            await self._services.run_blocking(pending.check)
        pending.leader.settle()

    def flush_soon(self, leader: Leader) -> None:
        self.start_soon(self._flush, leader)

    async def _flush(self, leader: Leader) -> None:
        """Raises DiskFailure, which ends the broker: after that nobody knows what is on disk.

        A directory that the broker can do without goes offline instead.
        """
        while True:
            flushed_to = leader.log.log_end
            try:
                is_flushed = await self.flush(leader.log)
            except DiskFailure:
                leader.end(STORAGE_FAILED)
                await trio.sleep(limits.LAST_ANSWERS_SECONDS)
                raise
            if is_flushed:
                if not leader.flushed(flushed_to):
                    return
            elif leader.ended is not None:
                return  # else the log has moved away from there meanwhile

    async def flush(self, log: PartitionLog) -> bool:
        """Fsync a log, for as long as it takes until there is room for what has to be written before that.

        False if its directory has failed and is offline; raises DiskFailure if an fsync fails otherwise.
        """
        while True:
            job = log.begin_flush()
            if job is None:
                return True
            try:
                await run_flush(job, self._services.run_blocking, self._services.log)
            except DiskFailure as failure:
                if self.note_failure_of(log, failure):
                    return False
                if failure.leaves_doubt:
                    raise
                self._complain(f"{log.topic}-{log.partition} is not flushed yet: {failure}")
                self.unwritable.note((log.topic, log.partition), failure)
                await trio.sleep(limits.FLUSH_RETRY_SECONDS)
            else:
                job.finish()
                return True

    def storage_failed(self, leader: Leader, failure: DiskFailure) -> None:
        if self.note_failure_of(leader.log, failure):
            return
        self._complain(f"{leader.topic}-{leader.partition} was not written to: {failure}")
        if leader.replication is not None:
            self.unwritable.note((leader.topic, leader.partition), failure)

    def read_failed(self, replica: "replicas.Replica", failure: StorageError) -> None:
        """As in Kafka, a directory does not go offline for that: other files may be readable."""
        name = f"{replica.topic}-{replica.partition}"
        self._services.log.warn_seldom(f"{name} cannot be read: {failure}", about=f"reads of {name}")

    def now_ms(self) -> int:
        return self._services.clock.now_ms()

    @property
    def isr_updates(self) -> "IsrUpdates":
        """Changes of in-sync sets; loaded with the first partition of several replicas."""
        if self._isr_updates is None:
            from broker.partitions.isr_updates import IsrUpdates

            self._isr_updates = IsrUpdates(self._services, self)
            self.start_soon(self._isr_updates.keep_shrinking)
        return self._isr_updates

    def new_replication(self) -> "Replication":
        return self.isr_updates.new_replication()

    def propose_isr(self, leader: Leader, proposal: "IsrProposal") -> None:
        self.isr_updates.propose(leader, proposal)

    def _complain(self, text: str) -> None:
        now_ms = self._services.clock.now_ms()
        if now_ms - self._complained_ms >= COMPLAINT_INTERVAL_MS:
            self._complained_ms = now_ms
            self._services.log.error(text)


@asynccontextmanager
async def open_partitions(
    services: "Services", directories: "NodeDirectories"
) -> AsyncIterator[PartitionManager]:
    """A manager that serves inside the block, from the image which is published at its start.

    Put it into ``services`` before requests come.  The directories stay open: whoever opened them closes
    them afterwards.
    """
    manager = PartitionManager(services, directories)
    services.metadata.on_publish(manager.publish)
    await manager.load()
    async with trio.open_nursery() as nursery:
        manager._nursery = nursery
        for function, arguments in manager._to_start:
            nursery.start_soon(function, *arguments)
        for _ in range(MAKERS):
            nursery.start_soon(manager._make_missing)
        nursery.start_soon(manager._open_replicated)
        nursery.start_soon(keep_house, services, manager)
        nursery.start_soon(keep_compacted, services, manager)
        try:
            yield manager
        finally:
            manager._has_ended = True
            nursery.cancel_scope.cancel()
