import errno

import pytest

from storage.descriptors import CachedFile, Descriptors
from storage.memory_filesystem import MemoryFileSystem


def files(descriptors: Descriptors, count: int) -> list[CachedFile]:
    return [CachedFile(descriptors, f"{number}") for number in range(count)]


def test_no_more_than_the_limit_stay_open() -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory, open_max=3)
    for round_number in range(3):
        for file in files(descriptors, 10):
            file.open(create=True).pwrite(b"%d" % round_number, 0)
    assert memory.open_files <= 3
    assert descriptors.open_count <= 3


def test_what_is_used_often_stays_open() -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory, open_max=3)
    busy, *others = files(descriptors, 20)
    opened = busy.open(create=True)
    for other in others:
        other.open(create=True)
        assert busy.open() is opened


def test_a_file_in_use_is_not_closed() -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory, open_max=1)
    first, second = files(descriptors, 2)
    held = first.open(create=True)
    held.pwrite(b"x", 0)
    second.open(create=True)
    second.open()
    first.close()
    assert held.pread(1, 0) == b"x"
    assert memory.open_files == 2
    del held
    assert memory.open_files == 1


def test_closed_files_open_again() -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory, open_max=5)
    (file,) = files(descriptors, 1)
    file.open(create=True)
    file.close()
    file.close()
    assert descriptors.open_count == 0
    assert file.open().size() == 0
    assert descriptors.open_count == 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_without_a_descriptor_some_are_let_go(number: int) -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory, open_max=100)
    *kept, last = files(descriptors, 9)
    for file in kept:
        file.open(create=True)
    for _ in range(2):
        memory.refuse("open", number)
    last.open(create=True).pwrite(b"x", 0)
    assert descriptors.open_count == memory.open_files == 3, "of eight four went, and then two"
    assert [file.opened is not None for file in (*kept[:6], *kept[6:], last)] == [False] * 6 + [True] * 3


def test_when_nothing_is_left_to_let_go_nothing_can_be_opened() -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory)
    first, second = files(descriptors, 2)
    first.open(create=True)
    for _ in range(3):
        memory.refuse("open", errno.EMFILE)
    with pytest.raises(OSError, match=r"[Tt]oo many open files"):
        second.open(create=True)
    assert descriptors.open_count == 0
    memory.refuse_nothing()
    assert second.open(create=True).size() == 0


def test_another_error_lets_nothing_go() -> None:
    memory = MemoryFileSystem()
    descriptors = Descriptors(memory)
    first, second = files(descriptors, 2)
    first.open(create=True)
    memory.refuse("open", errno.EACCES)
    with pytest.raises(PermissionError):
        second.open(create=True)
    assert first.opened is not None
