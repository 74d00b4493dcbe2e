"""Which of a log's oldest segments go: by log start, by size, by age (``cleanup.policy=delete``)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.config import LogConfig

_ANY = (1 << 63) - 1


class RetainedSegment(Protocol):
    """What retention asks of a segment."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    def latest_ms(self) -> int:
        """The latest timestamp of its records, or when the file was written if none has any."""


class Expired(NamedTuple):
    """How many segments go, counted from the oldest on: first those of the first kind, and so on."""

    below_start: int = 0
    """Nobody can read them any more."""
    too_large: int = 0
    """Without them the log still holds ``retention.bytes``."""
    too_old: int = 0
    """All their records are older than ``retention.ms``."""

    @property
    def total(self) -> int:
        return self.below_start + self.too_large + self.too_old

    def reasons(self) -> str:
        """How many go for which reason, in words."""
        counts = (
            (self.below_start, "below the log's start"),
            (self.too_large, "beyond retention.bytes"),
            (self.too_old, "older than retention.ms"),
        )
        return ", ".join(f"{count} {reason}" for count, reason in counts if count)


def count_expired(
    segments: Sequence[RetainedSegment],
    config: LogConfig,
    *,
    log_start: int,
    high_watermark: int,
    log_end: int,
    now_ms: int,
) -> Expired:
    """Kafka's three rules, one after the other; each stops at the first segment that stays.

    No segment goes that reaches beyond the high watermark, nor the last one while it is empty.  The last
    one may go otherwise: then the log goes on, empty, in a new segment.
    """
    last = len(segments) - 1
    end = last if segments[last].size_bytes == 0 else last + 1
    """No segment from here on goes."""
    while end and high_watermark < (segments[end].base_offset if end <= last else log_end):
        end -= 1
    first = 0
    while first < min(end, last) and segments[first + 1].base_offset <= log_start:
        first += 1
    below_start = first
    if not config.deletes:
        return Expired(below_start)

    if config.retention_bytes >= 0:
        excess = sum([segment.size_bytes for segment in segments[first:]]) - config.retention_bytes
        while first < end and excess >= segments[first].size_bytes:
            excess -= segments[first].size_bytes
            first += 1
    too_large = first - below_start

    if config.retention_ms >= 0:
        while first < end and now_ms - segments[first].latest_ms() > config.retention_ms:
            first += 1
    return Expired(below_start, too_large, first - below_start - too_large)


def may_need_care(
    segments: Sequence[RetainedSegment], config: LogConfig, *, log_start: int, now_ms: int
) -> bool:
    """Whether retention or the cleaner may have work, wherever the high watermark and the log end are."""
    if config.compacts and len(segments) > 1:
        return True
    return bool(segments) and (
        count_expired(
            segments, config, log_start=log_start, high_watermark=_ANY, log_end=_ANY, now_ms=now_ms
        ).total
        > 0
    )
