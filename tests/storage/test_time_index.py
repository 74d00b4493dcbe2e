from random import Random

from storage.descriptors import CachedFile, Descriptors
from storage.memory_filesystem import MemoryFileSystem
from storage.time_index import TimeIndex


class Index(TimeIndex):
    """An index in a file of its own."""

    def __init__(self, memory: MemoryFileSystem, *, base_offset: int = 1000, size_max: int = 1 << 20) -> None:
        super().__init__(CachedFile(Descriptors(memory), "index"), base_offset, size_max)
        self.load()


def test_bytes_are_those_of_kafka() -> None:
    memory = MemoryFileSystem()
    index = Index(memory)
    index.append(1_700_000_000_000, 1007)
    index.store()
    assert memory.read_file("index") == bytes.fromhex("0000018bcfe56800 00000007")


def test_only_later_timestamps_are_added() -> None:
    index = Index(MemoryFileSystem())
    assert index.last == (-1, 1000)
    index.append(-1, 1000)
    index.append(50, 1005)
    index.append(50, 1010)
    index.append(40, 1012)
    assert index.count == 1
    assert index.last == (50, 1005)


def test_finds_an_offset_before_which_nothing_is_late_enough() -> None:
    index = Index(MemoryFileSystem())
    index.append(50, 1005)
    index.append(60, 1009)
    assert [index.lookup(timestamp) for timestamp in (-1, 49, 50, 59, 60, 1 << 60)] == [
        1000, 1000, 1005, 1005, 1009, 1009,
    ]  # fmt: skip


def test_one_place_is_kept_for_the_last_entry() -> None:
    index = Index(MemoryFileSystem(), size_max=3 * 12)
    index.append(1, 1001)
    assert not index.is_full
    index.append(2, 1002)
    assert index.is_full


def test_truncating_goes_by_offset(chance: Random) -> None:
    memory = MemoryFileSystem()
    index = Index(memory, base_offset=0)
    entries = [(-1, 0)]
    for _ in range(500):
        timestamp, offset = entries[-1]
        entries.append((timestamp + chance.randrange(1, 5), offset + chance.randrange(5)))
        index.append(*entries[-1])
        if chance.random() < 0.01:
            index.store()
    cut = chance.randrange(1, entries[-1][1])
    index.truncate_to(cut)
    kept = [entry for entry in entries if entry[1] < cut]
    assert index.count == len(kept) - 1
    assert index.last == kept[-1]
    index.store()
    assert Index(memory, base_offset=0).last == kept[-1]
