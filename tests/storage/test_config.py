from typing import Any

from storage.config import LogConfig

SETTINGS: dict[str, Any] = {
    "cleanup.policy": ["delete"],
    "file.delete.delay.ms": 1,
    "flush.messages": 2,
    "index.interval.bytes": 3,
    "internal.segment.bytes": None,
    "max.compaction.lag.ms": 4,
    "segment.bytes": 5,
    "segment.index.bytes": 6,
    "segment.jitter.ms": 7,
    "segment.ms": 8,
}


def test_settings_are_taken_under_their_names() -> None:
    config = LogConfig.from_settings(SETTINGS)
    assert config.file_delete_delay_ms == 1
    assert config.flush_messages == 2
    assert config.index_interval_bytes == 3
    assert config.segment_bytes == 5
    assert config.segment_index_bytes == 6
    assert config.segment_jitter_ms == 7
    assert config.segment_ms == 8


def test_a_compacted_topic_rolls_in_time_for_its_longest_lag() -> None:
    assert LogConfig.from_settings(SETTINGS | {"cleanup.policy": ["compact"]}).segment_ms == 4


def test_the_internal_size_wins() -> None:
    assert LogConfig.from_settings(SETTINGS | {"internal.segment.bytes": 100}).segment_bytes == 100


def test_defaults_are_those_of_kafka() -> None:
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms, config.segment_jitter_ms) == (1 << 30, 604_800_000, 0)
    assert (config.segment_index_bytes, config.index_interval_bytes) == (10 << 20, 4096)
    assert (config.flush_messages, config.file_delete_delay_ms) == ((1 << 63) - 1, 60_000)
