"""ListOffsets by time: the first record at or after it, wherever it hides."""

from random import Random

import pytest

from protocol.records.compression import Compression
from storage.config import LogConfig
from storage.errors import CorruptLog
from storage.partition_log import PartitionLog
from storage.segment import FoundRecord
from tests.storage.builders import DIRECTORY, World, batch

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def log_of(world: World, *batches: list[int], compression: Compression = Compression.NONE) -> PartitionLog:
    """One batch per list of timestamps."""
    log = world.create(SMALL)
    for epoch, timestamps in enumerate(batches):
        new = batch(*[b""] * len(timestamps), timestamps=timestamps, compression=compression)
        log.append_as_leader(new, epoch, now_ms=0)
    log.advance_high_watermark(log.log_end)
    return log


@pytest.mark.parametrize("compression", list(Compression))
def test_finds_the_record_inside_a_batch(compression: Compression) -> None:
    log = log_of(World(), [10, 20, 30], [40, 50, 60], compression=compression)
    assert log.find_by_timestamp(0) == FoundRecord(0, 10, 0)
    assert log.find_by_timestamp(20) == FoundRecord(1, 20, 0)
    assert log.find_by_timestamp(31) == FoundRecord(3, 40, 1)
    assert log.find_by_timestamp(60) == FoundRecord(5, 60, 1)
    assert log.find_by_timestamp(61) is None


def test_times_need_not_be_in_order() -> None:
    log = log_of(World(), [10, 90, 30], [40, 50, 60], [100, 5])
    assert log.find_by_timestamp(35) == FoundRecord(1, 90, 0), "the first by offset, not by time"
    assert log.find_by_timestamp(91) == FoundRecord(6, 100, 2)


def test_agrees_with_a_list(chance: Random) -> None:
    world = World()
    batches = [[chance.randrange(1000) for _ in range(chance.randrange(1, 4))] for _ in range(60)]
    log = log_of(world, *batches)
    for reopened in (False, True):
        if reopened:
            log.close()
            log = world.open(SMALL)
        times = [time for each in batches for time in each]
        for wanted in range(0, 1001, 7):
            expected = next(((offset, time) for offset, time in enumerate(times) if time >= wanted), None)
            found = log.find_by_timestamp(wanted)
            assert (found and found[:2]) == expected
        latest = log.find_max_timestamp()
        assert latest is not None
        assert latest[:2] == (times.index(max(times)), max(times))


def test_deleted_records_are_not_found() -> None:
    log = log_of(World(), [10, 20, 30], [40, 50, 60])
    log.delete_records_before(2)
    assert log.find_by_timestamp(0) == FoundRecord(2, 30, 0)


def test_nothing_from_the_upper_offset_on() -> None:
    log = log_of(World(), [10, 20, 30], [40, 50, 60])
    assert log.find_by_timestamp(20, upper=2) == FoundRecord(1, 20, 0)
    assert log.find_by_timestamp(20, upper=1) is None
    assert log.find_max_timestamp(upper=6) == FoundRecord(5, 60, 1)
    assert log.find_max_timestamp(upper=5) is None


def test_the_latest_timestamp_belongs_to_the_first_that_has_it() -> None:
    assert log_of(World(), [10, 20, 20], [20, 5]).find_max_timestamp() == FoundRecord(1, 20, 0)


def test_an_empty_log_has_no_timestamps() -> None:
    log = World().create()
    assert log.find_by_timestamp(0) is None
    assert log.find_max_timestamp() is None


def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    """So that it hides what comes after it, as in Kafka."""
    world = World()
    world.memory.now_ms = lambda: 500
    log = log_of(world, [-1])
    log.roll(now_ms=0)
    log.append_as_leader(batch(b"", timestamp=700), 0, now_ms=0)
    assert log.find_by_timestamp(501) == FoundRecord(1, 700, 0)
    assert log.find_by_timestamp(500) is None
    assert log_of(World(), [-1, -1]).find_max_timestamp() == FoundRecord(0, -1, 0)


def test_damage_in_a_compressed_batch_is_named() -> None:
    world = World()
    log = log_of(world, [10, 20, 30], compression=Compression.GZIP)
    path = f"{DIRECTORY}/{0:020d}.log"
    world.memory.open(path).pwrite(b"\xff" * 5, 70)
    with pytest.raises(CorruptLog, match="at byte 0") as damage:
        log.find_by_timestamp(15)
    assert damage.value.path == path
