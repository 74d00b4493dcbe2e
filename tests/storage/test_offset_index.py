from random import Random

import pytest

from storage.descriptors import CachedFile, Descriptors
from storage.memory_filesystem import MemoryFileSystem
from storage.offset_index import OffsetIndex


class Index(OffsetIndex):
    """An index in a file of its own."""

    def __init__(self, memory: MemoryFileSystem, *, base_offset: int = 1000, size_max: int = 1 << 20) -> None:
        super().__init__(CachedFile(Descriptors(memory), "index"), base_offset, size_max)


def test_bytes_are_those_of_kafka() -> None:
    memory = MemoryFileSystem()
    index = Index(memory)
    index.begin()
    index.append(1007, 4200)
    index.append(1009, 8500)
    index.store()
    assert memory.read_file("index") == bytes.fromhex("00000007 00001068 00000009 00002134")


def test_finds_where_to_start_looking() -> None:
    index = Index(MemoryFileSystem())
    index.begin()
    assert index.lookup(5000) == index.last_position == 0
    index.append(1010, 100)
    index.append(1020, 200)
    assert [index.lookup(offset) for offset in (0, 1009, 1010, 1019, 1020, 1 << 40)] == [
        0,
        0,
        100,
        100,
        200,
        200,
    ]
    assert index.last_position == 200


def test_a_missing_file_has_no_entries_until_it_is_stored() -> None:
    memory = MemoryFileSystem()
    index = Index(memory)
    index.load()
    assert index.count == 0
    assert not memory.exists("index")
    index.store()
    assert memory.read_file("index") == b""


def test_it_is_full_when_no_entry_fits() -> None:
    index = Index(MemoryFileSystem(), size_max=17)
    index.begin()
    assert not index.is_full
    index.append(1001, 1)
    assert not index.is_full
    index.append(1002, 2)
    assert index.is_full


@pytest.mark.parametrize("stored_share", [0.0, 0.5, 1.0])
def test_agrees_with_a_list(stored_share: float, chance: Random) -> None:
    """Entries in memory, in the file, or in both: thousands, so that the search in the file takes steps."""
    memory = MemoryFileSystem()
    index = Index(memory, base_offset=0)
    index.begin()
    entries = [(0, 0)]
    for number in range(3000):
        last_offset, position = entries[-1]
        entries.append((last_offset + chance.randrange(1, 5), position + chance.randrange(1, 9000)))
        index.append(*entries[-1])
        if number == int(3000 * stored_share):
            index.store()
    if stored_share == 1:
        index.store()
    for _ in range(300):
        wanted = chance.randrange(entries[-1][0] + 10)
        assert index.lookup(wanted) == max(p for offset, p in entries if offset <= wanted)
    cut = chance.randrange(1, entries[-1][0])
    index.truncate_to(cut)
    kept = [entry for entry in entries if entry[0] < cut]
    assert index.count == len(kept) - 1
    assert index.last_position == kept[-1][1]
    index.append(cut, 1 << 30)
    assert index.lookup(1 << 30) == 1 << 30
    index.store()
    again = Index(memory, base_offset=0)
    again.load()
    assert again.count == index.count
    assert again.last_position == 1 << 30
    assert memory.file_size("index") == 8 * index.count


def test_entries_leave_memory_when_there_are_many() -> None:
    memory = MemoryFileSystem()
    index = Index(memory, base_offset=0)
    index.begin()
    wishes = []
    for number in range(1, 8193):
        wishes.append(index.wants_store)
        index.append(number, number)
    wishes.append(index.wants_store)
    assert wishes == [False] * 8192 + [True]
    index.store()
    assert not index.wants_store
    assert memory.file_size("index") == 8192 * 8


def test_resetting() -> None:
    memory = MemoryFileSystem()
    index = Index(memory)
    index.begin()
    index.append(1001, 5)
    index.store()
    index.append(1002, 6)
    index.reset()
    assert (index.count, index.last_position, memory.file_size("index")) == (0, 0, 0)


def test_truncating_to_the_start_or_beyond_the_end() -> None:
    memory = MemoryFileSystem()
    index = Index(memory)
    index.begin()
    index.append(1001, 5)
    index.store()
    index.append(1002, 6)
    index.truncate_to(5000)
    assert index.count == 2
    index.truncate_to(1002)
    assert (index.count, index.last_position) == (1, 5)
    index.truncate_to(1000)
    assert (index.count, memory.file_size("index")) == (0, 0)


def test_part_of_an_entry_does_not_count() -> None:
    memory = MemoryFileSystem()
    memory.open("index", create=True).pwrite(bytes.fromhex("00000007 00001068 000000"), 0)
    index = Index(memory)
    index.load()
    assert index.count == 1
    index.append(1009, 8500)
    index.store()
    assert memory.read_file("index") == bytes.fromhex("00000007 00001068 00000009 00002134")
