"""Which segments retention lets go, and what a log is without them."""

from random import Random
from typing import NamedTuple

import pytest

from storage.config import LogConfig
from storage.errors import DiskFailure
from storage.memory_filesystem import PowerCut
from storage.partition_log import PartitionLog
from storage.retention import Expired, count_expired
from tests.storage.builders import World, batch, marker, read_all, values

EIO = 5
NOW_MS = 1_000_000


class Stored(NamedTuple):
    base_offset: int
    size_bytes: int
    age_ms: int

    def latest_ms(self) -> int:
        return NOW_MS - self.age_ms


SEGMENTS = [Stored(0, 100, 500), Stored(10, 100, 400), Stored(20, 100, 600), Stored(30, 50, 100)]
"""The third holds the oldest record; the log ends at 35."""


def expired(
    segments: list[Stored] | None = None,
    *,
    log_start: int = 0,
    high_watermark: int = 35,
    deletes: bool = True,
    retention_ms: int = -1,
    retention_bytes: int = -1,
) -> Expired:
    config = LogConfig(deletes=deletes, retention_ms=retention_ms, retention_bytes=retention_bytes)
    return count_expired(
        SEGMENTS if segments is None else segments,
        config,
        log_start=log_start,
        high_watermark=high_watermark,
        log_end=35,
        now_ms=NOW_MS,
    )


def test_without_limits_everything_stays() -> None:
    assert expired() == Expired(0, 0, 0)


@pytest.mark.parametrize(
    ("retention_ms", "count"), [(600, 0), (500, 0), (499, 1), (399, 3), (100, 3), (99, 4), (0, 4)]
)
def test_by_age_the_oldest_go_up_to_the_first_that_is_young_enough(retention_ms: int, count: int) -> None:
    assert expired(retention_ms=retention_ms) == Expired(0, 0, count)


@pytest.mark.parametrize(
    ("retention_bytes", "count"), [(350, 0), (251, 0), (250, 1), (150, 2), (51, 2), (50, 3), (1, 3), (0, 4)]
)
def test_by_size_what_is_left_is_never_less_than_the_limit(retention_bytes: int, count: int) -> None:
    assert expired(retention_bytes=retention_bytes) == Expired(0, count, 0)


@pytest.mark.parametrize(("log_start", "count"), [(9, 0), (10, 1), (29, 2), (30, 3), (35, 3)])
def test_what_lies_below_the_log_start_goes_whatever_the_policy(log_start: int, count: int) -> None:
    assert expired(log_start=log_start, deletes=False) == Expired(count, 0, 0)


def test_limits_are_those_of_the_delete_policy() -> None:
    assert expired(deletes=False, retention_ms=0, retention_bytes=0) == Expired(0, 0, 0)


def test_the_reasons_are_told_that_there_are() -> None:
    assert Expired(0, 3, 0).reasons() == "3 beyond retention.bytes"
    assert Expired(1, 0, 2).reasons() == "1 below the log's start, 2 older than retention.ms"


def test_each_rule_begins_where_the_one_before_it_stopped() -> None:
    assert expired(log_start=12, retention_bytes=150, retention_ms=150) == Expired(1, 1, 1)


@pytest.mark.parametrize(
    ("high_watermark", "count"), [(0, 0), (9, 0), (10, 1), (19, 1), (30, 3), (34, 3), (35, 4)]
)
def test_nothing_goes_that_is_not_replicated(high_watermark: int, count: int) -> None:
    assert expired(high_watermark=high_watermark, retention_ms=0).total == count
    assert expired(high_watermark=high_watermark, retention_bytes=0).total == count


def test_an_empty_last_segment_stays() -> None:
    segments = [*SEGMENTS[:3], Stored(35, 0, 900)]
    assert expired(segments, retention_ms=0) == Expired(0, 0, 3)
    assert expired(segments, retention_bytes=0) == Expired(0, 3, 0)
    assert expired([Stored(35, 0, 900)], retention_ms=0, retention_bytes=0) == Expired()


# On a log

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, retention_ms=1000, file_delete_delay_ms=5000)


