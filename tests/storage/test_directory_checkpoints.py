import errno

import pytest

from storage import paths
from storage.directory_checkpoints import DirectoryCheckpoints
from storage.errors import DiskFailure
from storage.log_services import LogServices
from storage.memory_filesystem import MemoryFileSystem

REPLICA = ("t", 0)


@pytest.fixture
def file_system() -> MemoryFileSystem:
    file_system = MemoryFileSystem()
    file_system.make_directory("data")
    return file_system


def checkpoints(file_system: MemoryFileSystem, reports: list[str] | None = None) -> DirectoryCheckpoints:
    """Of a directory in which one replica lies."""
    told: list[str] = [] if reports is None else reports
    services = LogServices(file_system, random_below=lambda _: 0, report=told.append)
    return DirectoryCheckpoints(services, "data", {REPLICA})


def read(file_system: MemoryFileSystem, name: str) -> str:
    return file_system.read_file(f"data/{name}").decode()


def test_what_is_written_is_what_it_was_at_the_beginning(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    written.recovery_points[REPLICA] = 5
    write = written.begin(paths.RECOVERY_POINTS)
    written.recovery_points[REPLICA] = 6
    assert not file_system.exists(f"data/{paths.RECOVERY_POINTS}")
    write()
    assert read(file_system, paths.RECOVERY_POINTS) == "0\n1\nt 0 5\n"
    assert not file_system.exists(f"data/{paths.LOG_STARTS}")
    assert checkpoints(file_system).recovery_points == {REPLICA: 5}


def test_of_two_under_way_the_one_begun_last_stays(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    written.recovery_points[REPLICA] = 5
    first = written.begin(paths.RECOVERY_POINTS, paths.LOG_STARTS)
    written.recovery_points[REPLICA] = 6
    second = written.begin(paths.RECOVERY_POINTS)
    second()
    first()
    assert read(file_system, paths.RECOVERY_POINTS) == "0\n1\nt 0 6\n"
    assert read(file_system, paths.LOG_STARTS) == "0\n0\n", "which only the first one was about"


def test_one_that_fails_may_be_written_again(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    write = written.begin(paths.HIGH_WATERMARKS)
    file_system.refuse("write", errno.ENOSPC, path_suffix=".tmp")
    with pytest.raises(DiskFailure, match="cannot write data/replication-offset-checkpoint"):
        write()
    write()
    assert read(file_system, paths.HIGH_WATERMARKS) == "0\n0\n"


def test_a_replica_that_is_gone_is_in_none_of_them(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    for offsets in (written.recovery_points, written.log_starts, written.cleaner_offsets):
        offsets.update({REPLICA: 1, ("u", 0): 2})
    written.forget(REPLICA)
    names = (paths.RECOVERY_POINTS, paths.LOG_STARTS, paths.CLEANER_OFFSETS)
    written.begin(*names)()
    assert {read(file_system, name) for name in names} == {"0\n1\nu 0 2\n"}


def test_a_damaged_one_counts_as_empty(file_system: MemoryFileSystem) -> None:
    file_system.open(f"data/{paths.CLEANER_OFFSETS}", create=True).pwrite(b"0\nx\n", 0)
    reports: list[str] = []
    assert checkpoints(file_system, reports).cleaner_offsets == {}
    assert "it is ignored" in reports[0]


def test_what_is_said_of_others_is_forgotten(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    written.log_starts.update({REPLICA: 1, ("gone", 0): 2})
    written.begin(paths.LOG_STARTS)()
    read_again = checkpoints(file_system)
    assert read_again.log_starts == {REPLICA: 1}
    read_again.prepare_for_new(("other", 0))
    assert "gone 0 2" in read(file_system, paths.LOG_STARTS), "which nobody minds"
    read_again.prepare_for_new(("gone", 0))
    assert read(file_system, paths.LOG_STARTS) == "0\n1\nt 0 1\n"


def test_what_recovery_has_cut_is_not_beyond_its_end(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    for offsets in (written.recovery_points, written.log_starts, written.high_watermarks):
        offsets[REPLICA] = 7
    written.note_cut(REPLICA, 7)
    assert file_system.list_names("data") == []
    written.note_cut(REPLICA, 5)
    assert read(file_system, paths.RECOVERY_POINTS) == read(file_system, paths.HIGH_WATERMARKS)
    assert written.recovery_points == {REPLICA: 5}
    assert written.log_starts == {REPLICA: 7}


def test_what_could_not_be_written_goes_with_the_next(file_system: MemoryFileSystem) -> None:
    """Nobody else may think of it again: that a log was cut is forgotten once it has been taken down."""
    written = checkpoints(file_system)
    written.cleaner_offsets[REPLICA] = 3
    write = written.begin(paths.RECOVERY_POINTS, paths.CLEANER_OFFSETS)
    file_system.refuse("write", errno.ENOSPC, path_suffix=f"{paths.RECOVERY_POINTS}.tmp")
    with pytest.raises(DiskFailure):
        write()
    written.begin(paths.RECOVERY_POINTS)()
    assert read(file_system, paths.CLEANER_OFFSETS) == "0\n1\nt 0 3\n"
    file_system.remove(f"data/{paths.CLEANER_OFFSETS}")
    written.begin(paths.RECOVERY_POINTS)()
    assert not file_system.exists(f"data/{paths.CLEANER_OFFSETS}"), "once is enough"


def test_what_recovery_has_cut_is_told_by_the_next_attempt(file_system: MemoryFileSystem) -> None:
    written = checkpoints(file_system)
    written.recovery_points[REPLICA] = 7
    file_system.refuse("write", errno.ENOSPC, path_suffix=".tmp")
    with pytest.raises(DiskFailure):
        written.note_cut(REPLICA, 5)
    written.note_cut(REPLICA, 5)
    assert read(file_system, paths.RECOVERY_POINTS) == "0\n1\nt 0 5\n"
