"""The partitions of this broker: which of them it leads, and where their logs are."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import trio

from broker.config.topic_settings import TopicSettings
from broker.errors import ErrorCode, KafkaError
from broker.flushing import run_flush
from broker.metadata.image import MetadataImage, PartitionImage, ResourceType, TopicImage
from broker.metadata.replay import MetadataChanges
from broker.network.waiting import NotYet, Waiting
from broker.partitions.cleaning import keep_compacted
from broker.partitions.fetch_sessions import FetchSessions, PartitionKey
from broker.partitions.housekeeping import keep_house
from broker.partitions.leader import Leader, PendingAppend
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.errors import DiskFailure, InconsistentTopicId, ReplicaExists, StorageError
from storage.log_directory import LogDirectory
from storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from broker.services import Services

CHECKS_AT_ONCE_MAX = 4
"""Batches checked in threads at the same time; more would only take turns at the interpreter."""

COMPLAINT_INTERVAL_MS = 10_000
"""A disk that fails may fail with every request: that is reported once in this time."""

GLANCES_AT_ONCE = 100
"""Closed logs that a thread looks at in one go."""

NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
DELETED = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class _Missing(NamedTuple):
    """A replica that this broker has been given and that is on no disk yet."""

    topic_id: bytes
    config: LogConfig


class PartitionManager:
    """Follows the cluster's image: makes, opens and deletes logs, and knows who leads each.

    A log is opened when somebody asks for its partition.  A new one is made in the background; those that
    somebody waits for, see ``require_made``, come first.
    """

    def __init__(self, services: "Services", directories: Sequence[LogDirectory]) -> None:
        """``directories`` are the entries of ``log.dirs``."""
        self.directories = tuple(directories)
        self._services = services
        self._leaders: dict[PartitionKey, Leader] = {}
        """Every open one twice, under its topic's name and under its id."""
        self._homes: dict[Replica, LogDirectory] = {}
        """Where each replica lies."""
        self.missing: dict[Replica, _Missing] = {}
        """Replicas that are still to be made."""
        self._awaited: dict[Replica, list[Callable[[], None]]] = {}
        """Whom to tell when one is made, cannot be made, or is wanted no longer."""
        self._disk_lock = Lock()
        """Held while a replica is made, opened or deleted, in the loop or in a thread."""
        self._has_missing = trio.Event()
        self._check_slots = trio.CapacityLimiter(CHECKS_AT_ONCE_MAX)
        self._complained_ms = 0
        self._nursery: trio.Nursery | None = None
        self._fetch_sessions: FetchSessions | None = None
        for directory in self.directories:
            for replica in directory.replicas:
                if replica in self._homes:
                    raise ReplicaExists(f"{self._homes[replica].path}: {replica[0]}-{replica[1]}")
                self._homes[replica] = directory

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
        if not replicas:
            return
        waiting: Waiting[None] = Waiting()
        unmade = len(replicas)

        def made() -> None:
            nonlocal unmade
            unmade -= 1
            if not unmade:
                waiting.answer(None)

        for replica in replicas:
            self._awaited.setdefault(replica, []).append(made)
        raise NotYet(waiting)

    @property
    def open_leaders(self) -> list[Leader]:
        """Those that somebody has asked for since the start."""
        return [leader for (topic, _), leader in self._leaders.items() if isinstance(topic, str)]

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The sessions of all consumers of this broker."""
        if self._fetch_sessions is None:
            slots = self._services.config.get("max.incremental.fetch.session.cache.slots")
            self._fetch_sessions = FetchSessions(slots, self._services.identifiers.fetch_session_id)
        return self._fetch_sessions

    def _lead(self, key: PartitionKey) -> Leader:
        topic, index, partition = self._find(key)
        if partition.leader != self._services.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        settings = self.settings_of(topic.name)
        leader = Leader(
            self._open(topic, index, settings),
            leader_epoch=partition.leader_epoch,
            settings=settings,
            surroundings=self,
        )
        self._leaders[topic.name, index] = self._leaders[topic.id, index] = leader
        return leader

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

    def closed_replicas(self) -> list[tuple[Replica, LogConfig]]:
        """Replicas that this broker leads and nobody has asked for since the start."""
        image = self._services.image
        configs: dict[str, LogConfig] = {}
        found = []
        for replica, directory in list(self._homes.items()):  # threads may add to it
            topic, index = replica
            partition = image.partition(topic, index)
            if (
                directory.log(topic, index) is None
                and partition is not None
                and partition.leader == self._services.node_id
            ):
                if topic not in configs:
                    configs[topic] = LogConfig.from_settings(self.settings_of(topic))
                found.append((replica, configs[topic]))
        return found

    async def find_closed_in_need(self, *, compacts: bool) -> AsyncIterator[PartitionLog]:
        """Open those logs that seem to need retention or, if ``compacts``, the cleaner.

        The others, which may be thousands, stay closed: threads look at their files.
        """
        closed = [entry for entry in self.closed_replicas() if entry[1].compacts is compacts]
        for first in range(0, len(closed), GLANCES_AT_ONCE):
            some = closed[first : first + GLANCES_AT_ONCE]
            now_ms = self._services.clock.now_ms()
            for replica in await self._services.run_blocking(self._glance, some, now_ms):
                try:
                    yield self.leader(*replica).log
                except KafkaError:
                    pass  # gone meanwhile, or damaged, which was reported

    def _glance(self, replicas: Sequence[tuple[Replica, LogConfig]], now_ms: int) -> list[Replica]:
        found = []
        for replica, config in replicas:
            with self._disk_lock:
                directory = self._homes.get(replica)
                if directory is not None and directory.may_need_care(*replica, config, now_ms=now_ms):
                    found.append(replica)
        return found

    def settings_of(self, topic: str) -> TopicSettings:
        """A topic's effective settings."""
        return self._services.config.topic(self._services.image.topic_config(topic))

    # Logs

    def _open(self, topic: TopicImage, index: int, settings: TopicSettings) -> PartitionLog:
        replica = topic.name, index
        config = LogConfig.from_settings(settings)
        now_ms = self._services.clock.now_ms()
        try:
            with self._disk_lock:
                directory = self._homes.get(replica)
                if directory is not None:
                    try:
                        log = directory.open_log(*replica, topic.id, config, now_ms=now_ms)
                        log.config = config  # it may have been open with older settings
                        return log
                    except InconsistentTopicId as inconsistency:
                        self._set_aside(directory, replica, str(inconsistency))
                return self._make(replica, _Missing(topic.id, config))
        except StorageError as failure:
            self._complain(f"partition {index} of {topic.name} cannot be opened: {failure}")
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from failure

    def _make(self, replica: Replica, missing: _Missing) -> PartitionLog:
        """A new log, where there are fewest.  Under ``_disk_lock``, perhaps in a thread."""
        directory = self.directories[0]
        if len(self.directories) > 1:
            homes = list(self._homes.values())
            directory = min(self.directories, key=homes.count)
        log = directory.create_log(
            *replica, missing.topic_id, missing.config, now_ms=self._services.clock.now_ms()
        )
        self._homes[replica] = directory
        self.missing.pop(replica, None)
        return log

    def _set_aside(self, directory: LogDirectory, replica: Replica, reason: str) -> None:
        path = directory.set_aside(*replica)
        del self._homes[replica]
        self._services.log.warn(f"{reason}; it is kept as {path}")

    def _delete(self, replica: Replica) -> None:
        self.missing.pop(replica, None)
        leader = self._leaders.pop(replica, None)
        settings = self._services.config.topic({})  # the topic's own are gone with it
        if leader is not None:
            settings = leader.settings
            self._leaders.pop((leader.topic_id, leader.partition), None)
        with self._disk_lock:
            directory = self._homes.pop(replica, None)
            if directory is not None:
                try:
                    directory.delete_log(
                        *replica, delay_ms=settings.file_delete_delay_ms, now_ms=self._services.clock.now_ms()
                    )
                except DiskFailure as failure:
                    self._services.log.error(f"partition {replica[1]} of {replica[0]} stays: {failure}")
        if leader is not None:
            leader.end(DELETED)

    # Following the image

    def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        """Do what a new image says.  The settings of the broker itself are up to date already."""
        for topic in changes.deleted_topics.values():
            for index in range(len(topic.partitions)):
                self._delete((topic.name, index))
        for topic in changes.topics.values():
            self._follow(topic)
        self._change_settings(changes)

    def _follow(self, topic: TopicImage) -> None:
        """Make, lead or drop the replicas of a topic that is new or has changed."""
        node_id = self._services.node_id
        config: LogConfig | None = None
        for index, partition in enumerate(topic.partitions):
            replica = topic.name, index
            leader = self._leaders.get(replica)
            if node_id not in partition.replicas:
                if leader is not None or replica in self._homes or replica in self.missing:
                    self._delete(replica)
            elif leader is None:
                if replica not in self._homes and replica not in self.missing:
                    if config is None:
                        config = LogConfig.from_settings(self.settings_of(topic.name))
                    self.missing[replica] = _Missing(topic.id, config)
                    self._has_missing.set()
            elif partition.leader != node_id:
                del self._leaders[replica], self._leaders[topic.id, index]
                leader.end(NOT_LEADER)
            else:
                leader.lead(partition.leader_epoch)

    def _change_settings(self, changes: MetadataChanges) -> None:
        names = {name for kind, name in changes.configs if kind == ResourceType.TOPIC}
        all_topics = any(kind == ResourceType.BROKER for kind, _ in changes.configs)
        if not names and not all_topics:
            return
        for leader in self.open_leaders:
            if all_topics or leader.topic in names:
                settings = self.settings_of(leader.topic)
                if settings is not leader.settings:
                    leader.change_settings(settings)

    # In the background

    async def load(self) -> None:
        """Before anything is served: put aside what the cluster does not know, recover the rest.

        After a clean stop this looks at names only.
        """
        image = self._services.image
        node_id = self._services.node_id
        for replica, directory in list(self._homes.items()):
            partition = image.partition(*replica)
            if partition is None or node_id not in partition.replicas:
                path = f"{directory.path}: {replica[0]}-{replica[1]}"
                self._set_aside(directory, replica, f"{path} is not in the cluster's metadata")
        for topic in image.topics.values():
            self._follow(topic)
        unrecovered = {
            replica: directory
            for replica, directory in self._homes.items()
            if directory.needs_recovery(*replica)
        }
        if unrecovered:
            from broker.partitions.recovering import recover_logs

            await recover_logs(self._services, self, unrecovered)

    async def _make_missing(self) -> None:
        """Give new replicas their folders, one by one: each costs an fsync."""
        while True:
            await self._has_missing.wait()
            self._has_missing = trio.Event()
            while self.missing or self._awaited:
                replica = next(iter(self._awaited or self.missing))
                await self._services.run_blocking(self._make_missing_one, replica)
                for made in self._awaited.pop(replica, ()):
                    made()

    def _make_missing_one(self, replica: Replica) -> None:
        with self._disk_lock:
            missing = self.missing.get(replica)
            if missing is None:
                return  # somebody has asked for it meanwhile, or deleted it
            try:
                self._make(replica, missing)
            except StorageError as failure:  # tried again, and answered for, when somebody asks for it
                self.missing.pop(replica, None)
                self._complain(f"partition {replica[1]} of {replica[0]} cannot be made yet: {failure}")

    # What leaders ask for

    def start_soon(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run a task for as long as this manager serves."""
        assert self._nursery is not None, "the manager serves"
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
        """Raises DiskFailure, which ends the broker: after that nobody knows what is on disk."""
        while True:
            job = leader.log.begin_flush()
            flushed_to = leader.log.log_end
            if job is not None:
                await run_flush(job, self._services.run_blocking, self._services.log)
                job.finish()
            if not leader.flushed(flushed_to):
                return

    def storage_failed(self, leader: Leader, failure: DiskFailure) -> None:
        self._complain(f"{leader.topic}-{leader.partition} was not written to: {failure}")

    def read_failed(self, leader: Leader, failure: StorageError) -> None:
        name = f"{leader.topic}-{leader.partition}"
        self._services.log.warn_seldom(f"{name} cannot be read: {failure}", about=f"reads of {name}")

    def _complain(self, text: str) -> None:
        now_ms = self._services.clock.now_ms()
        if now_ms - self._complained_ms >= COMPLAINT_INTERVAL_MS:
            self._complained_ms = now_ms
            self._services.log.error(text)


@asynccontextmanager
async def open_partitions(
    services: "Services", directories: Sequence[LogDirectory]
) -> AsyncIterator[PartitionManager]:
    """A manager that serves inside the block, from the image which is published at its start.

    Put it into ``services`` before requests come.  The directories stay open: whoever opened them closes
    them afterwards.
    """
    manager = PartitionManager(services, directories)
    services.controller.on_publish(manager.publish)
    await manager.load()
    async with trio.open_nursery() as nursery:
        manager._nursery = nursery
        nursery.start_soon(manager._make_missing)
        nursery.start_soon(keep_house, services, manager)
        nursery.start_soon(keep_compacted, services, manager)
        try:
            yield manager
        finally:
            nursery.cancel_scope.cancel()
