"""What has to be done for logs from time to time: checkpoints, late fsyncs, expiry, removal."""

from collections.abc import Awaitable, Callable, Sequence
from threading import Thread
from typing import TYPE_CHECKING

import trio

from broker.partitions.closed_logs import find_closed_in_need
from storage.errors import DiskFailure, StorageError

if TYPE_CHECKING:
    from broker.partitions.follower import Follower
    from broker.partitions.leader import Leader
    from broker.partitions.manager import PartitionManager
    from broker.services import Services
    from storage.log_directory import LogDirectory
    from storage.partition_log import FlushJob, PartitionLog
    from storage.retention import Expired

NEVER_MS = 1 << 62
"""An interval from here on is Kafka's way of saying "not at all"."""

CLOSING_THREADS_MAX = 8
"""Fsyncs that a stopping broker has under way at once: a device does several in the time of one."""

DELETED_AT_ONCE = 100
"""Segments that are dropped before others have their turn: each costs five renames."""

Chore = Callable[[], Awaitable[None]]


async def keep_house(services: "Services", manager: "PartitionManager") -> None:
    """Do everything at Kafka's intervals, for ever.

    A log that cannot be fsynced raises DiskFailure, which ends the broker; a checkpoint that cannot be
    written costs no more than a longer recovery.
    """
    house = _House(services, manager)
    often = "replica.high.watermark.checkpoint.interval.ms"
    soon, late = _after_an_interval, _after_the_start(services)
    checkpoints = ("log.flush.offset.checkpoint.interval.ms", "log.flush.start.offset.checkpoint.interval.ms")
    async with trio.open_nursery() as nursery:
        for chore, settings, first_ms in (
            (house.write_high_watermarks, (often,), soon),
            (house.flush_sealed_segments, (often,), soon),
            (house.remove_deleted, (often,), soon),
            (house.write_checkpoints, checkpoints, late),
            (house.flush_old_records, ("log.flush.scheduler.interval.ms",), late),
            (house.apply_retention, ("log.retention.check.interval.ms",), late),
            (house.expire_producers, ("producer.id.expiration.check.interval.ms",), soon),
        ):
            nursery.start_soon(_repeat, services, chore, settings, first_ms)


async def _repeat(
    services: "Services", chore: Chore, settings: Sequence[str], first_ms: Callable[[int], int]
) -> None:
    """Do a chore at the shortest of the intervals that ``settings`` name; ``first_ms`` says when first."""
    interval_ms = _interval_ms(services, settings)
    pause_ms = first_ms(interval_ms)
    while interval_ms < NEVER_MS:
        await trio.sleep(pause_ms / 1000)
        await chore()
        pause_ms = interval_ms = _interval_ms(services, settings)


def _interval_ms(services: "Services", settings: Sequence[str]) -> int:
    interval_ms: int = min(services.config.get(setting) for setting in settings)
    return interval_ms


def _after_an_interval(interval_ms: int) -> int:
    return interval_ms


def _after_the_start(services: "Services") -> Callable[[int], int]:
    """When a chore is done first that Kafka leaves for some time after a start.

    Who has set only a short interval need not wait for longer than that.
    """
    name = "log.initial.task.delay.ms"
    delay_ms: int = services.config.get(name)
    if services.config.is_set(name):
        return lambda _: delay_ms
    return lambda interval_ms: min(delay_ms, interval_ms)


