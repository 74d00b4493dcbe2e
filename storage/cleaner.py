"""Which log the cleaner takes next, and what the worker process must know to clean it.

The work itself is in ``cleaned_segments``.  It results in ``.cleaned`` files, which
``PartitionLog.swap_in`` puts in the place of the segments that they were made from.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.config import LONG_MAX, LogConfig
from storage.retention import RetainedSegment

BYTES_PER_KEY = 200
"""About what the worker needs to remember one key, however long it is; Kafka needs 24."""


class Cleanable(NamedTuple):
    """What the cleaner would find in a log."""

    first_dirty: int
    """Everything below was cleaned before."""
    first_uncleanable: int
    """Base offset of the first segment that must be left alone."""
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """How long the oldest dirty record has waited beyond ``max.compaction.lag.ms``."""

    @property
    def ratio(self) -> float:
        """Kafka's dirty ratio; 0 where there is nothing to clean."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        is_overdue = self.overdue_ms > 0 and self.cleanable_bytes > 0
        return is_overdue or self.ratio > config.min_cleanable_dirty_ratio


class DirtySegment(RetainedSegment, Protocol):
    """What choosing asks of a segment."""

    @property
    def first_timestamp(self) -> int: ...


def assess(
    segments: Sequence[DirtySegment],
    config: LogConfig,
    *,
    checkpoint: int | None,
    log_start: int,
    log_end: int,
    last_stable: int,
    now_ms: int,
) -> Cleanable:
    """How dirty a log is whose last cleaning ended at ``checkpoint``; None if there was none.

    The active segment is left alone, and so are those which reach beyond the last stable offset, or hold
    records younger than ``min.compaction.lag.ms``.
    """
    first_dirty = log_start
    if checkpoint is not None and log_start <= checkpoint <= log_end:
        first_dirty = checkpoint
    bases = [segment.base_offset for segment in segments]
    active = len(segments) - 1
    dirty = _number_of(bases, first_dirty)

    end = bases[active]
    if config.min_compaction_lag_ms > 0:
        for number in range(dirty, active):
            if segments[number].latest_ms() > now_ms - config.min_compaction_lag_ms:
                end = bases[number]
                break
    uncleanable = _number_of(bases, max(first_dirty, min(last_stable, end)))

    overdue_ms = 0
    if config.max_compaction_lag_ms < LONG_MAX:
        starts = [segments[number].first_timestamp for number in range(dirty, active)]
        earliest = min([start for start in starts if start > 0], default=LONG_MAX)
        overdue_ms = max(now_ms - config.max_compaction_lag_ms - earliest, 0)
    return Cleanable(
        first_dirty,
        bases[uncleanable],
        # A segment that is clean in part counts on both sides, as in Kafka.
        sum([segment.size_bytes for segment in segments if segment.base_offset < first_dirty]),
        sum([segment.size_bytes for segment in segments[dirty:uncleanable]]),
        overdue_ms,
    )


def _number_of(bases: Sequence[int], offset: int) -> int:
    """The segment that holds ``offset``; the first one if it lies below all."""
    return max(bisect_right(bases, offset) - 1, 0)


class CleaningJob(NamedTuple):
    """All that the worker process is told of a log."""

    directory: str
    bases: list[int]
    """Of the segments from the log's first to its last cleanable one."""
    first_dirty: int
    upper: int
    """Where the cleanable part ends; the worker may stop earlier if its memory is full."""
    high_watermark: int
    now_ms: int
    aborted: list[list[int]]
    """The fields of each ``AbortedTransaction`` that reaches into the cleanable part."""
    last_records: list[list[int]]
    """Producer id and the fields of ``LastRecord``, for every producer that may go on."""
    keys_max: int
    """So many keys fit the worker's memory; if there are more, it cleans a part of the log."""
    bytes_per_second: float
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    delete_retention_ms: int


class Cleaned(NamedTuple):
    """What came of a job."""

    end_offset: int
    """The log is clean below."""
    bytes_before: int
    bytes_after: int
