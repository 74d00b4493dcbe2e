"""What is left of a log after damage: everything before it, and nothing behind it."""

from random import Random

import pytest

from protocol.records.batch import RecordBatch
from storage.config import LogConfig
from storage.errors import CorruptFile, CorruptLog, UnsupportedFormat
from storage.partition_log import PartitionLog
from storage.recovery import Cut
from tests.storage.builders import DIRECTORY, World, batch, marker, read_all, values

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
LOG = f"{DIRECTORY}/{{:020d}}.log"


def crashed(*batches: RecordBatch) -> tuple[World, list[int]]:
    """A log of these batches whose process died, and the positions of the batches in its last segment."""
    world = World()
    log = world.create(CONFIG)
    positions = []
    for epoch, each in enumerate(batches):
        log.append_as_leader(each, epoch, now_ms=0, from_client=each.base_sequence >= 0)
        active = log.segments[-1]
        positions.append(active.size_bytes - each.size_bytes)
    return world, positions


def plain(count: int) -> list[RecordBatch]:
    return [batch(b"value %d" % number, timestamp=1000 + number) for number in range(count)]


def recover(world: World, *, recovery_point: int = 0, log_start: int = 0) -> PartitionLog:
    return world.open(CONFIG, was_clean=False, recovery_point=recovery_point, log_start=log_start)


def test_a_killed_process_loses_nothing() -> None:
    world, _ = crashed(*plain(20))
    log = recover(world)
    assert len(values(read_all(log))) == 20
    assert log.recovery_point == 0, "nothing was fsynced, and nothing is now"
    assert world.reports == []
    assert recover(world).log_end == 20


@pytest.mark.parametrize("length", [1, 11, 12, 60, 61, 70])
def test_a_torn_tail_is_cut(length: int) -> None:
    world, positions = crashed(*plain(3))
    file = world.memory.open(LOG.format(0))
    file.truncate(positions[2] + length)
    log = recover(world)
    assert log.log_end == 2
    assert file.size() == positions[2]
    (report,) = world.reports
    assert LOG.format(0) in report
    assert f"at byte {positions[2]}" in report
    assert f"{length} bytes are cut off" in report
    assert "offset 2" in report
    log.append_as_leader(batch(b"next"), 5, now_ms=0)
    log.close()
    assert values(read_all(world.open(CONFIG)))[-1] == (2, b"next")


@pytest.mark.parametrize("garbage", [b"\0" * 500, b"\xff" * 500, b"\x01" * 500, b"\x02" * 70])
def test_what_follows_the_last_batch_is_cut(garbage: bytes) -> None:
    world, _ = crashed(*plain(3))
    file = world.memory.open(LOG.format(0))
    size = file.size()
    file.pwrite(garbage, size)
    assert recover(world).log_end == 3
    assert file.size() == size


def test_any_flipped_bit_is_found(chance: Random) -> None:
    for _ in range(50):
        world, positions = crashed(*plain(3))
        file = world.memory.open(LOG.format(0))
        position = chance.randrange(positions[1], positions[2])
        (byte,) = file.pread(1, position)
        byte ^= 1 << chance.randrange(8)
        file.pwrite(bytes([byte]), position)
        log = recover(world)
        # The leader epoch stands outside the CRC, and any will do.
        is_epoch = 12 <= position - positions[1] < 16
        # An offset may be too high, too: compaction leaves gaps.
        is_offset = position - positions[1] < 8
        # So may the format be one that nobody knows: the batch is not served then, but it is there.
        is_format = position - positions[1] == 16 and 2 < byte < 128
        if is_format:
            assert log.log_end == 3
        elif is_epoch or (is_offset and log.log_end != 1):
            assert len(read_all(log)) in (2, 3)
        else:
            assert log.log_end == 1
            assert len(world.reports) == 1


