"""One partition's log: records appended at its end, read by offset, kept in segments on disk."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from protocol.records.batch import RecordBatch
from storage.config import LogConfig
from storage.file_range import FileRange

Report = Callable[[str], None]
"""Takes one line for the operator: what was found damaged, cut or rebuilt, naming file and position."""


class Appended(NamedTuple):
    """Where a batch lies in the log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    """Of the batch, in ms; Kafka answers a duplicate with it as LogAppendTimeMs."""
    log_start: int
    is_duplicate: bool
    """Nothing was written: these are the offsets from when the batch came first."""


class FoundRecord(NamedTuple):
    """The answer to a search by time."""

    offset: int
    timestamp: int
    leader_epoch: int
    """Of the batch that holds the record; -1 if it has none."""


class SegmentInfo(NamedTuple):
    base_offset: int
    size_bytes: int
    """Of the .log file alone, as DescribeLogDirs counts."""
    max_timestamp: int
    """-1 if no record has a timestamp."""


class PartitionLog:
    """Offsets, in order: log_start <= last_stable <= high_watermark <= log_end.

    Everything here is called from one thread, the event loop's.  Only ``FlushJob.run`` and what
    ``FileRange`` does may run elsewhere, at the same time.
    """

    topic: str
    partition: int
    topic_id: bytes
    directory: str
    config: LogConfig
    """May be replaced at any time; the next append goes by it."""

    log_start: int
    """First offset still served."""
    log_end: int
    """Offset of the next record."""
    high_watermark: int
    """All in-sync replicas have everything below; moved by ``advance_high_watermark``."""
    recovery_point: int
    """Everything below is fsynced."""

    @property
    def last_stable(self) -> int:
        """First offset whose transaction is undecided, at most the high watermark."""

    # Writing

    def append_as_leader(
        self, batch: RecordBatch, leader_epoch: int, *, now_ms: int, from_client: bool = True
    ) -> Appended:
        """Give ``batch`` its offsets and this leader epoch, in place, and write it.

        The batch must be valid already, and its buffer writable.  ``from_client=False`` is for
        coordinators and markers, whose sequences are not checked.

        Raises OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState,
        TransactionCoordinatorFenced, BatchTooLarge or DiskFailure, and then the log is as before.
        A batch that one of the producer's last five repeats is not written again: the answer has
        ``is_duplicate`` set.
        """

    def append_as_follower(self, records: bytes | bytearray | memoryview, *, now_ms: int) -> int:
        """Write whole batches as they are, offsets and epochs included; return the new log end.

        An incomplete batch at the end is left out.  Raises OffsetNotNext, CorruptRecords, DiskFailure.
        """

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upper: int | None = None, at_least_one: bool = True
    ) -> FileRange | None:
        """Where the bytes from the batch that holds ``offset`` on lie; None if there are none yet.

        At most ``max_bytes``, the last batch being cut at the limit as Kafka cuts it, but with
        ``at_least_one`` the first batch is whole even if larger.  Nothing from ``upper`` on (an
        exclusive offset: high_watermark, last_stable or log_end; None stands for log_end).  Stays
        within one segment.  Reads headers only, and is cheap enough to be asked again and again.

        Raises OffsetOutOfRange if ``offset`` lies below log_start or above log_end.
        """

    def find_by_timestamp(self, timestamp: int, *, upper: int | None = None) -> FoundRecord | None:
        """The first record at or after ``timestamp`` (ms), if its offset is below ``upper``."""

    def find_max_timestamp(self, *, upper: int | None = None) -> FoundRecord | None:
        """The first record that has the log's latest timestamp (ListOffsets -3)."""

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch not above ``leader_epoch`` and where it ends: OffsetForLeaderEpoch.

        (-1, -1) if the log knows no such epoch.
        """

    @property
    def leader_epoch(self) -> int:
        """The latest leader epoch this log knows; -1 if none."""

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at ``offset``; -1 if unknown."""

    # Moving the ends

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, up to the log end; return whether it moved."""

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This replica leads from now on: the epoch starts at the log end, data or not."""

    def delete_records_before(self, offset: int) -> int:
        """Move log_start forward to ``offset`` (DeleteRecords); return the log start.

        Nothing happens if it is there already.  Raises OffsetOutOfRange above the high watermark.
        """

    def remove_segments_below_log_start(self, *, now_ms: int) -> int:
        """Drop segments that nobody can read any more; return how many."""

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Forget everything from ``offset`` on; return False if the log ends before it anyway."""

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Forget everything and continue, empty, at ``offset``."""

    def roll(self, *, now_ms: int) -> None:
        """Begin a new segment at the log end, unless the active one is empty."""

    # Durability

    @property
    def needs_flush(self) -> bool:
        """``flush.messages`` is reached: flush before acknowledging what was appended."""

    @property
    def has_unflushed_segment(self) -> bool:
        """A sealed segment is not fsynced: flush in the background."""

    def begin_flush(self) -> "FlushJob | None":
        """What must be fsynced so that recovery_point may move to the present log end.

        None if nothing has to be.  Three steps, so that the loop never waits for the disk and
        appends go on meanwhile: ``job = log.begin_flush()``; ``job.run()`` in a thread;
        ``job.finish()`` back on the loop.
        """

    def flush(self) -> None:
        """The three steps at once, where waiting is right: at a stop, in the controller, in tests."""

    def close(self) -> None:
        """Flush, take a producer snapshot and leave files that need no recovery."""

    # Facts

    @property
    def size_bytes(self) -> int:
        """Of all record data on disk."""

    @property
    def segments(self) -> Iterable[SegmentInfo]:
        """Oldest first."""

    def active_producers(self) -> "list[ActiveProducer]":
        """Every producer with state here (DescribeProducers)."""

    def expire_producers(self, *, now_ms: int) -> None:
        """Forget producers idle for ``producer.id.expiration.ms`` without an open transaction."""


class ActiveProducer(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int
    """Offset of its open transaction's first record; -1 if none is open."""


class FlushJob:
    """One flush under way.  ``recovery_point`` moves only in ``finish``, to where ``begin_flush`` saw the end."""

    def run(self) -> None:
        """Fsync.  Safe in a thread while the loop appends, rolls, truncates or deletes.

        Raises DiskFailure, after which ``finish`` must not be called.
        """

    def finish(self) -> None:
        """Back on the loop: move recovery_point."""
