"""Which shards of a coordinator's topic this broker holds, and how requests and time reach them.

Imported before the port is open, and therefore light: shards and machines are loaded with the first of
them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import trio

from broker.coordination.partitioning import partition_for
from broker.coordination.timers import Timers
from broker.errors import ErrorCode, KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.coordination.decision import Decision, Moment
    from broker.coordination.leader_log import LeaderLog
    from broker.coordination.machine import Machine
    from broker.coordination.shard import Shard
    from broker.coordination.tickets import Ticket
    from broker.metadata.image import MetadataImage, TopicImage
    from broker.metadata.replay import MetadataChanges
    from broker.services import Services

LOADS_AT_ONCE: Final = 4
"""Partitions read at the same time: each holds a piece of its log in memory."""

RELOAD_DELAY_SECONDS: Final = 1.0
"""Before a shard that could not write is loaded again: its disk may need the time, its clients have it."""

BEGIN_AGAIN_SECONDS: Final = 0.1
"""Before a partition is tried again that this broker is to lead and does not lead yet."""

DUE_BEFORE_YIELD: Final = 20
"""Shards advanced in a row: then requests have their turn."""

M = TypeVar("M", bound="Machine")


class CoordinatorService(ABC, Generic[M]):
    """Follows the metadata image: one shard for each partition of ``topic`` that is led here.

    Whoever asks for a key whose partition is led elsewhere is refused with NOT_COORDINATOR.
    """

    topic: ClassVar[str]
    """The internal topic that keeps what the machines know."""
    partition_count_setting: ClassVar[str]
    """What says how many partitions the topic will have, as long as it is not there."""
    kept: ClassVar[str]
    """What a partition keeps, for the operator: "groups"."""
    load_buffer: ClassVar[str]
    """The setting that says how much of a partition one read takes while it is loaded."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._shards: dict[int, Shard[M]] = {}
        self._logs: dict[int, LeaderLog] = {}
        self._to_begin: dict[int, None] = {}
        """Partitions led here whose logs nobody has looked at since the start; in order."""
        self._on_request: set[int] = set()
        """Partitions led here that begin with their first request: just made, or not readable last time."""
        self._to_begin_again: set[int] = set()
        """Those of them that a task begins after a moment."""
        self._topic_id: bytes | None = None
        self._partition_count: int | None = None
        self._followed = 0
        """Partitions that the topic has had so far: those behind them are new, and hold nothing."""
        self._timers: Timers[int] = Timers()
        self._sleep: trio.CancelScope | None = None
        self.nursery: trio.Nursery | None = None
        """Of this service, while it runs."""
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)

    # What each kind of coordinator says for itself

    @abstractmethod
    def new_shard(
        self, name: str, partition: int, log: LeaderLog, now: Callable[[], Moment], reload: Callable[[], None]
    ) -> Shard[M]:
        """A shard for this partition, which has not begun yet."""

    def shard_is_ready(self, partition: int, shard: Shard[M]) -> None:
        """The shard has begun, or was loaded (again)."""

    def shard_has_ended(self, partition: int) -> None:
        """This broker does not hold the partition any more."""

    # Lifetime

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load what this broker leads, keep time and serve, until cancelled.

        Nothing is lost by being cancelled: whatever was acknowledged is in the log.
        """
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            try:
                topic = self.services.image.topics.get(self.topic)
                if topic is not None:
                    self._follow(topic)
                task_status.started()
                await self._keep_time()
            finally:
                self.nursery = None

    def published(self, image: MetadataImage, changes: MetadataChanges) -> None:
        """Called with every image, after the partitions have followed it."""
        topic = image.topics.get(self.topic)
        if self._topic_id is not None and (topic is None or topic.id != self._topic_id):
            self._end_all()
        if topic is not None and topic.id in changes.topics and self.nursery is not None:
            self._follow(topic, is_new=self._topic_id is None)

    def _follow(self, topic: TopicImage, *, is_new: bool = False) -> None:
        self._topic_id = topic.id
        if self._partition_count is None:
            # Never read again: a key must not move because somebody adds partitions to the topic.
            self._partition_count = len(topic.partitions)
        nobody_begins = not self._to_begin
        for partition, image in enumerate(topic.partitions):
            log = self._logs.get(partition)
            is_led = image.leader == self.services.node_id
            if not is_led or (log is not None and log.is_over):
                self._end(partition)
            if is_led and partition not in self._shards:
                was_just_made = is_new or 0 < self._followed <= partition or partition in self._on_request
                if was_just_made and image.leader_epoch <= 0:
                    self._on_request.add(partition)
                else:  # somebody may have led it before, and left something to go on with
                    self._on_request.discard(partition)
                    self._to_begin[partition] = None
        self._followed = len(topic.partitions)
        if nobody_begins and self._to_begin:
            assert self.nursery is not None, "partitions are only followed while the service runs"
            self.nursery.start_soon(self._begin_one_by_one)

    async def _begin_one_by_one(self) -> None:
        """Open the logs, which may take a moment each; whoever is asked for meanwhile comes first."""
        while self._to_begin:
            self._begin(next(iter(self._to_begin)))
            await trio.lowlevel.checkpoint()

    def _begin(self, partition: int) -> None:
        from broker.coordination.decision import Moment
        from broker.coordination.leader_log import LeaderLog

        if self.nursery is None:  # the service ends, and this task may be told so a moment later
            return
        self._to_begin.pop(partition, None)
        self._on_request.discard(partition)
        try:
            leader = self.services.partitions.leader(self.topic, partition)
        except (KafkaError, StorageError) as error:
            self._on_request.add(partition)
            if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._begin_soon(partition)
            else:
                text = f"the {self.kept} of {self.topic}-{partition} are not served: {error}"
                self.services.log.error(text)
            return
        clock = self.services.clock
        log = LeaderLog(leader, self.services, load_bytes_max=self.services.config.get(self.load_buffer))
        shard = self.new_shard(
            f"{self.topic}-{partition}",
            partition,
            log,
            lambda: Moment(self._steady_ms(), clock.now_ms()),
            lambda: self._reload_soon(partition),
        )
        self._shards[partition] = shard
        self._logs[partition] = log
        if shard.begin(log):
            self.nursery.start_soon(self._load, partition, shard)
        else:
            self.shard_is_ready(partition, shard)
            self.watch(partition)

    def _begin_soon(self, partition: int) -> None:
        """Nobody else leads the partition, but what this broker has followed so far is still being cut."""

        async def begin_again() -> None:
            await trio.sleep(BEGIN_AGAIN_SECONDS)
            self._to_begin_again.discard(partition)
            if partition in self._on_request:
                self._begin(partition)

        if partition not in self._to_begin_again and self.nursery is not None:
            self._to_begin_again.add(partition)
            self.nursery.start_soon(begin_again)

    def _end(self, partition: int) -> None:
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.end()
        self._logs.pop(partition, None)
        self._to_begin.pop(partition, None)
        self._on_request.discard(partition)
        self._timers.forget(partition)
        self.shard_has_ended(partition)

    def _end_all(self) -> None:
        for partition in [*self._shards, *self._to_begin, *self._on_request]:
            self._end(partition)
        self._topic_id = None
        self._partition_count = None
        self._followed = 0

    def _reload_soon(self, partition: int) -> None:
        shard, log = self._shards[partition], self._logs[partition]
        if log.is_over or self.nursery is None:
            shard.end()
        else:
            self.nursery.start_soon(self._load, partition, shard, RELOAD_DELAY_SECONDS)

    async def _load(self, partition: int, shard: Shard[M], delay_seconds: float = 0.0) -> None:
        await trio.sleep(delay_seconds)
        async with self._loads:
            await shard.load()
        if self._shards.get(partition) is shard:
            self.shard_is_ready(partition, shard)
            self.watch(partition)

    # Time

    def _steady_ms(self) -> int:
        """Trio's time.  What is due at a millisecond is due, not a hair early, when the loop wakes for it."""
        return math.floor(self.services.clock.current_time() * 1000 + 0.001)

    def watch(self, partition: int) -> None:
        """See to it that the partition's shard is woken when it wants to be."""
        shard = self._shards.get(partition)
        deadline_ms = None if shard is None else shard.deadline_ms()
        if deadline_ms is None:
            return
        self._timers.wake_by(partition, deadline_ms)
        if self._sleep is not None and deadline_ms / 1000 < self._sleep.deadline:
            self._sleep.deadline = deadline_ms / 1000

    async def _keep_time(self) -> None:
        """One task wakes all shards, and through them all that they keep."""
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
                self.watch(partition)
                advanced += 1
                if advanced % DUE_BEFORE_YIELD == 0:
                    await trio.lowlevel.checkpoint()

    # Requests

    def partition_for(self, key: str) -> int:
        """The partition that keeps this key, whether the topic is there or not."""
        count = self._partition_count
        if count is None:
            topic = self.services.image.topics.get(self.topic)
            if topic is None:
                count = self.services.config.get(self.partition_count_setting)
            else:
                count = len(topic.partitions)
        return partition_for(key, count)

    @property
    def partitions(self) -> list[int]:
        """Those that are led here and may hold something."""
        return [*self._shards, *self._to_begin]

    def is_unread(self, partition: int) -> bool:
        """Whether nobody has looked at this partition's log yet."""
        return partition in self._to_begin

    def shard(self, partition: int) -> Shard[M] | None:
        """The shard that holds the partition; it begins now if it has to.  None if it is not led here."""
        if partition in self._to_begin or partition in self._on_request:
            self._begin(partition)
        return self._shards.get(partition)

    def has_epoch(self, partition: int, leader_epoch: int) -> bool:
        """Whether the partition is still led here, in this epoch."""
        log = self._logs.get(partition)
        return log is not None and not log.is_over and log.leader_epoch == leader_epoch

    def ask(self, key: str, ticket: Ticket[Any], command: Callable[[M, Moment], Decision]) -> None:
        """Let the machine that keeps ``key`` decide; ``ticket`` is settled at once, or later."""
        self.ask_partition(self.partition_for(key), ticket, command)

    def ask_partition(
        self, partition: int, ticket: Ticket[Any], command: Callable[[M, Moment], Decision]
    ) -> None:
        """The same for a partition."""
        shard = self.shard(partition)
        if shard is None:
            ticket.refuse(ErrorCode.NOT_COORDINATOR)
            return
        try:
            shard.run(command, ticket)
        finally:
            self.watch(partition)


S = TypeVar("S", bound="CoordinatorService[Any]")


@asynccontextmanager
async def open_coordinator(service: S) -> AsyncIterator[S]:
    """The service serves inside the block.  The partitions must follow images before it does."""
    service.services.metadata.on_publish(service.published)
    async with trio.open_nursery() as nursery:
        await nursery.start(service.run)
        try:
            yield service
        finally:
            nursery.cancel_scope.cancel()