def test_segments_behind_the_damage_are_removed() -> None:
    world, _ = crashed(*plain(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    assert len(bases) > 3
    file = world.memory.open(LOG.format(bases[1]))
    file.pwrite(b"\xee", file.size() - 1)
    log = recover(world)
    assert [segment.base_offset for segment in log.segments] == bases[:2]
    assert log.log_end == bases[2] - 1
    assert len(world.reports) == 1 + len(bases[2:])
    assert sum(name.endswith(".log.deleted") for name in world.names()) == len(bases[2:])
    assert log.leader_epochs.latest == log.log_end - 1
    log.close()
    assert {name for name in world.names() if name.endswith(".snapshot")} == {
        f"{offset:020d}.snapshot" for offset in (bases[1], log.log_end)
    }


def test_a_segment_that_came_back_after_its_records_were_written_again_is_removed() -> None:
    """A power cut may undo the rename by which recovery removed it."""
    world, _ = crashed(*plain(4))
    old = bytes(batch(b"old").data)
    world.memory.open(LOG.format(2), create=True).pwrite((2).to_bytes(8) + old[8:], 0)
    log = recover(world)
    assert [value for _, value in values(read_all(log))] == [b"value %d" % number for number in range(4)]
    assert [segment.base_offset for segment in log.segments] == [0]
    assert len(world.reports) == 1


def test_older_segments_are_trusted_below_the_recovery_point() -> None:
    world, _ = crashed(*plain(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    file = world.memory.open(LOG.format(bases[0]))
    file.pwrite(b"\xee", file.size() - 1)
    assert recover(world, recovery_point=bases[2]).log_end == 20
    assert world.reports == []
    log = recover(world, recovery_point=bases[1])
    offsets = [offset for offset, _ in values(read_all(log))]
    assert offsets == [*range(bases[1] - 1), *range(bases[1], 20)], (
        "a segment that ends at the recovery point may have been sealed after the last fsync"
    )


@pytest.mark.parametrize("was_clean", [False, True])
def test_what_follows_a_damage_below_the_recovery_point_stays(was_clean: bool) -> None:
    """It was safe; Kafka, too, cuts nothing but the segment whose index is missing."""
    world, _ = crashed(*plain(20))
    recover(world).close()
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    file = world.memory.open(LOG.format(bases[1]))
    file.pwrite(b"\xee", file.size() - 1)
    world.memory.remove(f"{DIRECTORY}/{bases[1]:020d}.index")
    for _ in range(2):
        log = world.open(CONFIG, was_clean=was_clean, recovery_point=20)
        offsets = [offset for offset, _ in values(read_all(log))]
        assert offsets == [*range(bases[2] - 1), *range(bases[2], 20)]
        assert log.leader_epochs.latest == 19


def test_a_damaged_epoch_file_does_not_make_safe_records_go() -> None:
    world, _ = crashed(*plain(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    file = world.memory.open(LOG.format(bases[1]))
    file.pwrite(b"\xee", file.size() - 1)
    world.memory.open(f"{DIRECTORY}/leader-epoch-checkpoint", create=True).pwrite(b"0\n7\n", 0)
    log = recover(world, recovery_point=20)
    offsets = [offset for offset, _ in values(read_all(log))]
    assert offsets == [*range(bases[2] - 1), *range(bases[2], 20)]


def test_older_segments_without_an_index_are_not_trusted() -> None:
    world, _ = crashed(*plain(20))
    indexes = [name for name in world.names() if name.endswith(".index")]
    content = world.memory.read_file(f"{DIRECTORY}/{indexes[1]}")
    world.memory.remove(f"{DIRECTORY}/{indexes[1]}")
    log = recover(world, recovery_point=20)
    assert log.log_end == 20
    assert world.memory.read_file(f"{DIRECTORY}/{indexes[1]}") == content


def test_recovery_rebuilds_what_the_log_implies() -> None:
    world, _ = crashed(
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0),
        batch(b"b", producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True),
        batch(b"c", producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True),
        marker(commit=True, producer_id=2),
    )
    log = recover(world)
    assert log.leader_epochs.entries == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert [producer.producer_id for producer in log.active_producers()] == [1, 2, 3]
    assert log.producers.first_undecided == 2
    again = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    assert log.append_as_leader(again, 3, now_ms=0).is_duplicate


def test_all_five_batches_are_known_again_after_a_crash() -> None:
    batches = [batch(b"a", producer_id=1, producer_epoch=0, base_sequence=number) for number in range(6)]
    world, _ = crashed(*batches)
    log = recover(world)
    for number in range(1, 6):
        again = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=number)
        assert log.append_as_leader(again, 5, now_ms=0).base_offset == number


def test_a_transaction_below_the_log_start_is_not_open_because_its_marker_is_gone() -> None:
    """The cleaner keeps the last batch of each producer, but not for ever the markers."""
    world, _ = crashed(
        batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
        batch(b"b", producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True),
    )
    log = recover(world, log_start=1)
    found = {
        each.producer_id: (each.last_sequence, each.transaction_start) for each in log.active_producers()
    }
    assert found == {1: (0, -1), 2: (0, 1)}


@pytest.mark.parametrize(("log_start", "opened_at"), [(0, 0), (1, -1)])
def test_a_snapshot_of_deleted_records_alone_opens_no_transaction(log_start: int, opened_at: int) -> None:
    """Such a one can come back with a power cut after the log was emptied: nothing would ever end it."""
    world, _ = crashed(batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True))
    recover(world).close()
    log = world.open(CONFIG, recovery_point=1, log_start=log_start)
    (producer,) = log.active_producers()
    assert (producer.last_sequence, producer.transaction_start) == (0, opened_at)
    log.append_as_leader(batch(b"b"), 0, now_ms=0)
    log.advance_high_watermark(2)
    assert log.last_stable == (0 if opened_at == 0 else 2)


def test_recovery_opens_no_transaction_of_an_emptied_log_either() -> None:
    """The name of the segment is all that says where the log starts now."""
    world, _ = crashed(batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True))
    log = recover(world)
    log.close()
    snapshot = f"{DIRECTORY}/{1:020d}.snapshot"
    content = world.memory.read_file(snapshot)
    log.truncate_fully_and_start_at(1, now_ms=0)
    world.memory.replace_file(snapshot, content, sync=False)  # a power cut has undone its removal
    log.append_as_leader(batch(b"b"), 0, now_ms=0)
    log = recover(world, recovery_point=1)
    (producer,) = log.active_producers()
    assert (producer.last_sequence, producer.transaction_start) == (0, -1)
    log.advance_high_watermark(2)
    assert log.last_stable == 2


def test_producers_that_have_been_idle_for_too_long_are_forgotten() -> None:
    batches = [
        batch(b"a", timestamp=stamp, producer_id=stamp, producer_epoch=0, base_sequence=0) for stamp in (1, 2)
    ]
    world, _ = crashed(*batches)
    log = world.open(CONFIG, was_clean=False, now_ms=86_400_000 + 1)
    assert [producer.producer_id for producer in log.active_producers()] == [2]


def test_epochs_of_records_that_are_gone_do_not_hide_those_of_new_ones() -> None:
    world, _ = crashed(*plain(3))
    log = recover(world)
    log.flush()
    log.truncate_to(1, now_ms=0)
    log.append_as_leader(batch(b"again"), 2, now_ms=0)
    log.append_as_leader(batch(b"again"), 2, now_ms=0)
    assert recover(world).leader_epochs.entries == ((0, 0), (2, 1))


def test_a_damaged_epoch_file_is_rebuilt() -> None:
    world, _ = crashed(*plain(3))
    world.memory.open(f"{DIRECTORY}/leader-epoch-checkpoint", create=True).pwrite(b"0\n7\n", 0)
    assert recover(world).leader_epochs.entries == ((0, 0), (1, 1), (2, 2))
    assert len(world.reports) == 1


def test_records_of_an_old_format_are_left_alone() -> None:
    world, _ = crashed(*plain(1))
    file = world.memory.open(LOG.format(0))
    # A message of format 1, its CRC included: Kafka before 0.11 wrote such.
    message = bytes.fromhex("01 00 0000000000000001 ffffffff 00000001 78")
    import zlib

    header = (1).to_bytes(8) + (len(message) + 4).to_bytes(4) + zlib.crc32(message).to_bytes(4)
    file.pwrite(header + message + bytes(61), file.size())
    size = file.size()
    with pytest.raises(UnsupportedFormat, match=r"before Kafka 0\.11"):
        recover(world)
    assert file.size() == size


def test_a_batch_of_an_unknown_format_is_kept_if_its_crc_is_right() -> None:
    """As in Kafka, whose readers cannot read it either: what follows it is still there."""
    world, positions = crashed(*plain(3))
    path = LOG.format(0)
    size = world.memory.file_size(path)
    world.memory.open(path).pwrite(b"\x63", positions[1] + 16)
    log = recover(world)
    assert (log.log_end, log.leader_epochs.latest) == (3, 2)
    (line,) = world.reports
    assert line.startswith(f"{path}: the batch at byte {positions[1]} is of an unknown format")
    with pytest.raises(CorruptLog, match=f"at byte {positions[1]}"):
        log.read(1, 1)
    log.append_as_leader(batch(b"next"), 5, now_ms=0)
    log.close()
    assert world.memory.file_size(path) > size
    assert world.open(CONFIG).log_end == 4


def test_a_batch_of_an_unknown_format_is_damage_where_all_records_are_needed() -> None:
    world, positions = crashed(*plain(3))
    world.memory.open(LOG.format(0)).pwrite(b"\x63", positions[1] + 16)
    with pytest.raises(CorruptFile, match=f"at byte {positions[1]}: .*format 99.*good batch follows"):
        careful(world, Cut.TORN_TAIL)


def test_a_batch_of_an_unknown_format_is_damage_if_its_crc_is_wrong() -> None:
    world, positions = crashed(*plain(3))
    file = world.memory.open(LOG.format(0))
    file.pwrite(b"\x63", positions[1] + 16)
    file.pwrite(b"\xee\xee", positions[1] + 65)
    assert recover(world).log_end == 1
    assert file.size() == positions[1]


def test_missing_offsets_between_segments_are_told_and_go_on() -> None:
    """As in Kafka: a power cut may have taken what had not been flushed, and left what came behind."""
    world, _ = crashed(*plain(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    world.memory.remove(LOG.format(bases[1]))
    assert recover(world).log_end == 20
    missing = f"offsets {bases[1]} to {bases[2] - 1} before it are missing"
    assert [line for line in world.reports if missing in line and LOG.format(bases[2]) in line]


def test_offsets_that_go_back_are_damage() -> None:
    world, positions = crashed(*plain(3))
    world.memory.open(LOG.format(0)).pwrite((0).to_bytes(8), positions[2])
    assert recover(world).log_end == 2
    assert "offset 0 where 2 or more must be" in world.reports[0]


def test_offsets_that_are_too_far_are_damage() -> None:
    world, positions = crashed(*plain(3))
    world.memory.open(LOG.format(0)).pwrite((1 << 32).to_bytes(8), positions[2])
    assert recover(world).log_end == 2


def test_a_log_that_ends_before_its_start_starts_afresh() -> None:
    world, _ = crashed(*plain(3))
    log = recover(world, log_start=100)
    assert (log.log_start, log.log_end, read_all(log)) == (100, 100, [])
    assert len(world.reports) == 1
    assert log.leader_epochs.entries == ()
    log.append_as_leader(batch(b"x"), 9, now_ms=0)
    log.close()
    assert world.open(CONFIG, log_start=100).log_end == 101


def test_an_empty_directory_becomes_an_empty_log() -> None:
    world = World()
    log = recover(world, log_start=5)
    assert (log.log_start, log.log_end) == (5, 5)


def test_a_snapshot_that_is_damaged_costs_a_scan() -> None:
    world, _ = crashed(batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0), *plain(10))
    names = [name for name in world.names() if name.endswith(".snapshot")]
    for name in names:
        world.memory.open(f"{DIRECTORY}/{name}").pwrite(b"xx", 3)
    log = recover(world, recovery_point=11)
    assert [producer.producer_id for producer in log.active_producers()] == [1]
    assert world.reports


# Logs that must not lose anything silently


def careful(world: World, may_cut: Cut) -> PartitionLog:
    return world.open(CONFIG, was_clean=False, may_cut=may_cut)


def snapshot_of(world: World) -> dict[str, bytes]:
    return {name: world.memory.read_file(f"{DIRECTORY}/{name}") for name in world.names() if ".log" in name}


@pytest.mark.parametrize("length", [1, 11, 60, 70])
def test_a_torn_tail_may_be_cut_after_an_unclean_stop(length: int) -> None:
    world, positions = crashed(*plain(3))
    world.memory.open(LOG.format(0)).truncate(positions[2] + length)
    assert careful(world, Cut.TORN_TAIL).log_end == 2
    assert len(world.reports) == 1


def test_a_damaged_last_batch_is_a_torn_tail() -> None:
    world, _ = crashed(*plain(3))
    file = world.memory.open(LOG.format(0))
    file.pwrite(b"\xee", file.size() - 1)
    assert careful(world, Cut.TORN_TAIL).log_end == 2


def test_damage_before_good_batches_is_no_torn_tail(chance: Random) -> None:
    for _ in range(100):
        world, positions = crashed(*plain(3))
        file = world.memory.open(LOG.format(0))
        position = chance.randrange(positions[1], positions[2])
        if position - positions[1] <= 16:  # what no CRC covers, and may be anything
            continue
        (byte,) = file.pread(1, position)
        file.pwrite(bytes([byte ^ 1 << chance.randrange(8)]), position)
        before = snapshot_of(world)
        with pytest.raises(CorruptFile, match=f"at byte {positions[1]}: .*good batch follows at byte"):
            careful(world, Cut.TORN_TAIL)
        assert snapshot_of(world) == before
        assert world.reports == []
        with pytest.raises(CorruptFile):
            careful(world, Cut.TORN_TAIL)
        assert careful(world, Cut.EVERYTHING).log_end == 1


def test_damage_before_later_segments_is_no_torn_tail() -> None:
    world, _ = crashed(*plain(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    file = world.memory.open(LOG.format(bases[1]))
    file.truncate(file.size() - 1)
    before = snapshot_of(world)
    with pytest.raises(CorruptFile, match=f"{LOG.format(bases[2])} follows"):
        careful(world, Cut.TORN_TAIL)
    assert snapshot_of(world) == before


def test_a_segment_that_was_begun_when_the_one_before_it_was_torn() -> None:
    world, _ = crashed(*plain(20))
    bases = [int(name[:20]) for name in world.names() if name.endswith(".log")]
    file = world.memory.open(LOG.format(bases[-2]))
    file.truncate(file.size() - 1)
    world.memory.open(LOG.format(bases[-1])).truncate(0)
    assert careful(world, Cut.TORN_TAIL).log_end == bases[-1] - 1


@pytest.mark.parametrize("first_size", [450, 500, 1500])
def test_a_write_that_a_power_cut_lost_while_it_kept_the_next(first_size: int) -> None:
    """Whole sectors read as zeros then: as far as the file reached before, it was safe."""
    config = LogConfig(segment_bytes=1 << 20)
    world = World()
    log = world.create(config)
    first = batch(b"x" * (first_size - batch(b"").size_bytes))
    log.append_as_leader(first, 0, now_ms=0)
    position = first.size_bytes
    lost = batch(b"y" * 1200)
    log.append_as_leader(lost, 0, now_ms=0)
    log.append_as_leader(batch(b"z"), 0, now_ms=0)
    end = (position + lost.size_bytes) // 512 * 512
    world.memory.open(LOG.format(0)).pwrite(bytes(end - position), position)
    assert world.open(config, was_clean=False, may_cut=Cut.TORN_TAIL).log_end == 1
    assert len(world.reports) == 1


def test_a_log_that_was_closed_has_no_torn_tail() -> None:
    world, positions = crashed(*plain(3))
    file = world.memory.open(LOG.format(0))
    file.truncate(file.size() - 1)
    with pytest.raises(CorruptFile, match=f"at byte {positions[2]}: .*although the log was closed properly"):
        careful(world, Cut.NOTHING)
    assert file.size() == positions[2] + batch(b"value 2").size_bytes - 1


def test_a_damaged_list_of_epochs_is_replaced_even_if_no_record_is_left() -> None:
    world, _ = crashed()
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    world.memory.open(path, create=True).pwrite(b"0\n1\n0", 0)
    log = recover(world)
    assert (log.log_end, log.leader_epochs.entries) == (0, ())
    assert world.memory.read_file(path) == b"0\n0\n"
    assert any(path in line for line in world.reports)


def test_a_snapshot_of_zeros_costs_a_scan() -> None:
    """What a power cut makes of a file whose size was written, and whose content was not."""
    world, _ = crashed(batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0), *plain(10))
    for name in world.names():
        if name.endswith(".snapshot"):
            size = world.memory.file_size(f"{DIRECTORY}/{name}")
            world.memory.open(f"{DIRECTORY}/{name}").pwrite(bytes(size), 0)
    log = recover(world, recovery_point=11)
    assert [producer.producer_id for producer in log.active_producers()] == [1]


def test_an_index_that_is_rebuilt_below_the_recovery_point_is_there_after_a_power_cut() -> None:
    world, _ = crashed(*plain(20))
    world.memory.sync_everything()
    path = next(f"{DIRECTORY}/{name}" for name in world.names() if name.endswith(".timeindex"))
    content = world.memory.read_file(path)
    world.memory.remove(path)
    world.memory.sync_everything()
    recover(world, recovery_point=20)
    world.memory.lose_power()
    assert world.memory.read_file(path) == content


def test_what_a_truncation_has_left_half_done_is_put_right() -> None:
    """Of its new names one has reached the device before the power was cut, and of the old ones none went."""
    world, _ = crashed(*plain(3))
    log = recover(world)
    log.close()
    world.memory.sync_everything()
    log = world.open(CONFIG)
    log.lower_recovery_point(2)
    recovery_point = log.recovery_point
    world.file_system.open(f"{DIRECTORY}/00000000000000000002.log", create=True)
    log = recover(world, recovery_point=recovery_point)
    assert [segment.base_offset for segment in log.segments] == [0]
    assert log.log_end == len(values(read_all(log))) == 3
