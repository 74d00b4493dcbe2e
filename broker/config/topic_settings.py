"""The effective settings of one topic, typed, for code that asks for every batch."""

from collections.abc import Iterator, Mapping
from typing import Any

from broker.config.value_types import Value


class TopicSettings(Mapping[str, Any]):
    """A topic's settings: by Kafka's name, ``settings["retention.ms"]``, or as an attribute.

    Immutable. Topics with the same settings may share one object.
    """

    __slots__ = (
        "_values",
        "compact",
        "compression_gzip_level",
        "compression_lz4_level",
        "compression_type",
        "compression_zstd_level",
        "delete",
        "delete_retention_ms",
        "file_delete_delay_ms",
        "flush_messages",
        "flush_ms",
        "index_interval_bytes",
        "max_compaction_lag_ms",
        "max_decompressed_message_bytes",
        "max_message_bytes",
        "message_timestamp_after_max_ms",
        "message_timestamp_before_max_ms",
        "message_timestamp_type",
        "min_cleanable_dirty_ratio",
        "min_compaction_lag_ms",
        "min_insync_replicas",
        "preallocate",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_index_bytes",
        "segment_jitter_ms",
        "segment_ms",
        "unclean_leader_election_enable",
    )

    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    """``producer``, ``uncompressed``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``."""
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_decompressed_message_bytes: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    """``CreateTime`` or ``LogAppendTime``."""
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    retention_bytes: int
    """-1 is no limit."""
    retention_ms: int
    """-1 is for ever."""
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        policies = self["cleanup.policy"]
        self.compact: bool = "compact" in policies
        self.delete: bool = "delete" in policies
        for attribute in TopicSettings.__annotations__:
            setattr(self, attribute, values[attribute.replace("_", ".")])

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
