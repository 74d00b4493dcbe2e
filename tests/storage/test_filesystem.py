"""What storage relies on, of the operating system's file system and of the one in memory alike."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.filesystem import FileSystem, RealFileSystem, _tells_of_failed_writes
from storage.memory_filesystem import MemoryFileSystem


@pytest.fixture(params=["real", "memory"])
def file_system(request: pytest.FixtureRequest) -> FileSystem:
    return RealFileSystem() if request.param == "real" else MemoryFileSystem()


@pytest.fixture
def root(file_system: FileSystem, tmp_path: Path) -> str:
    path = str(tmp_path / "data")
    file_system.make_directory(path)
    return path


def test_writes_and_reads_at_positions(file_system: FileSystem, root: str) -> None:
    file = file_system.open(f"{root}/a", create=True)
    file.pwrite(b"hello", 0)
    file.pwrite(memoryview(b"world"), 7)
    assert file.size() == 12
    assert file.pread(100, 0) == b"hello\0\0world"
    assert file.pread(3, 1) == b"ell"
    assert file.pread(3, 12) == b""
    file.truncate(4)
    file.sync()
    assert file_system.read_file(f"{root}/a") == b"hell"
    assert file_system.file_size(f"{root}/a") == 4
    assert file.is_cached(0, 1)
    assert file.read_cached(3, 1) == file.pread(3, 1)


def test_opening_what_is_not_there(file_system: FileSystem, root: str) -> None:
    for action in (file_system.open, file_system.read_file, file_system.remove, file_system.file_size):
        with pytest.raises(FileNotFoundError):
            action(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        file_system.rename(f"{root}/missing", f"{root}/other")
    assert not file_system.exists(f"{root}/missing")
    assert not file_system.exists(f"{root}/missing/too")


def test_an_open_file_outlives_its_name(file_system: FileSystem, root: str) -> None:
    file = file_system.open(f"{root}/a", create=True)
    file.pwrite(b"still here", 0)
    file_system.rename(f"{root}/a", f"{root}/b")
    assert file.pread(10, 0) == b"still here"
    file_system.remove(f"{root}/b")
    assert file.pread(10, 0) == b"still here"


def test_renaming_replaces_a_file_but_not_a_directory(file_system: FileSystem, root: str) -> None:
    file_system.open(f"{root}/a", create=True).pwrite(b"new", 0)
    file_system.open(f"{root}/b", create=True).pwrite(b"old", 0)
    file_system.rename(f"{root}/a", f"{root}/b")
    assert file_system.read_file(f"{root}/b") == b"new"
    file_system.make_directory(f"{root}/one")
    file_system.make_directory(f"{root}/two/three")
    with pytest.raises(OSError, match="not empty") as refused:
        file_system.rename(f"{root}/one", f"{root}/two")
    assert refused.value.errno == errno.ENOTEMPTY


def test_lists_names_and_directories(file_system: FileSystem, root: str) -> None:
    file_system.make_directory(f"{root}/folder/inner")
    file_system.make_directory(f"{root}/folder")
    file_system.open(f"{root}/file", create=True)
    assert sorted(file_system.list_names(root)) == ["file", "folder"]
    assert file_system.list_directories(root) == ["folder"]
    file_system.sync_directory(root)
    file_system.remove_tree(f"{root}/folder")
    file_system.remove_tree(f"{root}/folder")
    assert file_system.list_names(root) == ["file"]


def test_replaced_files_are_whole(file_system: FileSystem, root: str) -> None:
    file_system.write_durably(f"{root}/a", b"a longer text")
    file_system.replace_file(f"{root}/a", b"short", sync=False)
    assert file_system.read_file(f"{root}/a") == b"short"
    assert file_system.list_names(root) == ["a"]


def test_everything_can_be_flushed_at_once(file_system: FileSystem, root: str) -> None:
    file_system.open(f"{root}/a", create=True).pwrite(b"a", 0)
    file_system.make_directory(f"{root}/b")
    if not file_system.sync_all([root, f"{root}/b"]):
        pytest.skip("this system cannot do that")
    if isinstance(file_system, MemoryFileSystem):
        file_system.lose_power()
        assert file_system.read_file(f"{root}/a") == b"a"
    with pytest.raises(FileNotFoundError):
        file_system.sync_all([f"{root}/c"])


@pytest.mark.parametrize(
    ("release", "expected"),
    [("5.7.19", False), ("5.8.0-generic", True), ("4.19", False), ("6.1", True), ("x", False)],
)
def test_only_a_system_that_tells_of_failures_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, expected: bool
) -> None:
    class Name:
        def __init__(self) -> None:
            self.release = release

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "uname", Name)
    assert _tells_of_failed_writes() is expected
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not RealFileSystem().sync_all([str(tmp_path)])


def test_files_in_memory_have_no_descriptor() -> None:
    file_system: FileSystem = MemoryFileSystem()
    assert file_system.open("a", create=True).fileno() is None


def test_a_real_file_closes_when_nobody_refers_to_it(tmp_path: Path) -> None:
    file = RealFileSystem().open(str(tmp_path / "a"), create=True)
    descriptor = file.fileno()
    assert os.fstat(descriptor).st_size == 0
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_real_modification_times_are_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    assert RealFileSystem().modified_ms(str(path)) == 1_700_000_000_123


LOCKER = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_a_real_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = RealFileSystem().lock(path)
    assert lock is not None
    command = [sys.executable, "-c", LOCKER, path]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    lock.release()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_real_lock_keeps_this_process_out_as_well(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = RealFileSystem().lock(path)
    assert lock is not None
    assert RealFileSystem().lock(path) is None
    command = [sys.executable, "-c", LOCKER, path]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0, "it is still held"
    lock.release()
    again = RealFileSystem().lock(path)
    assert again is not None
    again.release()


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], 'w')
fcntl.lockf(file, fcntl.LOCK_EX)
print('held', flush=True)
sys.stdin.read()
"""


def test_a_real_lock_that_another_process_holds(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    command = [sys.executable, "-c", HOLDER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert RealFileSystem().lock(path) is None
        holder.communicate(b"")
    assert RealFileSystem().lock(path) is not None