def filled(world: World, config: LogConfig = CONFIG, count: int = 20) -> PartitionLog:
    """One record every 100 ms, a leader epoch every five, all of it replicated."""
    log = world.create(config)
    for number in range(count):
        new = batch(b"value %d" % number + bytes(50), timestamp=100 * number)
        log.append_as_leader(new, number // 5, now_ms=100 * number)
    log.advance_high_watermark(log.log_end)
    return log


def test_the_log_start_moves_with_the_segments() -> None:
    world = World()
    log = filled(world)
    bases = [segment.base_offset for segment in log.segments]
    assert log.delete_expired_segments(now_ms=2000).too_old > 0
    assert log.log_start == log.first_base == next(base for base in bases if base > 6)
    assert log.leader_epochs.entries[0] == (log.log_start // 5, log.log_start)
    assert [offset for offset, _ in values(read_all(log))] == list(range(log.log_start, 20))
    assert log.delete_expired_segments(now_ms=2000) == Expired()


def test_files_go_when_the_delay_is_over() -> None:
    world = World()
    log = filled(world)
    log.delete_expired_segments(now_ms=2000)
    assert f"{0:020d}.log.deleted" in world.names()
    assert f"{0:020d}.log" not in world.names()
    assert world.services.removals.begin(6999) is None
    remove = world.services.removals.begin(7000)
    assert remove is not None
    remove()
    assert not [name for name in world.names() if name.endswith(".deleted")]


def test_the_active_segment_is_rolled_when_all_of_it_is_too_old() -> None:
    world = World()
    log = filled(world)
    count = len(log.segments)
    assert log.delete_expired_segments(now_ms=1_000_000).too_old == count
    assert [segment.base_offset for segment in log.segments] == [20]
    assert (log.log_start, log.log_end, log.high_watermark) == (20, 20, 20)
    assert log.delete_expired_segments(now_ms=2_000_000) == Expired()
    log.append_as_leader(batch(b"next", timestamp=1_000_000), 9, now_ms=1_000_000)
    log.close()
    assert values(read_all(world.open(CONFIG))) == [(20, b"next")]


def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    world = World()
    world.memory.now_ms = lambda: 50_000
    log = world.create(CONFIG)
    for _ in range(10):
        log.append_as_leader(batch(bytes(60), timestamp=-1), 0, now_ms=50_000)
    log.advance_high_watermark(log.log_end)
    assert log.delete_expired_segments(now_ms=51_000) == Expired()
    assert log.delete_expired_segments(now_ms=51_001).too_old == 4


def test_changed_limits_count_at_once() -> None:
    log = filled(World(), LogConfig(segment_bytes=400, retention_ms=-1))
    assert log.delete_expired_segments(now_ms=1_000_000) == Expired()
    log.config = LogConfig(segment_bytes=400, retention_ms=-1, retention_bytes=500)
    size = log.size_bytes
    gone = log.delete_expired_segments(now_ms=1_000_000)
    assert gone.too_large > 0
    assert 500 <= log.size_bytes < size
    assert log.size_bytes - log.segments[0].size_bytes < 500


def test_at_most_so_many_go_at_once() -> None:
    log = filled(World())
    due = log.delete_expired_segments(now_ms=1_000_000, at_most=2).total
    assert due > 2
    assert log.delete_expired_segments(now_ms=1_000_000, at_most=1000).total == due - 2


def test_open_transactions_and_producers_survive() -> None:
    """As in Kafka, what they wrote may be gone before they end."""
    world = World()
    log = world.create(CONFIG)
    first = batch(
        bytes(300), producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True, timestamp=0
    )
    log.append_as_leader(first, 0, now_ms=0)
    log.append_as_leader(batch(bytes(300), timestamp=2000), 0, now_ms=0)
    log.advance_high_watermark(log.log_end)
    log.delete_expired_segments(now_ms=2000)
    assert (log.log_start, log.last_stable) == (1, 1)
    log.append_as_leader(marker(commit=False, producer_id=7), 0, now_ms=0, from_client=False)
    log.advance_high_watermark(log.log_end)
    assert log.last_stable == 3


def test_a_disk_that_refuses_costs_nothing_but_time() -> None:
    world = World()
    log = filled(world)
    expected = values(read_all(log))
    world.memory.refuse("rename", EIO, path_suffix=f"{log.segments[1].base_offset:020d}.index")
    with pytest.raises(DiskFailure):
        log.delete_expired_segments(now_ms=2000)
    kept = values(read_all(log))
    assert kept == expected[-len(kept) :]
    log.delete_expired_segments(now_ms=2000)
    assert values(read_all(log)) == kept
    log.close()
    assert values(read_all(world.open(CONFIG))) == kept


@pytest.mark.parametrize("crash", ["kill", "power"])
def test_after_a_crash_at_any_rename_a_log_is_left(crash: str, seed: int) -> None:
    """What retention let go may be back; nothing else is missing."""
    chance = Random(seed)
    for stop_after in range(1, 40):
        world = World()
        log = filled(world)
        log.flush()
        log.leader_epochs.changed = False
        world.memory.sync_everything()
        world.memory.stop_after = stop_after
        try:
            log.delete_expired_segments(now_ms=2000)
            log.flush()
            if chance.random() < 0.5:
                log.delete_expired_segments(now_ms=1_000_000)
        except PowerCut:
            pass
        log_start = log.log_start
        if crash == "kill":
            world.memory.kill()
        else:
            world.memory.lose_power(chance)
        recovered = world.open(CONFIG, was_clean=False, recovery_point=20)
        found = values(read_all(recovered))
        assert found == [(n, b"value %d" % n + bytes(50)) for n in range(recovered.log_start, 20)], stop_after
        assert recovered.log_start <= log_start
        assert recovered.log_end == 20


def test_a_segment_whose_deletion_stops_half_way_is_not_searched_any_more() -> None:
    world = World()
    log = filled(world)
    world.memory.refuse("rename", EIO, path_suffix=".index")
    with pytest.raises(DiskFailure):
        log.delete_expired_segments(now_ms=2000)
    log.find_by_timestamp(0)  # which would look into it
    assert 0 < log.first_base < log.log_start
