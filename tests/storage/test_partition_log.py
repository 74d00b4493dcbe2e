"""Appending and reading, and how the ends of a log move."""

import errno
from random import Random

import pytest

from protocol.records.batch import RecordBatch, read_batches
from protocol.records.compression import Compression
from protocol.records.errors import CorruptRecords
from storage.config import LogConfig
from storage.errors import (
    BatchTooLarge,
    CorruptLog,
    DiskFailure,
    InvalidProducerEpoch,
    InvalidTransactionState,
    OffsetNotNext,
    OffsetOutOfRange,
    OutOfOrderSequence,
)
from storage.partition_log import ActiveProducer, PartitionLog
from tests.storage.builders import DIRECTORY, World, batch, marker, read_all, values, whole_batches

DAY_MS = 86_400_000


@pytest.fixture
def world() -> World:
    return World()


def append(log: PartitionLog, new: RecordBatch, *, epoch: int = 0, now_ms: int = 0) -> int:
    """Append as for a client whose records are committed at once; return the base offset."""
    appended = log.append_as_leader(new, epoch, now_ms=now_ms)
    log.advance_high_watermark(log.log_end)
    return appended.base_offset


# Appending


def test_a_leader_gives_offsets_and_its_epoch(world: World) -> None:
    log = world.create()
    first = batch(b"a", b"b", timestamp=5)
    appended = log.append_as_leader(first, 3, now_ms=0)
    assert (appended.base_offset, appended.last_offset) == (0, 1)
    assert (appended.max_timestamp, appended.log_start, appended.is_duplicate) == (5, 0, False)
    assert append(log, batch(b"c"), epoch=3) == 2
    stored = read_all(log)
    assert values(stored) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert [each.partition_leader_epoch for each in stored] == [3, 3]
    for each in stored:
        each.check_crc()
    assert bytes(stored[0].data) == bytes(first.data), "the batch is changed in place, not copied"


def test_one_write_per_batch(world: World) -> None:
    log = world.create()
    writes: list[str] = []
    world.memory.stop_after = 1 << 40
    append(log, batch(b"a"))
    writes.append(f"{(1 << 40) - world.memory.stop_after}")
    assert writes == ["1"]


def test_a_batch_larger_than_a_segment_is_refused(world: World) -> None:
    log = world.create(LogConfig(segment_bytes=200))
    with pytest.raises(BatchTooLarge) as refused:
        append(log, batch(bytes(200)))
    assert refused.value.segment_bytes == 200
    assert refused.value.size_bytes > 200
    assert append(log, batch(b"a")) == 0


def test_a_follower_takes_batches_as_they_are(world: World) -> None:
    leader = world.create()
    for epoch in (0, 0, 4):
        append(leader, batch(b"a", b"b", compression=Compression.GZIP), epoch=epoch)
    piece = leader.read(0, 1 << 20)
    assert piece is not None
    records = piece.read()
    other = World()
    follower = other.create()
    assert follower.append_as_follower(records[:-1], now_ms=0) == 4, "an incomplete batch is left out"
    rest = list(read_batches(records))[2].data
    assert follower.append_as_follower(rest, now_ms=0) == 6
    copy = follower.read(0, 1 << 20)
    assert copy is not None
    assert copy.read() == records
    assert follower.leader_epochs.entries == leader.leader_epochs.entries == ((0, 0), (4, 4))


def test_a_follower_refuses_what_does_not_follow_or_is_damaged(world: World) -> None:
    log = world.create()
    stored = batch(b"a", b"b")
    log.append_as_follower(stored.buffer, now_ms=0)
    with pytest.raises(OffsetNotNext) as refused:
        log.append_as_follower(stored.buffer, now_ms=0)
    assert (refused.value.base_offset, refused.value.log_end) == (0, 2)
    stored.set_base_offset(2)
    damaged = bytearray(stored.buffer)
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecords):
        log.append_as_follower(damaged, now_ms=0)
    assert log.log_end == 2


