"""Our side: the log, and the cleaner's work on it, in a file system in memory."""

from typing import Any

from protocol.records.batch import TimestampType, read_batch
from storage.cleaned_segments import clean
from storage.config import LogConfig
from storage.errors import StorageError
from storage.loading import create_log, load_log
from storage.log_services import LogServices
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from tests.storage.cleaning.batches import Batches
from tests.storage.cleaning.histories import EXPIRATION_MS, MAY_BE_REFUSED, History, Step
from tests.storage.cleaning.outcomes import Outcome, outcome

DIRECTORY = "data/log-0"
TOPIC_ID = bytes(15) + b"\1"
NO_CHECKPOINT = -1

DEFAULTS: dict[str, Any] = {
    "segment.bytes": 1 << 30,
    "segment.jitter.ms": 0,
    "flush.messages": (1 << 63) - 1,
    "file.delete.delay.ms": 60_000,
}


class OttlaLog:
    """The steps of a history, done by us as the broker does them."""

    def __init__(self, history: History) -> None:
        self._keys_max = history.keys_max
        self._batches = Batches()
        self._now_ms = 0
        self._memory = MemoryFileSystem(now_ms=lambda: self._now_ms)
        self._memory.make_directory(DIRECTORY)
        self._config = LogConfig()
        self._timestamp_type = TimestampType.CREATE_TIME
        self._checkpoint: int | None = None
        self._log: PartitionLog | None = None
        self._services = self._new_services()

    def _new_services(self) -> LogServices:
        return LogServices(
            self._memory,
            random_below=lambda _: 0,
            report=lambda _: None,
            producer_expiration_ms=EXPIRATION_MS,
        )

    @property
    def log(self) -> PartitionLog:
        assert self._log is not None
        return self._log

    def perform(self, step: Step) -> bool:
        """Whether it was done; a batch may be refused."""
        try:
            getattr(self, step.name)(**step.facts)
        except StorageError:
            if step.name not in MAY_BE_REFUSED:
                raise
            return False
        return True

    def configure(self, settings: dict[str, Any]) -> None:
        policies = settings["cleanup.policy"].split(",")
        self._config = LogConfig.from_settings({**DEFAULTS, **settings, "cleanup.policy": policies})
        if settings["message.timestamp.type"] == "LogAppendTime":
            self._timestamp_type = TimestampType.LOG_APPEND_TIME
        if self._log is None:
            self._log = create_log(
                self._services, DIRECTORY, "log", 0, TOPIC_ID, self._config, now_ms=self._now_ms
            )
        self._log.config = self._config

    def clock(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def write(self, *, is_coordinator: bool = False, **facts: Any) -> None:
        self._append(self._batches.data(**facts), from_client=not is_coordinator)

    def end(self, *, transactions_version: int, **facts: Any) -> None:
        self._append(self._batches.marker(**facts), from_client=False)

    def _append(self, data: bytearray, *, from_client: bool) -> None:
        batch = read_batch(data)
        if self._timestamp_type is TimestampType.LOG_APPEND_TIME:
            batch.set_max_timestamp(self._timestamp_type, self._now_ms)
        self.log.append_as_leader(
            batch, self._batches.leader_epoch, now_ms=self._now_ms, from_client=from_client
        )
        self.log.advance_high_watermark(self.log.log_end)

    def lead(self, epoch: int) -> None:
        self._batches.leader_epoch = epoch
        self.log.assign_leader_epoch(epoch)

    def delete(self, before: int) -> None:
        self.log.delete_records_before(before)

    def roll(self) -> None:
        self.log.roll(now_ms=self._now_ms)

    def expire(self) -> None:
        self.log.expire_producers(now_ms=self._now_ms)

    def restart(self, *, is_clean: bool) -> None:
        log = self.log
        log.flush()
        if is_clean:
            log.close()
        self._services = self._new_services()
        self._log = load_log(
            self._services,
            DIRECTORY,
            "log",
            0,
            TOPIC_ID,
            self._config,
            was_clean=is_clean,
            recovery_point=log.recovery_point,
            log_start=log.log_start,
            high_watermark=log.log_end,
            now_ms=self._now_ms,
        )

    def clean(self) -> None:
        log = self.log

        def swap_in(bases: list[int]) -> None:
            assert log.swap_in(bases, cuts=log.cuts, now_ms=self._now_ms)

        while self._config.compacts:
            cleanable = log.assess(self._checkpoint, now_ms=self._now_ms)
            if not cleanable.is_due(self._config):
                break
            log.flush()
            job = log.begin_cleaning(
                cleanable, keys_max=self._keys_max, bytes_per_second=float("inf"), now_ms=self._now_ms
            )
            self._checkpoint = clean(self._services, job, swap_in, lambda _: None).end_offset
            log.delete_expired_segments(now_ms=self._now_ms)
        log.delete_expired_segments(now_ms=self._now_ms)

    def outcome(self) -> Outcome:
        """How the log is now."""
        log = self.log
        facts = {
            "log start": log.log_start,
            "log end": log.log_end,
            "last stable": log.last_stable,
            "clean up to": NO_CHECKPOINT if self._checkpoint is None else self._checkpoint,
            "producers": [
                [
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.last_sequence,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.transaction_start,
                    entry.batches[-1].last_offset if entry.batches else -1,
                ]
                for _, entry in sorted(log.producers.entries.items())
            ],
            "leader epochs": [list(entry) for entry in log.leader_epochs.entries],
        }
        names = self._memory.list_names(DIRECTORY)
        return outcome(facts, {name: self._memory.read_file(f"{DIRECTORY}/{name}") for name in names})
