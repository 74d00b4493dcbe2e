"""What is on the device when: flushes beside a loop that goes on, and closing."""

import errno
from random import Random

import pytest

from storage.config import LogConfig
from storage.errors import DiskFailure
from storage.filesystem import File
from storage.partition_log import FlushJob, PartitionLog
from tests.storage.builders import DIRECTORY, World, batch, read_all, values


@pytest.fixture
def world() -> World:
    return World()


def append(log: PartitionLog, *contents: bytes, epoch: int = 0) -> None:
    log.append_as_leader(batch(*contents), epoch, now_ms=0)


def begun(log: PartitionLog) -> FlushJob:
    job = log.begin_flush()
    assert job is not None
    return job


def after_power_cut(world: World, *, recovery_point: int = 0) -> list[tuple[int, bytes | None]]:
    world.memory.lose_power()
    return values(read_all(world.open(was_clean=False, recovery_point=recovery_point)))


def test_what_was_flushed_survives_a_power_cut(world: World) -> None:
    world.memory.sync_everything()
    log = world.create()
    append(log, b"a")
    log.flush()
    append(log, b"b")
    assert log.recovery_point == 1
    assert after_power_cut(world) == [(0, b"a")]


def test_a_flush_that_is_not_finished_moves_nothing(world: World) -> None:
    log = world.create()
    append(log, b"a")
    job = begun(log)
    job.run()
    assert log.recovery_point == 0
    append(log, b"b")
    job.finish()
    assert log.recovery_point == job.end_offset == 1
    assert log.begin_flush() is not None


def test_nothing_to_flush(world: World) -> None:
    log = world.create()
    assert log.begin_flush() is None
    append(log, b"a")
    log.flush()
    assert log.begin_flush() is None
    syncs = world.memory.syncs
    log.flush()
    assert world.memory.syncs == syncs


def test_one_fsync_flushes_another_batch(world: World) -> None:
    """The price of ``flush.messages=1``."""
    log = world.create(LogConfig(index_interval_bytes=0))
    append(log, b"a")
    log.flush()
    for _ in range(3):
        append(log, b"b")
        syncs = world.memory.syncs
        log.flush()
        assert world.memory.syncs == syncs + 1


def test_says_when_to_flush(world: World) -> None:
    log = world.create(LogConfig(flush_messages=3, segment_bytes=200))
    wishes = []
    for _ in range(4):
        append(log, b"a" * 20)
        wishes.append((log.needs_flush, log.has_unflushed_segment))
    assert wishes == [(False, False), (False, False), (True, True), (True, True)]
    log.flush()
    assert (log.needs_flush, log.has_unflushed_segment) == (False, False)


def test_rolling_while_a_flush_is_under_way(world: World) -> None:
    world.memory.sync_everything()
    log = world.create(LogConfig(segment_bytes=200))
    append(log, b"a" * 20)
    job = begun(log)
    for _ in range(4):
        append(log, b"b" * 20)
    job.run()
    job.finish()
    assert log.recovery_point == 1
    assert log.has_unflushed_segment
    log.flush()
    assert len(after_power_cut(world, recovery_point=5)) == 5
    assert world.reports == []


def test_truncating_while_a_flush_is_under_way(world: World) -> None:
    log = world.create()
    append(log, b"a")
    append(log, b"b")
    job = begun(log)
    log.truncate_to(1, now_ms=0)
    append(log, b"c")
    job.run()
    job.finish()
    assert log.recovery_point == 0, "the flush was of records that are no more"
    log.flush()
    assert log.recovery_point == 2


def test_announcing_a_truncation_while_a_flush_is_under_way(world: World) -> None:
    log = world.create()
    append(log, b"a")
    log.flush()
    append(log, b"b")
    job = begun(log)
    job.run()
    log.lower_recovery_point(0)
    job.finish()
    assert log.recovery_point == 0
    log.lower_recovery_point(1)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 2, "it has not been truncated after all"


def test_deleting_while_a_flush_is_under_way(world: World) -> None:
    log = world.create()
    append(log, b"a", epoch=3)
    job = begun(log)
    log.abandon()
    world.file_system.rename(DIRECTORY, "data/gone")
    job.run()
    job.finish()
    assert log.begin_flush() is None
    log.close()
    assert world.memory.list_names("data") == ["gone"]


def test_two_flushes_may_end_in_any_order(world: World) -> None:
    log = world.create()
    append(log, b"a")
    first = begun(log)
    append(log, b"b", epoch=1)
    second = begun(log)
    second.run()
    second.finish()
    assert log.recovery_point == 2
    append(log, b"c", epoch=2)
    first.run()
    first.finish()
    assert log.recovery_point == 2
    assert b"2 2\n" in world.file_system.read_file(f"{DIRECTORY}/leader-epoch-checkpoint")


def test_a_flush_that_was_given_up_is_made_good_by_the_next(world: World) -> None:
    world.memory.sync_everything()
    log = world.create(LogConfig(segment_bytes=200))
    for _ in range(5):
        append(log, b"a" * 20)
    begun(log)
    begun(log).run()
    log.close()
    world.memory.lose_power()
    log = world.open()
    assert log.log_end == 5
    assert world.reports == []


