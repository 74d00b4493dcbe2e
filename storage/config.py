"""The topic settings that a log goes by."""

from collections.abc import Mapping
from typing import Any

LONG_MAX = (1 << 63) - 1


class LogConfig:
    """Effective values for one topic, under Kafka's names; times in ms, sizes in bytes."""

    __slots__ = (
        "compacts",
        "delete_retention_ms",
        "deletes",
        "file_delete_delay_ms",
        "flush_messages",
        "index_interval_bytes",
        "max_compaction_lag_ms",
        "min_cleanable_dirty_ratio",
        "min_compaction_lag_ms",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_index_bytes",
        "segment_jitter_ms",
        "segment_ms",
    )

    def __init__(
        self,
        *,
        segment_bytes: int = 1 << 30,
        segment_ms: int = 7 * 24 * 60 * 60 * 1000,
        segment_jitter_ms: int = 0,
        segment_index_bytes: int = 10 << 20,
        index_interval_bytes: int = 4096,
        flush_messages: int = LONG_MAX,
        file_delete_delay_ms: int = 60_000,
        deletes: bool = True,
        retention_ms: int = 7 * 24 * 60 * 60 * 1000,
        retention_bytes: int = -1,
        compacts: bool = False,
        min_cleanable_dirty_ratio: float = 0.5,
        min_compaction_lag_ms: int = 0,
        max_compaction_lag_ms: int = LONG_MAX,
        delete_retention_ms: int = 24 * 60 * 60 * 1000,
    ) -> None:
        self.segment_bytes = segment_bytes
        self.segment_ms = segment_ms
        self.segment_jitter_ms = segment_jitter_ms
        self.segment_index_bytes = segment_index_bytes
        self.index_interval_bytes = index_interval_bytes
        self.flush_messages = flush_messages
        self.file_delete_delay_ms = file_delete_delay_ms
        self.deletes = deletes
        """``cleanup.policy`` has delete: the two limits that follow count.  Negative ones are none."""
        self.retention_ms = retention_ms
        self.retention_bytes = retention_bytes
        self.compacts = compacts
        """``cleanup.policy`` has compact: what follows counts."""
        self.min_cleanable_dirty_ratio = min_cleanable_dirty_ratio
        self.min_compaction_lag_ms = min_compaction_lag_ms
        self.max_compaction_lag_ms = max_compaction_lag_ms
        self.delete_retention_ms = delete_retention_ms
        """How long after its cleaning a tombstone stays, so that readers see it."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "LogConfig":
        """From a topic's effective settings, typed, under their names: ``segment.bytes`` and so on."""
        # A compacted topic rolls early enough that max.compaction.lag.ms can be kept.
        segment_ms = settings["segment.ms"]
        policies = settings["cleanup.policy"]
        if "compact" in policies:
            segment_ms = min(segment_ms, max(settings["max.compaction.lag.ms"], 1))
        return cls(
            segment_bytes=settings["internal.segment.bytes"] or settings["segment.bytes"],
            segment_ms=segment_ms,
            segment_jitter_ms=settings["segment.jitter.ms"],
            segment_index_bytes=settings["segment.index.bytes"],
            index_interval_bytes=settings["index.interval.bytes"],
            flush_messages=settings["flush.messages"],
            file_delete_delay_ms=settings["file.delete.delay.ms"],
            deletes="delete" in policies,
            retention_ms=settings["retention.ms"],
            retention_bytes=settings["retention.bytes"],
            compacts="compact" in policies,
            min_cleanable_dirty_ratio=settings["min.cleanable.dirty.ratio"],
            min_compaction_lag_ms=settings["min.compaction.lag.ms"],
            max_compaction_lag_ms=settings["max.compaction.lag.ms"],
            delete_retention_ms=settings["delete.retention.ms"],
        )