def test_a_follower_has_the_segments_and_indexes_of_its_leader() -> None:
    """Whatever comes in one answer is written at once, but rolled where the leader has rolled."""
    leader_world, follower_world = World(), World()
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=500, segment_index_bytes=160)
    leader, follower = leader_world.create(config), follower_world.create(config)
    random = Random(5)
    for number in range(300):
        new = batch(
            bytes(random.randrange(400)),
            timestamp=number,
            producer_id=number % 3,
            producer_epoch=0,
            base_sequence=number // 3,
            is_transactional=number % 3 == 0,
        )
        append(leader, new, epoch=number // 100)
        if number % 50 == 49:
            append(leader, marker(commit=number % 100 == 49, producer_id=0), epoch=number // 100)
    written = len(follower_world.memory.list_names(DIRECTORY))
    while follower.log_end < leader.log_end:
        piece = leader.read(follower.log_end, random.choice((1, 5_000, 1 << 20)))
        assert piece is not None
        follower.append_as_follower(piece.read(), now_ms=0)
    assert written < len(follower.segments) > 3
    leader.close()
    follower.close()
    names = leader_world.names()
    assert names == follower_world.names()
    for name in names:
        path = f"{DIRECTORY}/{name}"
        assert leader_world.memory.read_file(path) == follower_world.memory.read_file(path), name


def test_a_follower_leaves_out_what_is_of_a_later_epoch(world: World) -> None:
    """KAFKA-18723: the leader that was asked has lost its leadership before it answered."""
    other = World().create()
    for epoch in (1, 1, 2, 1):
        append(other, batch(b"a"), epoch=epoch)
    piece = other.read(0, 1 << 20)
    assert piece is not None
    log = world.create()
    assert log.append_as_follower(piece.read(), now_ms=0, leader_epoch=1) == 2
    assert log.leader_epochs.entries == ((1, 0),)


def test_what_a_follower_could_not_write_leaves_nothing_behind(world: World) -> None:
    config = LogConfig(index_interval_bytes=50)
    log = world.create(config)
    other = World().create(config)
    for _ in range(10):
        append(other, batch(bytes(100)))
    piece = other.read(0, 1 << 20)
    assert piece is not None
    records = piece.read()
    log.append_as_follower(records[: len(records) // 2], now_ms=0)
    middle = log.log_end
    assert 0 < middle < 10
    rest = b"".join(each.data for each in read_batches(records) if each.base_offset >= middle)
    world.memory.refused_keeps = 0.5
    world.memory.refuse("write", errno.ENOSPC, path_suffix=".log")
    with pytest.raises(DiskFailure):
        log.append_as_follower(rest, now_ms=0)
    assert log.log_end == middle
    world.memory.refuse_nothing()
    assert log.append_as_follower(rest, now_ms=0) == 10
    for number, each in enumerate(read_batches(records)):
        found = log.read(number, 1)
        assert found is not None
        assert found.read() == each.data
    log.close()
    assert not world.open(config, was_clean=False).has_unflushed_segment
    assert world.reports == []


def test_a_follower_writes_once_for_each_segment(world: World) -> None:
    log = world.create(LogConfig(segment_bytes=1000))
    other = World().create()
    for _ in range(20):
        append(other, batch(bytes(20)))
    piece = other.read(0, 1 << 20)
    assert piece is not None
    records = piece.read()
    world.memory.refuse("write", errno.ENOSPC, path_suffix=".log", after=1)
    with pytest.raises(DiskFailure):
        log.append_as_follower(records, now_ms=0)
    assert log.log_end == 11, "what the first segment holds"
    assert log.segments[0].size_bytes == 968


def test_a_follower_takes_over_the_high_watermark_as_far_as_it_has_records(world: World) -> None:
    log = world.create()
    for _ in range(3):
        log.append_as_leader(batch(b"a"), 0, now_ms=0)
    assert log.follow_high_watermark(9)
    assert log.high_watermark == 3
    assert not log.follow_high_watermark(3)
    assert log.follow_high_watermark(1), "a new leader knows less at first"
    assert log.high_watermark == 1
    log.follow_high_watermark(2)
    log.delete_records_before(2)
    assert not log.follow_high_watermark(0)
    assert log.high_watermark == 2


def test_a_follower_keeps_gaps(world: World) -> None:
    """Compaction leaves them."""
    log = world.create(LogConfig(segment_bytes=250))
    for base_offset in (5, 100, 1000, 5000):
        new = batch(b"a" * 50)
        new.set_base_offset(base_offset)
        log.append_as_follower(new.buffer, now_ms=0)
    assert [segment.base_offset for segment in log.segments] == [0, 1000]
    found = [log.read(offset, 1) for offset in (0, 5, 6, 101, 1001, 5000)]
    bases = [whole_batches(piece)[0].base_offset for piece in found if piece is not None]
    assert bases == [5, 5, 100, 1000, 5000, 5000]
    assert log.read(5001, 1) is None
    assert log.read(101, 1, upper=900) is None


# Rolling


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_rolls_when_the_next_batch_does_not_fit(world: World) -> None:
    size = batch(b"12345").size_bytes
    log = world.create(LogConfig(segment_bytes=2 * size))
    for _ in range(5):
        append(log, batch(b"12345"))
    assert bases(log) == [0, 2, 4]
    assert [segment.size_bytes for segment in log.segments] == [2 * size, 2 * size, size]
    assert log.size_bytes == 5 * size


def test_rolls_by_the_age_of_its_records(world: World) -> None:
    log = world.create(LogConfig(segment_ms=1000))
    append(log, batch(b"a", timestamp=5000), now_ms=0)
    append(log, batch(b"b", timestamp=6000), now_ms=DAY_MS)
    append(log, batch(b"c", timestamp=3), now_ms=DAY_MS)
    assert bases(log) == [0]
    append(log, batch(b"d", timestamp=6001), now_ms=0)
    assert bases(log) == [0, 3]


def test_rolls_by_the_clock_if_records_have_no_timestamps(world: World) -> None:
    log = world.create(LogConfig(segment_ms=1000), now_ms=500)
    append(log, batch(b"a", timestamp=-1), now_ms=500)
    append(log, batch(b"b", timestamp=-1), now_ms=1500)
    assert bases(log) == [0]
    append(log, batch(b"c", timestamp=-1), now_ms=1501)
    assert bases(log) == [0, 2]


def test_jitter_makes_segments_roll_earlier(world: World) -> None:
    log = world.create(LogConfig(segment_ms=1000, segment_jitter_ms=101))  # chance gives 100
    append(log, batch(b"a", timestamp=0))
    append(log, batch(b"b", timestamp=900))
    assert bases(log) == [0]
    append(log, batch(b"c", timestamp=901))
    assert bases(log) == [0, 2]


def test_rolls_when_an_index_is_full(world: World) -> None:
    # Room for two offsets, and for one timestamp besides the one that ends a segment.
    log = world.create(LogConfig(index_interval_bytes=0, segment_index_bytes=24))
    for number in range(7):
        append(log, batch(b"a", timestamp=number))
    assert bases(log) == [0, 2, 4, 6]


def test_rolls_when_an_offset_is_too_far_for_the_index(world: World) -> None:
    log = world.create()
    append(log, batch(b"a"))
    for base_offset, expected in (
        ((1 << 31) - 1, [0]),
        (1 << 31, [0, 1 << 31]),
        (1 << 33, [0, 1 << 31, 1 << 33]),
    ):
        new = batch(b"b")
        new.set_base_offset(base_offset)
        log.append_as_follower(new.buffer, now_ms=0)
        assert bases(log) == expected


def test_an_empty_segment_gives_way_to_one_with_a_base_nearer_to_the_record(world: World) -> None:
    log = world.create()
    new = batch(b"a")
    new.set_base_offset(1 << 40)
    log.append_as_follower(new.buffer, now_ms=0)
    assert bases(log) == [1 << 40]
    assert values(read_all(log, 0)) == [(1 << 40, b"a")]


def test_rolling_by_hand(world: World) -> None:
    log = world.create()
    log.roll(now_ms=0)
    append(log, batch(b"a"))
    log.roll(now_ms=0)
    log.roll(now_ms=0)
    append(log, batch(b"b"))
    assert bases(log) == [0, 1]
    assert values(read_all(log)) == [(0, b"a"), (1, b"b")]
    assert f"{1:020d}.snapshot" in world.names()


def test_settings_may_change(world: World) -> None:
    log = world.create()
    append(log, batch(b"a"))
    log.config = LogConfig(segment_bytes=100)
    append(log, batch(b"b"))
    assert bases(log) == [0, 1]


def test_what_lies_under_a_new_segments_name_is_removed(world: World) -> None:
    log = world.create()
    append(log, batch(b"a"))
    world.memory.open(f"{DIRECTORY}/{1:020d}.index", create=True).pwrite(b"12345678", 0)
    log.roll(now_ms=0)
    assert len(world.reports) == 1
    append(log, batch(b"b"))
    log.close()
    assert world.memory.file_size(f"{DIRECTORY}/{1:020d}.index") == 0


# Reading


def test_reads_from_the_batch_that_holds_the_offset(world: World) -> None:
    log = world.create(LogConfig(segment_bytes=1000, index_interval_bytes=100))
    for number in range(30):
        append(log, batch(*[b"%d" % number] * 3))
    for offset in range(90):
        piece = log.read(offset, 1 << 20)
        assert piece is not None
        batches = whole_batches(piece)
        assert batches[0].base_offset <= offset <= batches[0].last_offset
        assert piece.base_offset == offset
        assert piece.fileno() is None
        assert piece.is_cached()
    assert log.read(90, 1 << 20) is None


def test_a_range_is_cut_at_the_limit_even_inside_a_batch(world: World) -> None:
    log = world.create()
    size = batch(b"12345").size_bytes
    for _ in range(3):
        append(log, batch(b"12345"))
    for limit in range(size, 3 * size + 10):
        piece = log.read(0, limit)
        assert piece is not None
        assert piece.size_bytes == len(piece.read()) == min(limit, 3 * size)
    for limit in (-1, 0, 1, size - 1):
        piece = log.read(1, limit)
        assert piece is not None
        assert piece.size_bytes == size, "the first batch is whole whatever the limit"
        assert log.read(1, limit, at_least_one=False) is None
    piece = log.read(1, size, at_least_one=False)
    assert piece is not None
    assert piece.size_bytes == size


def test_nothing_beyond_the_upper_offset(world: World) -> None:
    log = world.create(LogConfig(segment_bytes=300, index_interval_bytes=0))
    for _ in range(10):
        append(log, batch(b"a", b"b"))
    log = world.open(LogConfig(segment_bytes=300, index_interval_bytes=0), was_clean=False)
    for offset in range(20):
        for upper in range(0, 22, 2):
            piece = log.read(offset, 1 << 20, upper=upper)
            if offset >= upper:
                assert piece is None
            else:
                assert piece is not None
                assert whole_batches(piece)[-1].next_offset <= upper
                assert whole_batches(piece)[0].last_offset >= offset


def test_offsets_outside_the_log(world: World) -> None:
    log = world.create(start=10)
    append(log, batch(b"a", b"b"))
    for offset in (-1, 0, 9, 13):
        with pytest.raises(OffsetOutOfRange) as outside:
            log.read(offset, 100)
        assert (outside.value.asked, outside.value.log_start, outside.value.log_end) == (offset, 10, 12)
    assert log.read(12, 100) is None


def test_a_range_stays_readable_when_its_segment_goes(world: World) -> None:
    log = world.create()
    append(log, batch(b"a"))
    piece = log.read(0, 100)
    assert piece is not None
    content = piece.read()
    log.truncate_fully_and_start_at(50, now_ms=0)
    remove = world.services.removals.begin(1 << 40)
    assert remove is not None
    remove()
    log.close()
    assert piece.read() == content


def test_following_the_end_reads_no_headers(world: World) -> None:
    log = world.create(LogConfig(index_interval_bytes=0))
    offset = 0
    for number in range(100):
        append(log, batch(b"%d" % number))
        world.memory.reads = 0
        assert log.read(offset, 1 << 20, upper=log.high_watermark) is not None
        assert world.memory.reads == 0
        offset = log.log_end


@pytest.mark.parametrize("length", [1, 20, 70])
def test_readers_get_past_a_segment_that_was_cut(world: World, length: int) -> None:
    config = LogConfig(segment_bytes=400, index_interval_bytes=100)
    log = world.create(config)
    for number in range(20):
        append(log, batch(b"value %d" % number, timestamp=number))
    log.close()
    second, third = log.segments[1:3]
    file = world.memory.open(f"{DIRECTORY}/{second.base_offset:020d}.log")
    position = second.size_bytes // 2 // batch(b"value 7").size_bytes * batch(b"value 7").size_bytes
    file.truncate(position + length)
    lost = second.base_offset + position // batch(b"value 7").size_bytes
    log = world.open(config, high_watermark=20)
    kept = [offset for offset in range(20) if not lost <= offset < third.base_offset]
    assert 0 < lost < third.base_offset
    for _ in range(2):
        assert [offset for offset, _ in values(read_all(log))] == kept
        for offset in range(lost, third.base_offset):
            assert read_all(log, offset)[0].base_offset == third.base_offset
            found = log.find_by_timestamp(offset)
            assert found is not None
            assert found.offset == third.base_offset
    (report,) = [report for report in world.reports if "ends inside a batch" in report]
    assert f"{second.base_offset:020d}.log: at byte {position}: " in report
    assert f"go on at offset {third.base_offset}" in report


def test_a_batch_that_is_missing_at_the_end_of_all_is_an_error(world: World) -> None:
    log = world.create()
    append(log, batch(b"a"))
    append(log, batch(b"b"))
    file = world.memory.open(f"{DIRECTORY}/{0:020d}.log")
    file.truncate(file.size() - 1)
    log = world.open()
    assert log.log_end == 1
    log.log_end = log.high_watermark = 2  # as if it had been cut while the log was open
    file.truncate(file.size() + 5)
    log._segments[-1].size_bytes += 5
    with pytest.raises(CorruptLog):
        log.read(1, 1 << 20)


def test_a_disk_that_cannot_be_read(world: World) -> None:
    log = world.create()
    append(log, batch(b"a"))
    log.close()
    log = world.open()
    world.memory.refuse("read", errno.EIO, path_suffix=".log")
    with pytest.raises(DiskFailure, match="Input/output error"):
        log.read(0, 100)
    assert log.read(0, 100) is not None


# Producers


def test_duplicates_are_answered_with_their_old_offsets(world: World) -> None:
    log = world.create()
    append(log, batch(b"x"))
    first = batch(b"a", b"b", timestamp=77, producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, first)
    again = batch(b"a", b"b", timestamp=77, producer_id=1, producer_epoch=0, base_sequence=0)
    appended = log.append_as_leader(again, 0, now_ms=0)
    assert appended == (1, 2, 77, 0, True)
    assert log.log_end == 3


def test_what_a_producer_must_not_send_leaves_the_log_as_it_was(world: World) -> None:
    log = world.create()
    append(log, batch(b"a", producer_id=1, producer_epoch=3, base_sequence=0, is_transactional=True))
    before = (log.log_end, log.size_bytes, log.active_producers())
    for sequence, epoch, expected in (
        (5, 3, OutOfOrderSequence),
        (0, 2, InvalidProducerEpoch),
        (1, 3, InvalidTransactionState),
    ):
        with pytest.raises(expected):
            append(log, batch(b"b", producer_id=1, producer_epoch=epoch, base_sequence=sequence))
        assert (log.log_end, log.size_bytes, log.active_producers()) == before


def test_readers_of_committed_records_wait_for_the_marker(world: World) -> None:
    log = world.create()
    append(log, batch(b"plain"))
    append(log, batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True))
    append(log, batch(b"more"))
    assert (log.last_stable, log.high_watermark) == (1, 3)
    log.append_as_leader(marker(commit=True, producer_id=1), 0, now_ms=0, from_client=False)
    assert log.last_stable == 1
    log.advance_high_watermark(3)
    assert log.last_stable == 1
    log.advance_high_watermark(4)
    assert log.last_stable == 4
    assert log.active_producers() == [ActiveProducer(1, 0, 0, 0, 0, -1)]
    log.expire_producers(now_ms=DAY_MS)
    assert log.active_producers() == []


def test_an_empty_control_batch_ends_nothing(world: World) -> None:
    """Compaction leaves such batches to keep a producer's epoch."""
    log = world.create()
    append(log, batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True))
    emptied = bytearray(marker(commit=True, producer_id=1).data[:61])
    emptied[8:12] = (49).to_bytes(4)
    emptied[57:61] = bytes(4)
    control = RecordBatch(emptied)
    control.update_crc()
    control.set_base_offset(1)
    log.append_as_follower(emptied, now_ms=0)
    assert log.log_end == 2
    assert log.producers.first_undecided == 0


# The ends


def test_the_high_watermark_moves_forward_only(world: World) -> None:
    log = world.create()
    log.append_as_leader(batch(b"a", b"b"), 0, now_ms=0)
    assert log.high_watermark == 0
    assert log.advance_high_watermark(1)
    assert not log.advance_high_watermark(0)
    assert log.advance_high_watermark(99)
    assert log.high_watermark == 2


def test_epochs_answer_where_they_end(world: World) -> None:
    log = world.create()
    for epoch in (1, 1, 3):
        append(log, batch(b"a"), epoch=epoch)
    log.assign_leader_epoch(5)
    assert log.end_offset_for_epoch(5) == (5, 3)
    log.assign_leader_epoch(4)  # so there cannot have been an epoch 5, whatever a file says
    assert [log.end_offset_for_epoch(epoch) for epoch in (1, 2, 3, 4, 5)] == [
        (1, 2), (1, 2), (3, 3), (4, 3), (-1, -1),
    ]  # fmt: skip
    append(log, batch(b"a"), epoch=5)
    assert log.end_offset_for_epoch(5) == (5, 4)


def test_deleting_records(world: World) -> None:
    config = LogConfig(segment_bytes=200, file_delete_delay_ms=60)
    log = world.create(config)
    for epoch in range(6):
        append(log, batch(b"a" * 20), epoch=epoch)
    assert bases(log) == [0, 2, 4]
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(7)
    assert log.delete_records_before(3) == 3
    assert log.delete_records_before(1) == 3
    assert log.first_base == 0
    assert log.leader_epochs.entries == ((3, 3), (4, 4), (5, 5))
    with pytest.raises(OffsetOutOfRange):
        log.read(2, 100)
    assert log.remove_segments_below_log_start(now_ms=1000) == 1
    assert log.remove_segments_below_log_start(now_ms=1000) == 0
    assert bases(log) == [2, 4]
    assert f"{0:020d}.log.deleted" in world.names()
    assert world.services.removals.next_due_ms == 1060
    assert f"{2:020d}.snapshot" in world.names()
    log.delete_records_before(6)
    assert log.remove_segments_below_log_start(now_ms=1000) == 1
    assert bases(log) == [4], "the last segment always stays"
    assert f"{2:020d}.snapshot" not in world.names()
    assert read_all(log) == []
    append(log, batch(b"b"), epoch=6)
    assert values(read_all(log)) == [(6, b"b")]


def test_the_last_stable_offset_is_not_below_the_start(world: World) -> None:
    log = world.create()
    append(log, batch(b"t", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True))
    append(log, batch(b"a"))
    log.delete_records_before(2)
    assert log.last_stable == 2


def filled(world: World) -> PartitionLog:
    """Six batches of two records in three segments, each with an epoch and a producer of its own."""
    log = world.create(LogConfig(segment_bytes=200, index_interval_bytes=0))
    for number in range(6):
        new = batch(b"a", b"b", timestamp=number, producer_id=number, producer_epoch=0, base_sequence=0)
        append(log, new, epoch=number)
    assert bases(log) == [0, 4, 8]
    return log


def test_truncating(world: World) -> None:
    log = filled(world)
    log.flush()
    assert not log.truncate_to(12, now_ms=0)
    assert log.truncate_to(6, now_ms=0)
    assert (log.log_end, log.high_watermark, log.recovery_point) == (6, 6, 6)
    assert bases(log) == [0, 4]
    assert log.leader_epochs.latest == 2
    assert [producer.producer_id for producer in log.active_producers()] == [0, 1, 2]
    assert log.find_max_timestamp() == (4, 2, 2)
    assert f"{8:020d}.log.deleted" in world.names()
    assert append(log, batch(b"c", timestamp=1), epoch=9) == 6
    assert values(read_all(log))[-2:] == [(5, b"b"), (6, b"c")]
    log.close()
    assert world.open(was_clean=False).log_end == 7
    assert world.reports == []


def test_truncating_at_the_start_of_a_segment_empties_it(world: World) -> None:
    log = filled(world)
    assert log.truncate_to(8, now_ms=0)
    assert bases(log) == [0, 4, 8]
    assert [segment.size_bytes > 0 for segment in log.segments] == [True, True, False]
    assert append(log, batch(b"c"), epoch=9) == 8
    assert len(values(read_all(log))) == 9


def test_truncating_below_the_first_segment_starts_afresh(world: World) -> None:
    log = filled(world)
    log.delete_records_before(9)
    log.remove_segments_below_log_start(now_ms=0)
    assert bases(log) == [8]
    assert log.truncate_to(3, now_ms=0)
    assert (log.log_start, log.log_end, bases(log)) == (3, 3, [3])
    assert log.active_producers() == []


def test_truncating_forgets_an_epoch_without_records(world: World) -> None:
    log = filled(world)
    log.assign_leader_epoch(8)
    assert log.leader_epochs.latest == 8
    log.truncate_to(12, now_ms=0)
    assert log.leader_epochs.latest == 5


def test_starting_afresh(world: World) -> None:
    log = filled(world)
    log.truncate_fully_and_start_at(100, now_ms=0)
    assert (log.log_start, log.log_end, log.high_watermark) == (100, 100, 100)
    assert log.leader_epochs.entries == ()
    assert [name for name in world.names() if not name.endswith(".deleted")] == [f"{100:020d}.log"]
    assert append(log, batch(b"x"), epoch=1) == 100
    log.close()
    assert values(read_all(world.open())) == [(100, b"x")]


# A disk that fails


@pytest.mark.parametrize("capacity", [0, 30, 100])
def test_a_full_disk_leaves_the_log_as_it_was(world: World, capacity: int) -> None:
    log = world.create()
    kept = batch(b"kept", producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, kept)
    world.memory.capacity = kept.size_bytes + capacity
    lost = batch(bytes(200), producer_id=1, producer_epoch=0, base_sequence=1)
    with pytest.raises(DiskFailure, match="No space left") as full:
        append(log, lost, epoch=1)
    assert full.value.cause.errno == errno.ENOSPC
    assert (log.log_end, log.leader_epochs.latest) == (1, 0)
    assert world.memory.file_size(f"{DIRECTORY}/{0:020d}.log") == kept.size_bytes
    world.memory.capacity = None
    assert append(log, batch(b"next", producer_id=1, producer_epoch=0, base_sequence=1)) == 1
    assert values(read_all(log)) == [(0, b"kept"), (1, b"next")]


@pytest.mark.parametrize("suffix", [f"{1:020d}.log", f"{0:020d}.timeindex", f"{1:020d}.snapshot.tmp"])
def test_a_disk_that_fails_while_rolling(world: World, suffix: str) -> None:
    log = world.create(LogConfig(segment_bytes=100))
    append(log, batch(b"a"))
    for _ in range(2):
        world.memory.refuse("write", errno.ENOSPC, path_suffix=suffix)
        with pytest.raises(DiskFailure):
            log.roll(now_ms=0)
        if log.first_base != bases(log)[-1]:
            break  # the segment was begun, and only its snapshot is missing
    world.memory.refuse_nothing()
    append(log, batch(b"b"))
    assert bases(log) == [0, 1]
    assert values(read_all(log)) == [(0, b"a"), (1, b"b")]
    log.close()
    assert values(read_all(world.open())) == [(0, b"a"), (1, b"b")]
    assert world.reports == []


def test_what_a_failed_write_left_is_cut_before_the_next(world: World) -> None:
    log = world.create()
    append(log, batch(b"kept"))
    world.memory.capacity = log.size_bytes + 100
    path = f"{DIRECTORY}/{0:020d}.log"
    # The disk refuses to shorten the file as well.
    original = world.memory._check

    def check(operation: str, path: str, *, mutates: bool = False) -> None:
        if operation == "truncate":
            raise OSError(errno.EIO, "cannot truncate")
        original(operation, path, mutates=mutates)

    world.memory._check = check  # type: ignore[method-assign]
    with pytest.raises(DiskFailure):
        append(log, batch(bytes(200)))
    world.memory._check = original  # type: ignore[method-assign]
    assert world.memory.file_size(path) == log.size_bytes + 100
    world.memory.capacity = None
    append(log, batch(b"n"))
    assert world.memory.file_size(path) == log.size_bytes
    log.close()
    assert values(read_all(world.open())) == [(0, b"kept"), (1, b"n")]


def test_random_batches_come_back_as_they_were_sent(world: World, chance: Random) -> None:
    log = world.create(LogConfig(segment_bytes=20_000, index_interval_bytes=500))
    sent: list[bytes] = []
    for _ in range(200):
        contents = [chance.randbytes(chance.randrange(300)) for _ in range(chance.randrange(1, 6))]
        append(log, batch(*contents, compression=chance.choice(list(Compression))))
        sent += contents
    assert [value for _, value in values(read_all(log, max_bytes=chance.randrange(100, 9000)))] == sent


def test_nothing_is_written_below_the_base_of_a_segment_that_was_begun_in_vain(world: World) -> None:
    """A follower whose leader has a gap rolls behind it; when that fails half-way the log goes on there."""
    log = world.create()
    append(log, batch(b"before"))
    far = batch(b"far")
    far.set_place(1 << 32, 0)
    world.memory.refuse("write", errno.ENOSPC, path_suffix=".snapshot.tmp")
    with pytest.raises(DiskFailure):
        log.append_as_follower(bytes(far.data), now_ms=0)
    append(log, batch(b"behind"))
    world.memory.kill()
    assert values(read_all(world.open(was_clean=False))) == [(0, b"before"), (1 << 32, b"behind")]
