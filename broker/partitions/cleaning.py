"""Compaction of this broker's logs: which one is next, the process that does it, and the swap afterwards."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from broker.partitions.closed_logs import find_closed_in_need
from broker.partitions.housekeeping import delete_expired
from broker.partitions.worker_process import WorkerGone, WorkerProcess
from protocol.errors import DecodeError
from storage.cleaner import BYTES_PER_KEY, Cleanable, Cleaned, CleaningJob
from storage.errors import CorruptFile, DiskFailure, StorageError
from storage.filesystem import RealFileSystem
from storage.partition_log import LogChanged

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services
    from storage.log_directory import LogDirectory
    from storage.partition_log import PartitionLog

KEYS_MAX = 2**31
"""More do not fit into any memory, whatever the settings say."""

LIMIT_CHECK_SECONDS = 1.0
"""How soon a job that goes on learns of another ``log.cleaner.io.max.bytes.per.second``."""

SwapIn: TypeAlias = Callable[[list[int]], Awaitable[None]]

Limit: TypeAlias = Callable[[], float]
"""The bytes per second that a job may move now."""


class CleaningFailed(Exception):
    """A log could not be cleaned; with ``is_damage`` it never will be, as its records are damaged."""

    def __init__(self, reason: str, *, is_damage: bool) -> None:
        super().__init__(reason)
        self.is_damage = is_damage


class Worker(WorkerProcess):
    """Cleans in a process of its own."""

    async def clean(self, job: CleaningJob, swap_in: SwapIn, limit: Limit) -> Cleaned:
        """Have a job done; ``swap_in`` is called whenever a cleaned segment is complete.

        Raises CleaningFailed.
        """
        told = job.bytes_per_second
        try:
            await self.give("clean", job._asdict())
            while True:
                answer: dict[str, Any] = {}
                with trio.move_on_after(LIMIT_CHECK_SECONDS):
                    answer = await self.hear()
                if (now := limit()) != told:
                    told = now
                    await self.give("limit", now)
                if "ready" in answer:
                    await swap_in(answer["ready"])
                elif "cleaned" in answer:
                    return Cleaned(*answer["cleaned"])
                elif "failed" in answer:
                    raise CleaningFailed(answer["failed"], is_damage=answer["is_damage"])
        except WorkerGone as gone:
            raise CleaningFailed(str(gone), is_damage=False) from None


class LocalWorker:
    """Does jobs in this process: for a file system that no other process can reach."""

    def __init__(self, directory: "LogDirectory") -> None:
        self._services = directory.services

    async def clean(self, job: CleaningJob, swap_in: SwapIn, _: Limit) -> Cleaned:
        """Like ``Worker.clean``, but as fast as it can."""
        from storage.cleaned_segments import clean

        ready: list[list[int]] = []
        try:
            cleaned = clean(self._services, job, ready.append, lambda _: None)
        except (StorageError, DecodeError) as damage:
            raise CleaningFailed(str(damage), is_damage=True) from damage
        except OSError as error:
            raise CleaningFailed(str(error), is_damage=False) from error
        finally:
            for bases in ready:
                await swap_in(bases)
        return cleaned

    async def close(self) -> None:
        """There is nothing to end."""


@asynccontextmanager
async def _worker(directory: "LogDirectory") -> AsyncIterator[Worker | LocalWorker]:
    is_real = isinstance(directory.services.file_system, RealFileSystem)
    worker = Worker() if is_real else LocalWorker(directory)
    try:
        yield worker
    finally:
        await worker.close()


async def keep_compacted(services: "Services", manager: "PartitionManager") -> None:
    """Clean logs for ever, as ``log.cleaner.*`` and each topic's settings say.

    Raises DiskFailure where renames fail half-way: the next start completes them.
    """
    if services.config.get("log.cleaner.enable"):
        await _Cleaner(services, manager).run()


class _Cleaner:
    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self._services = services
        self._manager = manager
        self._busy: set[PartitionLog] = set()
        self._uncleanable: set[PartitionLog] = set()
        """Damaged; as in Kafka they are left alone until the next start."""

    async def run(self) -> None:
        config = self._services.config
        while True:
            await trio.sleep(config.get("log.cleaner.backoff.ms") / 1000)
            async for _ in find_closed_in_need(self._services, self._manager, compacts=True):
                await trio.lowlevel.checkpoint()  # opening them is all that is wanted here
            self._uncleanable.intersection_update([log for _, log in self._logs()])
            async with trio.open_nursery() as nursery:
                for _ in range(config.get("log.cleaner.threads")):
                    nursery.start_soon(self._clean_what_is_due)
            for _, log in self._logs():
                if log not in self._uncleanable:
                    await delete_expired(self._services, self._manager, log)

    def _logs(self) -> "list[tuple[LogDirectory, PartitionLog]]":
        return [
            (directory, log)
            for directory in self._manager.directories
            for log in directory.logs
            if log.config.compacts and log not in self._busy and not self._manager.is_moving(log)
        ]

    async def _clean_what_is_due(self) -> None:
        """One log after the other, the dirtiest first, until none is dirty enough."""
        found = self._find_dirtiest()
        if found is None:
            return
        async with _worker(found[0]) as worker:
            while found is not None:
                directory, log, cleanable = found
                self._busy.add(log)
                try:
                    is_done = await self._clean(worker, directory, log, cleanable)
                    if log not in self._uncleanable:
                        await delete_expired(self._services, self._manager, log)
                finally:
                    self._busy.discard(log)
                if not is_done:
                    return  # tried again after a pause
                found = self._find_dirtiest()

    def _find_dirtiest(self) -> "tuple[LogDirectory, PartitionLog, Cleanable] | None":
        dirtiest: tuple[LogDirectory, PartitionLog, Cleanable] | None = None
        now_ms = self._services.clock.now_ms()
        for directory, log in self._logs():
            if log in self._uncleanable:
                continue
            try:
                cleanable = log.assess(directory.cleaner_offset(log.topic, log.partition), now_ms=now_ms)
            except DiskFailure as failure:
                if self._manager.note_failure_of(log, failure):
                    continue
                self._services.log.warn_seldom(f"{log.topic}-{log.partition} is not compacted now: {failure}")
                continue
            except StorageError as damage:
                self._give_up(log, damage)
                continue
            if cleanable.is_due(log.config) and (dirtiest is None or cleanable.ratio > dirtiest[2].ratio):
                dirtiest = directory, log, cleanable
        return dirtiest

    async def _clean(
        self,
        worker: Worker | LocalWorker,
        directory: "LogDirectory",
        log: "PartitionLog",
        cleanable: Cleanable,
    ) -> bool:
        """Whether there is nothing to wait for: the log was cleaned, cannot be, or has changed meanwhile."""
        services = self._services
        cuts = log.cuts
        start = trio.current_time()
        is_whole = True

        def is_gone() -> bool:
            return directory.log(log.topic, log.partition) is not log

        async def swap_in(bases: list[int]) -> None:
            nonlocal is_whole
            try:
                for sync in log.swap_in_steps(bases, cuts=cuts, now_ms=services.clock.now_ms()):
                    await services.run_blocking(sync)
            except LogChanged:
                is_whole = False
            except DiskFailure as failure:
                if not self._manager.note_failure_of(log, failure):
                    raise
                is_whole = False

        try:
            if not await self._manager.flush(log) or log.cuts != cuts or is_gone():
                return True
            if not await self._store_start(directory, log):
                return False
            if log.cuts != cuts or is_gone():
                return True
            cleaned = await worker.clean(self._job(log, cleanable), swap_in, self._limit)
        except CorruptFile as damage:
            self._give_up(log, damage)
            return True
        except CleaningFailed as failure:
            if is_gone():
                return True
            if failure.is_damage:
                self._give_up(log, failure)
                return True
            services.log.warn_seldom(f"{log.topic}-{log.partition} is not compacted now: {failure}")
            return False
        if not is_whole or is_gone():
            return True
        write = directory.begin_cleaner_checkpoint(log.topic, log.partition, cleaned.end_offset)
        try:
            await services.run_blocking(write)
        except StorageError as failure:
            if not self._manager.note_failure_of(log, failure):
                services.log.error(f"a checkpoint is late: {failure}")
        if not cleaned.bytes_before:
            return True  # whatever was dirty had been deleted, or was empty
        seconds = trio.current_time() - start
        services.log.info(
            f"{log.topic}-{log.partition} is compacted up to offset {cleaned.end_offset}: "
            f"{cleaned.bytes_before} bytes became {cleaned.bytes_after} in {seconds:.1f} s"
        )
        return True

    async def _store_start(self, directory: "LogDirectory", log: "PartitionLog") -> bool:
        """See to it that a crash takes no record back whose transaction the cleaner takes for forgotten."""
        while log.log_start > log.first_base:
            log_start = log.log_start
            try:
                await self._services.run_blocking(directory.begin_checkpoint())
            except DiskFailure as failure:
                if not self._manager.note_failure(directory, failure):
                    self._services.log.warn_seldom(
                        f"{log.topic}-{log.partition} is not compacted now: {failure}"
                    )
                return False
            if log.log_start == log_start:
                break
        return True

    @property
    def _threads(self) -> int:
        threads: int = self._services.config.get("log.cleaner.threads")
        return max(threads, 1)

    def _limit(self) -> float:
        rate: float = self._services.config.get("log.cleaner.io.max.bytes.per.second")
        return rate / self._threads

    def _job(self, log: "PartitionLog", cleanable: Cleanable) -> CleaningJob:
        config = self._services.config
        memory = config.get("log.cleaner.dedupe.buffer.size") * config.get(
            "log.cleaner.io.buffer.load.factor"
        )
        keys = memory / self._threads / BYTES_PER_KEY
        return log.begin_cleaning(
            cleanable,
            keys_max=int(min(max(1, keys), KEYS_MAX)),  # 1 if they are NaN, which Kafka lets a factor be
            bytes_per_second=self._limit(),
            now_ms=self._services.clock.now_ms(),
        )

    def _give_up(self, log: "PartitionLog", reason: Exception) -> None:
        self._uncleanable.add(log)
        self._services.log.error(
            f"{log.topic}-{log.partition} is not compacted any more until the next start: {reason}"
        )
