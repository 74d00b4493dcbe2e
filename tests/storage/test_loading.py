"""Opening a log that was closed properly."""

from random import Random

import pytest

from storage.config import LogConfig
from storage.partition_log import PartitionLog
from tests.storage.builders import DIRECTORY, World, batch, marker, read_all, values

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


def closed(count: int = 20, *, producer_id: int = -1) -> World:
    world = World()
    log = world.create(CONFIG)
    for number in range(count):
        new = batch(
            b"value %d" % number,
            timestamp=number,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=number if producer_id >= 0 else -1,
        )
        log.append_as_leader(new, number // 5, now_ms=0)
    log.close()
    return world


def test_everything_is_as_it_was() -> None:
    world = closed(producer_id=7)
    log = world.open(CONFIG, high_watermark=15)
    assert (log.log_start, log.high_watermark, log.log_end, log.recovery_point) == (0, 15, 20, 20)
    assert log.leader_epochs.entries == ((0, 0), (1, 5), (2, 10), (3, 15))
    (producer,) = log.active_producers()
    assert (producer.producer_id, producer.last_sequence) == (7, 19)
    assert [value for _, value in values(read_all(log))] == [b"value %d" % number for number in range(20)]
    assert world.reports == []


def test_little_is_read() -> None:
    """However many segments there are: an index's end, the headers behind it, and the small files."""
    few, many = closed(5, producer_id=7), closed(500, producer_id=7)
    reads = []
    for world in (few, many):
        world.memory.reads = 0
        world.open(CONFIG)
        reads.append(world.memory.reads)
    assert reads[1] <= reads[0] + 2


def test_the_high_watermark_stays_inside_the_log() -> None:
    world = closed()
    assert world.open(CONFIG, high_watermark=99).high_watermark == 20
    assert world.open(CONFIG, high_watermark=0, log_start=3).high_watermark == 3


def test_the_start_is_the_later_of_checkpoint_and_first_segment() -> None:
    world = closed()
    assert world.open(CONFIG, log_start=7).log_start == 7
    log = world.open(CONFIG, log_start=7, high_watermark=20)
    log.remove_segments_below_log_start(now_ms=0)
    first = log.first_base
    assert 0 < first <= 7
    log.close()
    assert world.open(CONFIG).log_start == first


def test_appending_goes_on_in_the_same_segment() -> None:
    world = closed(3)
    log = world.open(CONFIG)
    log.append_as_leader(batch(b"next", timestamp=2), 0, now_ms=0)
    assert len(log.segments) == 1
    assert log.segments[0].max_timestamp == 2
    assert [offset for offset, _ in values(read_all(log))] == [0, 1, 2, 3]


def test_the_age_of_a_segment_is_remembered() -> None:
    world = closed(3)
    log = world.open(LogConfig(segment_ms=100))
    log.append_as_leader(batch(b"next", timestamp=100), 3, now_ms=0)
    assert len(log.segments) == 1
    log.append_as_leader(batch(b"next", timestamp=101), 3, now_ms=0)
    assert len(log.segments) == 2


def test_without_snapshots_nobody_is_known_and_nothing_is_read() -> None:
    """Kafka's rule for a log that was closed: no snapshot means no idempotent producer ever."""
    world = closed(20, producer_id=7)
    for name in world.names():
        if name.endswith(".snapshot"):
            world.memory.remove(f"{DIRECTORY}/{name}")
    assert world.open(CONFIG).active_producers() == []


def test_an_older_snapshot_and_the_records_behind_it_will_do() -> None:
    world = closed(20, producer_id=7)
    world.memory.remove(f"{DIRECTORY}/{20:020d}.snapshot")
    (producer,) = world.open(CONFIG).active_producers()
    assert producer.last_sequence == 19


def test_expired_producers_are_left_out() -> None:
    world = closed(20, producer_id=7)
    assert world.open(CONFIG, now_ms=86_400_000 + 19).active_producers() == []


def test_index_files_without_a_segment_are_removed() -> None:
    world = closed(3)
    for suffix in (".index", ".timeindex", ".txnindex"):
        world.memory.open(f"{DIRECTORY}/{77:020d}{suffix}", create=True)
    world.memory.open(f"{DIRECTORY}/notes.txt", create=True)
    world.open(CONFIG)
    assert len(world.reports) == 3
    assert not any(name.startswith(f"{77:020d}") for name in world.names())
    assert "notes.txt" in world.names()


@pytest.mark.parametrize("number", ["9" * 20, "2024", "0" * 21])
def test_files_with_a_number_that_is_no_offset_are_left_alone(number: str) -> None:
    world = closed(3)
    for suffix in (".log", ".index", ".snapshot"):
        world.memory.open(f"{DIRECTORY}/{number}{suffix}", create=True)
    log = world.open(CONFIG)
    log.append_as_leader(batch(b"next"), 0, now_ms=0)
    log.close()
    assert world.open(CONFIG, was_clean=False).log_end == 4
    assert {f"{number}{suffix}" for suffix in (".log", ".index", ".snapshot")} <= set(world.names())


def test_a_missing_offset_index_is_rebuilt() -> None:
    world = closed()
    base = sorted(name for name in world.names() if name.endswith(".index"))[1]
    content = world.memory.read_file(f"{DIRECTORY}/{base}")
    assert content
    world.memory.remove(f"{DIRECTORY}/{base}")
    log = world.open(CONFIG)
    assert log.log_end == 20
    log.close()
    assert world.memory.read_file(f"{DIRECTORY}/{base}") == content
    assert len(world.reports) == 1


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 37, b"\xff" * 24, bytes(24), b"\x7f" * 24, b"\0\0\0\1" * 6, b"\0", b"\x01" * 4096],
    ids=["ff37", "ff24", "zeros", "7f", "ones", "one byte", "page"],
)
def test_an_index_that_ends_with_garbage_is_rebuilt(suffix: str, number: int, garbage: bytes) -> None:
    world = closed()
    name = sorted(name for name in world.names() if name.endswith(suffix))[number]
    content = world.memory.read_file(f"{DIRECTORY}/{name}")
    assert content
    world.memory.open(f"{DIRECTORY}/{name}").pwrite(garbage, len(content))
    log = world.open(CONFIG, high_watermark=20)
    for offset in range(20):
        assert read_all(log, offset)[0].base_offset == offset
        found = log.find_by_timestamp(offset)
        assert found is not None
        assert found.offset == offset
    (report,) = world.reports
    assert f"{DIRECTORY}/{name}: " in report
    assert world.memory.read_file(f"{DIRECTORY}/{name}") == content
    log.append_as_leader(batch(b"next"), 5, now_ms=0)
    log.close()
    world.reports.clear()
    assert world.open(CONFIG, was_clean=False).log_end == 21
    assert world.reports == []


