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
