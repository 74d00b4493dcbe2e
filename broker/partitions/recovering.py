"""After an unclean stop: recovery of all logs, several at a time, before anybody is served."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from broker.partitions.worker_process import WorkerGone, WorkerProcess
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.errors import CorruptFile, DiskFailure, InconsistentTopicId, StorageError
from storage.filesystem import RealFileSystem
from storage.log_directory import LogDirectory
from storage.producer_state import ProducerState
from storage.recovery import LargeRecovery
from storage.recovery_job import unpack_producers
from storage.wording import counted

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services

LOGS_AT_ONCE: Final = 50
"""Logs that a thread recovers in one go: the way there and back costs more than a small log."""

SMALL_BYTES: Final = 4 << 20
"""A log with more than this to check comes after all others, when it is known how much there is."""

WORKER_BYTES_MIN: Final = 128 << 20
"""Together as much as this is checked by processes of their own: threads would share one interpreter."""

PROGRESS_SECONDS: Final = 5.0


class _Large(NamedTuple):
    size_bytes: int
    replica: Replica
    directory: LogDirectory


async def recover_logs(
    services: "Services", manager: "PartitionManager", replicas: Mapping[Replica, LogDirectory]
) -> None:
    """Recover these, which lie in the directories named, and leave them open.

    As many of a directory at once as ``num.recovery.threads.per.data.dir`` says.  What cannot be recovered is
    reported, and stays as it is.
    """
    await _Recovery(services, manager, replicas).run()


class _Recovery:
    def __init__(
        self, services: "Services", manager: "PartitionManager", replicas: Mapping[Replica, LogDirectory]
    ) -> None:
        self._services = services
        self._manager = manager
        self._replicas = replicas
        self._configs: dict[str, LogConfig] = {}
        self._large: list[_Large] = []
        self._logs_done = 0
        self._bytes_done = 0
        self._bytes_to_do = 0

    async def run(self) -> None:
        log = self._services.log
        log.info(f"recovering {counted(len(self._replicas), 'partition')} after an unclean stop")
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tell_progress)
            await self._recover_small()
            if self._large:
                await self._recover_large()
            nursery.cancel_scope.cancel()
        checked = f", checking {_gigabytes(self._bytes_to_do)} GB of large ones," if self._bytes_to_do else ""
        recovered = f"recovered {counted(self._logs_done, 'partition')}{checked}"
        log.info(f"{recovered} in {trio.current_time() - start:.1f} s")

    async def _tell_progress(self) -> None:
        checked_before = 0
        logs_before = 0
        while True:
            await trio.sleep(PROGRESS_SECONDS)
            text = f"recovered {self._logs_done} of {counted(len(self._replicas), 'partition')}"
            if self._bytes_to_do:
                rate = (self._bytes_done - checked_before) / PROGRESS_SECONDS / 1e6
                text += (
                    f", and checked {_gigabytes(self._bytes_done)} of {_gigabytes(self._bytes_to_do)} GB "
                    f"of the large ones, {rate:.0f} MB/s"
                )
            else:
                text += f", {(self._logs_done - logs_before) / PROGRESS_SECONDS:.0f} a second"
            self._services.log.info(text)
            checked_before = self._bytes_done
            logs_before = self._logs_done

    @property
    def _at_once(self) -> int:
        threads: int = self._services.config.get("num.recovery.threads.per.data.dir")
        return threads

    async def _recover_small(self) -> None:
        queues: dict[LogDirectory, list[Replica]] = {}
        for replica, directory in self._replicas.items():
            queues.setdefault(directory, []).append(replica)
        async with trio.open_nursery() as nursery:
            for directory, replicas in queues.items():
                queue = iter(replicas)
                for _ in range(self._at_once):
                    nursery.start_soon(self._recover_in_threads, queue, directory, SMALL_BYTES)

    async def _recover_large(self) -> None:
        self._bytes_to_do = sum(large.size_bytes for large in self._large)
        queues: dict[LogDirectory, list[Replica]] = {}
        for _, replica, directory in sorted(self._large, key=lambda large: large.size_bytes, reverse=True):
            queues.setdefault(directory, []).append(replica)
        async with trio.open_nursery() as nursery:
            for directory, replicas in queues.items():
                queue = iter(replicas)
                is_real = isinstance(directory.services.file_system, RealFileSystem)
                for _ in range(min(self._at_once, len(replicas))):
                    if is_real and self._bytes_to_do >= WORKER_BYTES_MIN:
                        nursery.start_soon(self._recover_in_process, queue, directory)
                    else:
                        nursery.start_soon(self._recover_in_threads, queue, directory, None)

    async def _recover_in_threads(
        self, queue: Iterator[Replica], directory: LogDirectory, size_max: int | None
    ) -> None:
        while replicas := list(islice(queue, LOGS_AT_ONCE if size_max is not None else 1)):
            large = await self._services.run_blocking(self._open, replicas, directory, size_max)
            self._logs_done += len(replicas) - len(large)
            self._large += large

    def _open(
        self,
        replicas: list[Replica],
        directory: LogDirectory,
        size_max: int | None,
        producers: ProducerState | None = None,
    ) -> list[_Large]:
        """Open logs, recovering them unless that was done; return those with too much to check."""
        large = []
        now_ms = self._services.clock.now_ms()
        for replica in replicas:
            topic = self._services.image.topics[replica[0]]
            try:
                directory.open_log(
                    *replica,
                    topic.id,
                    self._config_of(topic.name),
                    recovery_max=size_max,
                    recovered_producers=producers,
                    now_ms=now_ms,
                )
            except LargeRecovery as found:
                large.append(_Large(found.size_bytes, replica, directory))
            except InconsistentTopicId:
                pass  # put aside when somebody asks for the partition
            except StorageError as failure:
                self._report_failure(replica, failure)
                self._manager.note_refusal(directory, failure)
        return large

    async def _recover_in_process(self, queue: Iterator[Replica], directory: LogDirectory) -> None:
        worker = WorkerProcess()
        try:
            for replica in queue:
                producers: ProducerState | None = None
                try:
                    producers = await self._check(worker, replica, directory)
                except WorkerGone as gone:
                    self._services.log.warn(f"{gone}; the logs that it was to check are checked here")
                except CorruptFile as damage:
                    directory.note_damage(*replica, damage)
                    self._report_failure(replica, damage)
                    continue
                except DiskFailure as failure:
                    self._report_failure(replica, failure)
                    self._manager.note_refusal(directory, failure)
                    continue
                await self._services.run_blocking(self._open, [replica], directory, None, producers)
                self._logs_done += 1
        finally:
            await worker.close()

    async def _check(
        self, worker: WorkerProcess, replica: Replica, directory: LogDirectory
    ) -> ProducerState | None:
        """Have a log recovered on disk; None if there was nothing.

        Raises WorkerGone, CorruptFile or DiskFailure.
        """
        now_ms = self._services.clock.now_ms()
        job = directory.recovery_job(*replica, self._config_of(replica[0]), now_ms=now_ms)
        await worker.give("recover", job._asdict())
        while True:
            answer = await worker.hear()
            if "checked" in answer:
                self._bytes_done += answer["checked"]
            elif "report" in answer:
                self._services.log.warn(answer["report"])
            elif "failed" in answer:
                if answer["is_damage"]:
                    raise CorruptFile(job.directory, answer["failed"])
                raise DiskFailure(job.directory, "recover", OSError(answer["failed"]))
            else:
                packed = answer["recovered"]
                return None if packed is None else unpack_producers(packed, job, now_ms=now_ms)

    def _config_of(self, topic: str) -> LogConfig:
        config = self._configs.get(topic)
        if config is None:
            settings = self._manager.settings_of(topic)
            config = self._configs[topic] = LogConfig.from_settings(settings)
        return config

    def _report_failure(self, replica: Replica, failure: StorageError) -> None:
        topic, partition = replica
        self._services.log.error(f"partition {partition} of {topic} cannot be recovered: {failure}")


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}"