def test_whatever_an_index_says_a_reader_gets_what_the_log_has(chance: Random) -> None:
    for _ in range(100):
        world = closed()
        name = chance.choice([name for name in world.names() if name.endswith(".index")])
        file = world.memory.open(f"{DIRECTORY}/{name}")
        content = bytearray(file.pread(file.size(), 0))
        for _ in range(chance.randrange(1, 3)):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        file.pwrite(content, 0)
        log = world.open(CONFIG, high_watermark=20)
        offsets = list(range(20))
        chance.shuffle(offsets)
        for offset in offsets:
            assert read_all(log, offset)[0].base_offset == offset, content.hex()


def test_a_missing_time_index_is_rebuilt() -> None:
    """Kafka takes it for an empty one, and so the segment for as old as its file."""
    world = closed(3)
    path = f"{DIRECTORY}/{0:020d}.timeindex"
    content = world.memory.read_file(path)
    world.memory.remove(path)
    log = world.open(CONFIG)
    assert log.segments[0].max_timestamp == 2
    assert log.find_by_timestamp(0) is not None
    log.close()
    assert world.memory.read_file(path) == content


def test_damaged_epochs_are_rebuilt() -> None:
    world = closed()
    world.memory.open(f"{DIRECTORY}/leader-epoch-checkpoint").truncate(5)
    log = world.open(CONFIG)
    assert log.leader_epochs.entries == ((0, 0), (1, 5), (2, 10), (3, 15))
    log.close()
    world.reports.clear()
    assert world.open(CONFIG).leader_epochs.latest == 3
    assert world.reports == []


