"""The group coordinator of this broker: which shards it holds, and how requests and time reach them.

Imported before the port is open, and therefore light: what decides about groups is loaded with the
first of them.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import trio

from broker.coordination.partitioning import partition_for
from broker.coordination.timers import Timers
from broker.errors import ErrorCode, KafkaError
from broker.metadata.topic_names import GROUP_OFFSETS
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.coordination.decision import Decision, Moment
    from broker.coordination.leader_log import LeaderLog
    from broker.coordination.shard import Shard
    from broker.coordination.tickets import Ticket
    from broker.groups.cluster import Cluster
    from broker.groups.machine import GroupMachine
    from broker.groups.settings import GroupSettings
    from broker.metadata.image import MetadataImage, TopicImage
    from broker.metadata.replay import MetadataChanges
    from broker.services import Services

LOADS_AT_ONCE: Final = 4
"""Partitions read at the same time: each holds a piece of its log in memory."""

RELOAD_DELAY_SECONDS: Final = 1.0
"""Before a shard that could not write is loaded again: its disk may need the time, its clients have it."""

DUE_BEFORE_YIELD: Final = 20
"""Shards advanced in a row: then requests have their turn."""


class GroupService:
    """Follows the metadata image: one shard for each partition of ``__consumer_offsets`` that is led here.

    ``commands`` is how requests come here.  A group whose partition is led elsewhere is refused with
    NOT_COORDINATOR.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._shards: dict[int, Shard[GroupMachine]] = {}
        self._logs: dict[int, LeaderLog] = {}
        self._to_begin: dict[int, None] = {}
        """Partitions led here whose logs nobody has looked at since the start; in order."""
        self._on_request: set[int] = set()
        """Partitions led here that begin with their first request: just made, or not readable last time."""
        self._topic_id: bytes | None = None
        self._partition_count: int | None = None
        self._followed = 0
        """Partitions that the topic has had so far: those behind them are new, and hold nothing."""
        self._deleted_meanwhile: dict[int, set[str]] = {}
        """Topics deleted while a shard could not drop their offsets."""
        self._timers: Timers[int] = Timers()
        self._sleep: trio.CancelScope | None = None
        self._nursery: trio.Nursery | None = None
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)

    @cached_property
    def settings(self) -> GroupSettings:
        """What groups go by; read once, as Kafka does."""
        from broker.groups.settings import GroupSettings

        return GroupSettings.from_config(self._services.config)

    @cached_property
    def cluster(self) -> Cluster:
        """Topics and group settings as the machines see them; follows images from its first use on."""
        from broker.groups.cluster import Cluster

        return Cluster(self._services.image, self._services.config)

    # Lifetime

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load what this broker leads, keep time and serve, until cancelled.

        Nothing is lost by being cancelled: whatever was acknowledged is in the log.
        """
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                topic = self._services.image.topics.get(GROUP_OFFSETS)
                if topic is not None:
                    self._follow(topic)
                task_status.started()
                await self._keep_time()
            finally:
                self._nursery = None

    def published(self, image: MetadataImage, changes: MetadataChanges) -> None:
        """Called with every image, after the partitions have followed it."""
        if "cluster" in self.__dict__:
            self.cluster.follow(image, changes)
        topic = image.topics.get(GROUP_OFFSETS)
        if self._topic_id is not None and (topic is None or topic.id != self._topic_id):
            self._end_all()
        if topic is not None and topic.id in changes.topics and self._nursery is not None:
            self._follow(topic, is_new=self._topic_id is None)
        deleted = {gone.name for gone in changes.deleted_topics.values()}
        if deleted:
            for partition in [*self._shards, *self._to_begin]:
                self._deleted_meanwhile.setdefault(partition, set()).update(deleted)
                self._drop_offsets_of_deleted_topics(partition)

    def _follow(self, topic: TopicImage, *, is_new: bool = False) -> None:
        self._topic_id = topic.id
        if self._partition_count is None:
            # Never read again: a group must not move because somebody adds partitions to the topic.
            self._partition_count = len(topic.partitions)
        nobody_begins = not self._to_begin
        for partition, image in enumerate(topic.partitions):
            log = self._logs.get(partition)
            is_led = image.leader == self._services.node_id
            if not is_led or (log is not None and log.is_over):
                self._end(partition)
            if is_led and partition not in self._shards:
                if is_new or 0 < self._followed <= partition:
                    self._on_request.add(partition)
                elif partition not in self._on_request:
                    self._to_begin[partition] = None
        self._followed = len(topic.partitions)
        if nobody_begins and self._to_begin:
            assert self._nursery is not None, "partitions are only followed while the service runs"
            self._nursery.start_soon(self._begin_one_by_one)

    async def _begin_one_by_one(self) -> None:
        """Open the logs, which may take a moment each; whoever is asked for meanwhile comes first."""
        while self._to_begin:
            self._begin(next(iter(self._to_begin)))
            await trio.lowlevel.checkpoint()

    def _begin(self, partition: int) -> None:
        from broker.coordination.decision import Moment
        from broker.coordination.leader_log import LeaderLog
        from broker.coordination.shard import Shard
        from broker.groups.machine import CODEC, GroupMachine
        from protocol.records.compression import Compression

        self._to_begin.pop(partition, None)
        self._on_request.discard(partition)
        try:
            leader = self._services.partitions.leader(GROUP_OFFSETS, partition)
        except (KafkaError, StorageError) as error:
            self._services.log.error(f"the groups of {GROUP_OFFSETS}-{partition} are not served: {error}")
            self._on_request.add(partition)
            return
        config = self._services.config
        clock = self._services.clock
        log = LeaderLog(leader, self._services)
        shard = Shard(
            f"{GROUP_OFFSETS}-{partition}",
            CODEC,
            lambda: GroupMachine(self.settings, self.cluster),
            now=lambda: Moment(self._steady_ms(), clock.now_ms()),
            commit_timeout_ms=config.get("offsets.commit.timeout.ms"),
            compression=Compression(config.get("offsets.topic.compression.codec")),
            log=self._services.log,
            reload=lambda _: self._reload_soon(partition),
        )
        self._shards[partition] = shard
        self._logs[partition] = log
        if shard.begin(log):
            assert self._nursery is not None, "shards only begin while the service runs"
            self._nursery.start_soon(self._load, partition, shard)
        else:
            self._drop_offsets_of_deleted_topics(partition)
            self._watch(partition, shard)

    def _end(self, partition: int) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.end()
        self._logs.pop(partition, None)
        self._to_begin.pop(partition, None)
        self._on_request.discard(partition)
        self._deleted_meanwhile.pop(partition, None)
        self._timers.forget(partition)

    def _end_all(self) -> None:
        for partition in [*self._shards, *self._to_begin, *self._on_request]:
            self._end(partition)
        self._topic_id = None
        self._partition_count = None
        self._followed = 0

    def _reload_soon(self, partition: int) -> None:
        shard, log = self._shards[partition], self._logs[partition]
        if log.is_over or self._nursery is None:
            shard.end()
        else:
            self._nursery.start_soon(self._load, partition, shard, RELOAD_DELAY_SECONDS)

    async def _load(self, partition: int, shard: Shard[GroupMachine], delay_seconds: float = 0.0) -> None:
        await trio.sleep(delay_seconds)
        async with self._loads:
            await shard.load()
        if self._shards.get(partition) is shard:
            self._drop_offsets_of_deleted_topics(partition)
            self._watch(partition, shard)

    def _drop_offsets_of_deleted_topics(self, partition: int) -> None:
        shard = self._shards.get(partition)
        if shard is None or not shard.is_active:
            return  # when it is loaded
        topics = self._deleted_meanwhile.pop(partition, None)
        if topics:
            from broker.coordination.tickets import Ticket

            ticket: Ticket[None] = Ticket(lambda code: None)
            self.ask_partition(partition, ticket, lambda machine, _: machine.topics_deleted(topics, ticket))

    # Time

    def _steady_ms(self) -> int:
        """Trio's time.  What is due at a millisecond is due, not a hair early, when the loop wakes for it."""
        return math.floor(self._services.clock.current_time() * 1000 + 0.001)

    def _watch(self, partition: int, shard: Shard[GroupMachine]) -> None:
        deadline_ms = shard.deadline_ms()
        if deadline_ms is None:
            return
        self._timers.wake_by(partition, deadline_ms)
        if self._sleep is not None and deadline_ms / 1000 < self._sleep.deadline:
            self._sleep.deadline = deadline_ms / 1000

    async def _keep_time(self) -> None:
        """One task wakes all shards, and through them all groups."""
        while True:
            earliest_ms = self._timers.earliest_ms()
            deadline = math.inf if earliest_ms is None else earliest_ms / 1000
            with trio.CancelScope(deadline=deadline) as self._sleep:
                await trio.sleep_forever()
            self._sleep = None
            advanced = 0
            while (partition := self._timers.take_due(self._steady_ms())) is not None:
                shard = self._shards.get(partition)
                if shard is None:
                    continue
                shard.advance()
                self._watch(partition, shard)
                advanced += 1
                if advanced % DUE_BEFORE_YIELD == 0:
                    await trio.lowlevel.checkpoint()

    # Requests

    def partition_for(self, group_id: str) -> int:
        """The partition that keeps this group, whether the topic is there or not."""
        count = self._partition_count
        if count is None:
            topic = self._services.image.topics.get(GROUP_OFFSETS)
            if topic is None:
                count = self._services.config.get("offsets.topic.num.partitions")
            else:
                count = len(topic.partitions)
        return partition_for(group_id, count)

    @property
    def partitions(self) -> list[int]:
        """Those that are led here and may hold groups."""
        return [*self._shards, *self._to_begin]

    def is_unread(self, partition: int) -> bool:
        """Whether nobody has looked at this partition's log yet."""
        return partition in self._to_begin

    def ask(
        self, group_id: str, ticket: Ticket[Any], command: Callable[[GroupMachine, Moment], Decision]
    ) -> None:
        """Let the machine that keeps the group decide; ``ticket`` is settled at once, or later."""
        self.ask_partition(self.partition_for(group_id), ticket, command)

    def ask_partition(
        self, partition: int, ticket: Ticket[Any], command: Callable[[GroupMachine, Moment], Decision]
    ) -> None:
        """The same for a partition."""
        if partition in self._to_begin or partition in self._on_request:
            self._begin(partition)
        shard = self._shards.get(partition)
        if shard is None:
            ticket.refuse(ErrorCode.NOT_COORDINATOR)
            return
        try:
            shard.run(command, ticket)
        finally:
            self._watch(partition, shard)


@asynccontextmanager
async def open_groups(services: Services) -> AsyncIterator[GroupService]:
    """A service that serves inside the block.  The partitions must follow images before it does."""
    service = GroupService(services)
    services.controller.on_publish(service.published)
    async with trio.open_nursery() as nursery:
        await nursery.start(service.run)
        try:
            yield service
        finally:
            nursery.cancel_scope.cancel()