def test_epochs_are_stored_with_the_records(world: World) -> None:
    world.memory.sync_everything()
    log = world.create()
    append(log, b"a", epoch=2)
    append(log, b"b", epoch=7)
    log.flush()
    world.memory.lose_power()
    assert world.file_system.read_file(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n2\n2 0\n7 1\n"
    log.delete_records_before(0)
    log.assign_leader_epoch(9)
    assert log.begin_flush() is not None, "an epoch without records is to be stored, too"


def test_a_failed_fsync_is_an_error_and_moves_nothing(world: World) -> None:
    log = world.create()
    append(log, b"a")
    world.memory.refuse("sync", errno.EIO, path_suffix=".log")
    with pytest.raises(DiskFailure, match=r"cannot flush .*\.log") as failure:
        log.flush()
    assert failure.value.cause.errno == errno.EIO
    assert log.recovery_point == 0


def test_closing_leaves_nothing_to_do(world: World, chance: Random) -> None:
    world.memory.sync_everything()
    log = world.create(LogConfig(segment_bytes=300, index_interval_bytes=0))
    for _ in range(8):
        append(log, b"a" * chance.randrange(50), epoch=chance.randrange(3))
    log.close()
    assert log.recovery_point == 8
    world.memory.lose_power(chance)
    names = world.names()
    contents = [world.file_system.read_file(f"{DIRECTORY}/{name}") for name in names]
    assert f"{8:020d}.snapshot" in names
    assert f"{0:020d}.index" in names
    log = world.open(LogConfig(segment_bytes=300, index_interval_bytes=0))
    assert (log.log_end, log.recovery_point, len(read_all(log))) == (8, 8, 8)
    world.memory.stop_after = 1  # any change from here on would stop the test
    log.close()
    assert [world.file_system.read_file(f"{DIRECTORY}/{name}") for name in world.names()] == contents
    assert world.reports == []


def test_closing_without_a_record_leaves_what_kafka_expects(world: World) -> None:
    log = world.create()
    log.close()
    log.close()
    assert world.names() == [f"{0:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")]
    assert world.open().log_end == 0


def test_a_disk_that_fails_at_closing(world: World) -> None:
    log = world.create()
    append(log, b"a")
    world.memory.refuse("write", errno.EIO, path_suffix=".timeindex")
    with pytest.raises(DiskFailure, match="cannot write"):
        log.close()


def test_a_flush_of_many_segments_needs_few_descriptors() -> None:
    world = World(open_files_max=4)
    world.memory.sync_everything()
    log = world.create(LogConfig(segment_bytes=200))
    for _ in range(30):
        append(log, b"a" * 20, epoch=1)
    log.abandon()
    log = world.open(LogConfig(segment_bytes=200), was_clean=False)
    most = 0
    opened = world.memory.open

    def count(path: str, *, create: bool = False) -> File:
        nonlocal most
        file = opened(path, create=create)
        most = max(most, world.memory.open_files)
        return file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.memory, "open", count)
        log.flush()
    assert most <= 6
    assert log.recovery_point == 30
    world.memory.lose_power()
    world.memory.kill()
    world.reports.clear()
    assert world.open(was_clean=False, recovery_point=30).log_end == 30
    assert world.reports == []


def test_a_flush_without_descriptors_fails_no_fsync_and_can_be_repeated(world: World) -> None:
    world.memory.sync_everything()
    log = world.create(LogConfig(segment_bytes=150))
    append(log, b"a" * 20, epoch=2)
    append(log, b"b" * 20)
    while world.services.descriptors.make_room():
        pass
    job = begun(log)
    for suffix in (".index", "leader-epoch-checkpoint.tmp"):
        for _ in range(20):
            world.memory.refuse("open", errno.EMFILE, path_suffix=suffix)
        with pytest.raises(DiskFailure) as failure:
            job.run()
        assert failure.value.lacks_descriptor
        world.memory.refuse_nothing()
    assert log.recovery_point == 0
    job.run()
    job.finish()
    assert log.recovery_point == 2
    assert after_power_cut(world, recovery_point=2) == [(0, b"a" * 20), (1, b"b" * 20)]
    assert b"2 0\n" in world.file_system.read_file(f"{DIRECTORY}/leader-epoch-checkpoint")


@pytest.mark.parametrize("operation", ["open", "write"])
def test_a_flush_without_room_for_the_epochs_leaves_no_doubt_and_can_be_repeated(
    world: World, operation: str
) -> None:
    world.memory.sync_everything()
    log = world.create()
    append(log, b"a", epoch=2)
    world.memory.refuse(operation, errno.ENOSPC, path_suffix="leader-epoch-checkpoint.tmp")
    with pytest.raises(DiskFailure, match=r"cannot write .*leader-epoch-checkpoint: No space") as failure:
        log.flush()
    assert not failure.value.leaves_doubt
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 1
    world.memory.lose_power()
    assert b"2 0\n" in world.file_system.read_file(f"{DIRECTORY}/leader-epoch-checkpoint")


def test_a_failed_fsync_of_the_epochs_leaves_doubt(world: World) -> None:
    log = world.create()
    append(log, b"a", epoch=2)
    world.memory.refuse("sync", errno.ENOSPC, path_suffix="leader-epoch-checkpoint.tmp")
    with pytest.raises(DiskFailure, match=r"cannot flush .*leader-epoch-checkpoint") as failure:
        log.flush()
    assert failure.value.leaves_doubt


def test_what_went_while_a_flush_waited_needs_none(world: World) -> None:
    log = world.create(LogConfig(segment_bytes=150))
    for _ in range(4):
        append(log, b"a" * 20)
    while world.services.descriptors.make_room():
        pass
    job = begun(log)
    log.truncate_to(1, now_ms=0)
    job.run()
    job.finish()
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 1


def test_a_file_that_somebody_took_away_is_missed(world: World) -> None:
    log = world.create(LogConfig(segment_bytes=150))
    append(log, b"a" * 20)
    append(log, b"a" * 20)
    while world.services.descriptors.make_room():
        pass
    world.file_system.remove(f"{DIRECTORY}/{0:020}.log")
    with pytest.raises(DiskFailure, match=r"cannot flush .*0\.log: No such file"):
        log.flush()
