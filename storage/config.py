"""The topic settings that a log goes by."""

from collections.abc import Mapping
from typing import Any

LONG_MAX = (1 << 63) - 1


class LogConfig:
    """Effective values for one topic, under Kafka's names; times in ms, sizes in bytes."""

    __slots__ = (
        "file_delete_delay_ms",
        "flush_messages",
        "index_interval_bytes",
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
    ) -> None:
        self.segment_bytes = segment_bytes
        self.segment_ms = segment_ms
        self.segment_jitter_ms = segment_jitter_ms
        self.segment_index_bytes = segment_index_bytes
        self.index_interval_bytes = index_interval_bytes
        self.flush_messages = flush_messages
        self.file_delete_delay_ms = file_delete_delay_ms

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "LogConfig":
        """From a topic's effective settings, typed, under their names: ``segment.bytes`` and so on."""
        # A compacted topic rolls early enough that max.compaction.lag.ms can be kept.
        segment_ms = settings["segment.ms"]
        if "compact" in settings["cleanup.policy"]:
            segment_ms = min(segment_ms, max(settings["max.compaction.lag.ms"], 1))
        return cls(
            segment_bytes=settings["internal.segment.bytes"] or settings["segment.bytes"],
            segment_ms=segment_ms,
            segment_jitter_ms=settings["segment.jitter.ms"],
            segment_index_bytes=settings["segment.index.bytes"],
            index_interval_bytes=settings["index.interval.bytes"],
            flush_messages=settings["flush.messages"],
            file_delete_delay_ms=settings["file.delete.delay.ms"],
        )
