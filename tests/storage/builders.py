"""Batches and logs for the tests of storage."""

from collections.abc import Sequence

from protocol.records.batch import RecordBatch, read_batch, read_batches
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from storage.config import LogConfig
from storage.file_range import FileRange
from storage.filesystem import FileSystem
from storage.loading import create_log, load_log
from storage.log_services import LogServices
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from storage.recovery import Cut

TOPIC_ID = bytes(range(16))
DIRECTORY = "data/events-0"


def batch(
    *values: bytes,
    timestamp: int = 0,
    timestamps: Sequence[int] | None = None,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> RecordBatch:
    """A batch as a producer sends it: base offset 0, in a writable buffer."""
    times = [timestamp] * len(values) if timestamps is None else timestamps
    return read_batch(
        build_batch(
            [(time, None, value, ()) for time, value in zip(times, values, strict=True)],
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
        )
    )


def marker(
    *, commit: bool, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 0, timestamp: int = 0
) -> RecordBatch:
    """The control batch that ends a transaction."""
    return read_batch(
        build_end_transaction_marker(
            EndTransactionMarker(commit, coordinator_epoch),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timestamp=timestamp,
        )
    )


class World:
    """One log's surroundings: a file system, and what was reported to the operator."""

    def __init__(self, file_system: FileSystem | None = None, *, open_files_max: int = 512) -> None:
        self.memory = MemoryFileSystem()
        self.file_system = self.memory if file_system is None else file_system
        self.reports: list[str] = []
        self.open_files_max = open_files_max
        self.services = self.new_services()
        self.file_system.make_directory(DIRECTORY)

    def new_services(self) -> LogServices:
        """As after a restart: nothing is remembered."""
        self.services = LogServices(
            self.file_system,
            random_below=lambda end: end - 1,
            report=self.reports.append,
            open_files_max=self.open_files_max,
        )
        return self.services

    def create(self, config: LogConfig | None = None, *, start: int = 0, now_ms: int = 0) -> PartitionLog:
        return create_log(
            self.services,
            DIRECTORY,
            "events",
            0,
            TOPIC_ID,
            config or LogConfig(),
            start=start,
            now_ms=now_ms,
        )

    def open(
        self,
        config: LogConfig | None = None,
        *,
        was_clean: bool = True,
        recovery_point: int = 0,
        log_start: int = 0,
        high_watermark: int = 0,
        may_cut: Cut = Cut.EVERYTHING,
        now_ms: int = 0,
    ) -> PartitionLog:
        return load_log(
            self.new_services(),
            DIRECTORY,
            "events",
            0,
            TOPIC_ID,
            config or LogConfig(),
            was_clean=was_clean,
            recovery_point=recovery_point,
            log_start=log_start,
            high_watermark=high_watermark,
            may_cut=may_cut,
            now_ms=now_ms,
        )

    def names(self) -> list[str]:
        return sorted(self.file_system.list_names(DIRECTORY))


def read_all(log: PartitionLog, offset: int | None = None, *, max_bytes: int = 1 << 20) -> list[RecordBatch]:
    """Every batch from ``offset``, or the log's start, to its end, fetched bit by bit."""
    offset = log.log_start if offset is None else offset
    found: list[RecordBatch] = []
    while (piece := log.read(offset, max_bytes)) is not None:
        batches = whole_batches(piece)
        assert batches, "the first batch is whole whatever the limit"
        found += batches
        offset = batches[-1].next_offset
    return found


def whole_batches(piece: FileRange) -> list[RecordBatch]:
    return list(read_batches(piece.read()))


def values(batches: Sequence[RecordBatch]) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record."""
    return [(record.offset, record.value) for each in batches for record in each.records()]
