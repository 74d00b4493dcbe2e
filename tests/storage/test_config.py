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
    "retention.ms": 9,
    "retention.bytes": 10,
    "min.cleanable.dirty.ratio": 0.25,
    "min.compaction.lag.ms": 11,
    "delete.retention.ms": 12,
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
    assert (config.deletes, config.retention_ms, config.retention_bytes) == (True, 9, 10)
    assert not config.compacts
    assert config.min_cleanable_dirty_ratio == 0.25
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (11, 4)
    assert config.delete_retention_ms == 12


def test_policies_may_be_one_both_or_none() -> None:
    def policies(*names: str) -> tuple[bool, bool]:
        config = LogConfig.from_settings(SETTINGS | {"cleanup.policy": list(names)})
        return config.deletes, config.compacts

    assert policies("compact") == (False, True)
    assert policies("compact", "delete") == (True, True)
    assert policies() == (False, False)


def test_a_compacted_topic_rolls_in_time_for_its_longest_lag() -> None:
    assert LogConfig.from_settings(SETTINGS | {"cleanup.policy": ["compact"]}).segment_ms == 4


def test_the_internal_size_wins() -> None:
    assert LogConfig.from_settings(SETTINGS | {"internal.segment.bytes": 100}).segment_bytes == 100


def test_defaults_are_those_of_kafka() -> None:
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms, config.segment_jitter_ms) == (1 << 30, 604_800_000, 0)
    assert (config.segment_index_bytes, config.index_interval_bytes) == (10 << 20, 4096)
    assert (config.deletes, config.retention_ms, config.retention_bytes) == (True, 604_800_000, -1)
    assert (config.compacts, config.min_cleanable_dirty_ratio) == (False, 0.5)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (0, (1 << 63) - 1)
    assert config.delete_retention_ms == 86_400_000
    assert (config.flush_messages, config.file_delete_delay_ms) == ((1 << 63) - 1, 60_000)
