import errno
from random import Random

import pytest

from storage.memory_filesystem import MemoryFileSystem, PowerCut


@pytest.fixture
def memory() -> MemoryFileSystem:
    file_system = MemoryFileSystem()
    file_system.make_directory("d")
    file_system.sync_everything()
    return file_system


def test_a_killed_process_loses_nothing(memory: MemoryFileSystem) -> None:
    memory.open("d/a", create=True).pwrite(b"x", 0)
    assert memory.lock("d/lock") is not None
    memory.kill()
    assert memory.read_file("d/a") == b"x"
    assert memory.lock("d/lock") is not None


def test_a_power_cut_loses_what_was_not_fsynced(memory: MemoryFileSystem) -> None:
    file = memory.open("d/a", create=True)
    file.pwrite(b"safe", 0)
    file.sync()
    memory.sync_directory("d")
    file.pwrite(b"not safe", 0)
    memory.open("d/b", create=True).sync()
    memory.lose_power()
    assert memory.read_file("d/a") == b"safe"
    assert memory.list_names("d") == ["a"], "a name needs an fsync of its directory"


def test_a_removed_name_comes_back_unless_its_directory_was_fsynced(memory: MemoryFileSystem) -> None:
    memory.write_durably("d/a", b"a")
    memory.write_durably("d/b", b"b")
    memory.remove("d/a")
    memory.sync_directory("d")
    memory.rename("d/b", "d/c")
    memory.lose_power()
    assert memory.list_names("d") == ["b"]


def test_chance_tears_and_reorders(memory: MemoryFileSystem) -> None:
    """All that may be on the device after two writes: each whole, in part, or as a hole."""
    outcomes = set()
    for number in range(200):
        file = memory.open("d/a", create=True)
        file.truncate(0)
        memory.sync_everything()
        file.pwrite(b"aa", 0)
        file.pwrite(b"bb", 2)
        memory.lose_power(Random(number))
        outcomes.add(memory.read_file("d/a"))
    assert outcomes == {
        b"",
        b"a",
        b"aa",
        b"aab",
        b"aabb",
        b"a\0b",
        b"a\0bb",
        b"a\0",
        b"\0\0",
        b"\0\0b",
        b"\0\0bb",
    }


def test_sectors_are_torn_from_each_other_only(memory: MemoryFileSystem, chance: Random) -> None:
    seen = set()
    for _ in range(2000):
        file = memory.open("file", create=True)
        file.truncate(0)
        file.pwrite(b"a" * 6, 0)
        memory.sync_everything()
        file.pwrite(b"b" * 6, 6)
        file.pwrite(b"c" * 6, 12)
        memory.lose_power(chance, sector_bytes=8)
        seen.add(memory.read_file("file"))
    first, second, third = (
        (b"aaaaaabb", b"aaaaaa\0\0"),
        (b"bbbbcccc", b"bbbb\0\0\0\0", bytes(8)),
        (b"cc", b"\0\0"),
    )
    whole = {one + two + three for one in first for two in second for three in third}
    assert seen == whole | {b[:size] for b in whole for size in (6, 12)}


def test_chance_keeps_names_in_order(memory: MemoryFileSystem) -> None:
    outcomes = set()
    for number in range(100):
        for name in memory.list_names("d"):
            memory.remove(f"d/{name}")
        memory.sync_everything()
        memory.open("d/1", create=True)
        memory.rename("d/1", "d/2")
        memory.open("d/3", create=True)
        memory.lose_power(Random(number))
        outcomes.add(tuple(memory.list_names("d")))
    assert outcomes == {(), ("1",), ("2",), ("2", "3")}


def test_refuses_what_it_is_told_to_once(memory: MemoryFileSystem) -> None:
    file = memory.open("d/a", create=True)
    memory.refuse("write", errno.EIO, path_suffix="a")
    memory.open("d/b", create=True).pwrite(b"", 0)
    with pytest.raises(OSError, match="d/a") as refused:
        file.pwrite(b"x", 0)
    assert refused.value.errno == errno.EIO
    assert file.size() == 0
    file.pwrite(b"x", 0)
    for operation, action in (
        ("sync", file.sync),
        ("read", lambda: file.pread(1, 0)),
        ("open", lambda: memory.open("d/a")),
        ("rename", lambda: memory.rename("d/a", "d/c")),
        ("remove", lambda: memory.remove("d/a")),
    ):
        memory.refuse(operation, errno.EIO)
        with pytest.raises(OSError, match="d/a"):
            action()


def test_a_full_disk_takes_what_it_can(memory: MemoryFileSystem) -> None:
    memory.capacity = 10
    file = memory.open("d/a", create=True)
    file.pwrite(b"12345678", 0)
    with pytest.raises(OSError, match="No space") as full:
        file.pwrite(b"abcd", 8)
    assert full.value.errno == errno.ENOSPC
    assert memory.read_file("d/a") == b"12345678ab"
    file.pwrite(b"over", 0)
    file.truncate(0)
    file.pwrite(b"0123456789", 0)


def test_stops_at_the_change_that_it_is_told(memory: MemoryFileSystem) -> None:
    file = memory.open("d/a", create=True)
    memory.stop_after = 2
    file.pwrite(b"one", 0)
    with pytest.raises(PowerCut):
        file.pwrite(b"two", 3)
    memory.lose_power(Random(0))
    file = memory.open("d/b", create=True)
    file.pwrite(b"again", 0)


def test_counts_open_files(memory: MemoryFileSystem) -> None:
    file = memory.open("d/a", create=True)
    assert memory.open_files == 1
    del file
    assert memory.open_files == 0


def test_knows_when_files_were_written() -> None:
    now = [5]
    memory = MemoryFileSystem(now_ms=lambda: now[0])
    file = memory.open("a", create=True)
    assert memory.modified_ms("a") == 5
    now[0] = 6
    file.pwrite(b"x", 0)
    assert memory.modified_ms("a") == 6


def test_directories_and_files_are_not_the_same(memory: MemoryFileSystem) -> None:
    memory.open("d/a", create=True)
    with pytest.raises(NotADirectoryError):
        memory.list_names("d/a")
    with pytest.raises(NotADirectoryError):
        memory.list_names("d/a/b")
    with pytest.raises(IsADirectoryError):
        memory.open("d")
    with pytest.raises(FileExistsError):
        memory.make_directory("d/a")