class _House:
    """The chores, and what they remember between two times."""

    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self._services = services
        self._manager = manager
        self._written_high_watermarks: dict[LogDirectory, list[int]] = {}
        self._unflushed_since: dict[PartitionLog, tuple[int, int]] = {}
        """Recovery point of each log that is behind it, and when it was first seen there."""

    @property
    def _logs(self) -> "list[PartitionLog]":
        return [log for directory in self._manager.directories for log in directory.logs]

    async def write_high_watermarks(self) -> None:
        """Unless none has moved: an idle broker leaves its disk alone."""
        for directory in self._manager.directories:
            offsets = [log.high_watermark for log in directory.logs]
            if self._written_high_watermarks.get(directory) != offsets:
                self._written_high_watermarks[directory] = offsets
                await self._write(directory, directory.begin_high_watermark_checkpoint())

    async def write_checkpoints(self) -> None:
        """Recovery points and log starts."""
        for directory in self._manager.directories:
            await self._write(directory, directory.begin_checkpoint())

    async def _write(self, directory: "LogDirectory", write: Callable[[], None]) -> None:
        try:
            await self._services.run_blocking(write)
        except DiskFailure as failure:
            if not self._manager.note_failure(directory, failure):
                self._services.log.error(f"a checkpoint is late: {failure}")

    async def flush_sealed_segments(self) -> None:
        """A segment that is full is fsynced soon, whatever the settings say, so that recovery stays short."""
        for log in self._logs:
            if log.has_unflushed_segment:
                await self._manager.flush(log)

    async def flush_old_records(self) -> None:
        """Fsync what has waited for ``flush.ms``."""
        now_ms = self._services.clock.now_ms()
        seen: dict[PartitionLog, tuple[int, int]] = {}
        replicas: list[Leader | Follower] = [*self._manager.open_leaders, *self._manager.open_followers]
        for replica in replicas:
            log = replica.log
            if log.recovery_point == log.log_end:
                continue
            recovery_point, since_ms = self._unflushed_since.get(log, (-1, now_ms))
            if recovery_point != log.recovery_point:
                since_ms = now_ms
            seen[log] = log.recovery_point, since_ms
            if now_ms - since_ms >= replica.settings.flush_ms:
                await self._manager.flush(log)
        self._unflushed_since = seen

    async def apply_retention(self) -> None:
        """Let go of segments that are too old, too many, or deleted by DeleteRecords.

        What is compacted, too, is the cleaner's affair.
        """
        for log in self._logs:
            if not log.config.compacts:
                await delete_expired(self._services, self._manager, log)
        async for log in find_closed_in_need(self._services, self._manager, compacts=False):
            await delete_expired(self._services, self._manager, log)

    async def expire_producers(self) -> None:
        """Forget producers that have been idle for long."""
        now_ms = self._services.clock.now_ms()
        for directory in self._manager.directories:
            directory.services.producer_expiration_ms = self._services.config.get("producer.id.expiration.ms")
        for log in self._logs:
            log.expire_producers(now_ms=now_ms)

    async def remove_deleted(self) -> None:
        """Remove files and folders whose ``file.delete.delay.ms`` has passed."""
        for directory in self._manager.directories:
            remove = directory.services.removals.begin(self._services.clock.now_ms())
            if remove is not None:
                try:
                    await self._services.run_blocking(remove)
                except OSError as error:
                    failure = DiskFailure(directory.path, "remove deleted files of", error)
                    if not self._manager.note_failure(directory, failure):
                        self._services.log.error(f"deleted files of {directory.path} stay: {error}")


async def delete_expired(services: "Services", manager: "PartitionManager", log: "PartitionLog") -> None:
    """Apply retention to one log."""
    all_expired: Expired | None = None
    try:
        is_done = False
        while not is_done:
            expired = log.delete_expired_segments(now_ms=services.clock.now_ms(), at_most=DELETED_AT_ONCE)
            all_expired = all_expired or expired
            is_done = expired.total <= DELETED_AT_ONCE
            await trio.lowlevel.checkpoint()
        if all_expired is not None and all_expired.total:
            services.log.info(
                f"{log.topic}-{log.partition} starts at offset {log.log_start} now; segments deleted: "
                f"{all_expired.reasons()}"
            )
    except StorageError as failure:
        if not manager.note_failure_of(log, failure):
            services.log.error(f"old segments of {log.topic}-{log.partition} stay: {failure}")


def run_in_threads(jobs: "list[FlushJob]") -> None:
    """Run flushes several at a time: for ``LogDirectory.close``.  Raises the first failure."""
    queue = iter(jobs)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for job in queue:
                job.run()
        except BaseException as failure:
            failures.append(failure)

    threads = [Thread(target=work) for _ in range(min(CLOSING_THREADS_MAX, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