def test_a_tail_that_is_not_whole_although_the_log_was_closed() -> None:
    world = closed(3)
    file = world.memory.open(f"{DIRECTORY}/{0:020d}.log")
    file.truncate(file.size() - 1)
    log = world.open(CONFIG)
    assert log.log_end == 2
    assert len(world.reports) == 2
    log.append_as_leader(batch(b"next"), 3, now_ms=0)
    log.close()
    assert world.open(CONFIG).log_end == 3


def test_an_offset_that_no_index_can_hold_is_no_harm_to_the_index() -> None:
    world = closed(4)
    third = 2 * batch(b"value 0").size_bytes
    world.memory.open(f"{DIRECTORY}/{0:020d}.log").pwrite((1 << 40).to_bytes(8), third)
    log = world.open(CONFIG, high_watermark=4)
    for offset, position in ((2, third), (0, 0), (3, third)):
        piece = log.read(offset, 1)
        assert piece is not None
        assert piece.position == position, "the damaged batch is the first that ends there or later"
    assert "the indexes are rebuilt" in world.reports[0]


def test_a_search_by_time_goes_past_a_segment_that_has_lost_everything() -> None:
    world = closed(20)
    bases = sorted(int(name[:20]) for name in world.names() if name.endswith(".log"))
    world.memory.open(f"{DIRECTORY}/{bases[1]:020d}.log").truncate(0)
    log = world.open(CONFIG)
    for timestamp in (bases[1], bases[2]):
        found = log.find_by_timestamp(timestamp)
        assert found is not None
        assert found.offset == bases[2]


def test_a_producer_snapshot_of_another_version_is_replaced() -> None:
    """As in Kafka: what it says stands in the log, too."""
    world = closed(20, producer_id=7)
    path = f"{DIRECTORY}/{20:020d}.snapshot"
    world.memory.open(path).pwrite(b"\0\7", 0)
    log = world.open(CONFIG)
    (producer,) = log.active_producers()
    assert producer.last_sequence == 19
    assert path in world.reports[0]
    assert not world.memory.exists(path)


def test_padding_of_indexes_is_no_harm() -> None:
    """Kafka writes them at full size at first, and recovery meets that after a crash."""
    world = World()
    log = world.create(CONFIG)
    for number in range(3):
        log.append_as_leader(batch(b"%d" % number), 0, now_ms=0)
    for suffix in (".index", ".timeindex"):
        world.memory.open(f"{DIRECTORY}/{0:020d}{suffix}", create=True).pwrite(bytes(4096), 0)
    log = world.open(CONFIG, was_clean=False)
    assert log.log_end == 3
    log.close()
    assert world.memory.file_size(f"{DIRECTORY}/{0:020d}.index") < 4096


def test_with_one_descriptor_for_all(chance: Random) -> None:
    world = World(open_files_max=1)
    log: PartitionLog = world.create(CONFIG)
    for number in range(50):
        log.append_as_leader(batch(b"%d" % number), 0, now_ms=0)
        log.read(chance.randrange(log.log_end), 100)
    assert world.memory.open_files <= 1
    assert len(values(read_all(log))) == 50


def test_what_is_decided_is_stable_at_once_after_a_restart() -> None:
    """The last stable offset stood still at the last transaction until something was written."""
    world = World()
    log = world.create(CONFIG)
    new = batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append_as_leader(new, 0, now_ms=0)
    log.append_as_leader(marker(commit=True, producer_id=1), 0, now_ms=0, from_client=False)
    for recovered in (
        world.open(CONFIG, was_clean=False, high_watermark=2),
        world.open(CONFIG, high_watermark=2),
    ):
        assert (recovered.high_watermark, recovered.last_stable) == (2, 2)


def test_a_log_without_segments_gives_no_offset_again() -> None:
    """Retention has deleted all, and a power cut has taken the name of the segment that was to follow."""
    world = closed(producer_id=1)
    for name in world.names():
        if not name.endswith(".snapshot"):
            world.memory.remove(f"{DIRECTORY}/{name}")
    log = world.open(CONFIG, was_clean=False, recovery_point=20)
    assert (log.log_start, log.log_end) == (20, 20)
    assert log.active_producers() == [], "they may be those of a log that was given up"


def test_rolling_alone_is_a_change() -> None:
    world = closed(3)
    log = world.open(CONFIG)
    log.roll(now_ms=0)
    log.close()
    world.reports.clear()
    assert [segment.base_offset for segment in world.open(CONFIG).segments] == [0, 3]
    assert world.reports == []
