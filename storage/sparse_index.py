"""What the indexes of a segment have in common: fixed entries in a file, ascending, binary search.

Entries of a segment that is being written gather in memory and reach the file when it is flushed,
rolled or closed.  A crash may lose them: recovery rebuilds the index of every segment that was not
fsynced to its end.  Finished entries are searched in the file, so that thousands of segments cost
no memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from struct import Struct
from typing import Any

from storage.descriptors import CachedFile
from storage.filesystem import Buffer, File

_STORE_AT = 64 << 10
"""Bytes of entries that gather in memory at most, more or less."""

_PAGE = 4096
"""Once so few bytes are left to search, they are read at once."""


Unpack = Callable[[Buffer, int], tuple[Any, ...]]


class SparseIndex(ABC):
    """``key`` reads from an entry what it is found by; the rest is the subclass's."""

    __slots__ = (
        "_entry",
        "_file",
        "_key",
        "_last",
        "_size",
        "_stored",
        "_tail",
        "base_offset",
        "count",
        "count_max",
    )

    def __init__(self, file: CachedFile, base_offset: int, entry: Struct, key: Struct, size_max: int) -> None:
        self.base_offset = base_offset
        self.count = -1
        """Entries, those in memory included; -1 until ``load``."""
        self.count_max = size_max // entry.size
        self._file = file
        self._entry = entry
        self._key = key
        self._stored = 0
        self._size = 0
        """Of the file, in bytes, as ``load`` found it."""
        self._tail = bytearray()
        self._last: tuple[int, ...] | None = None

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def file(self) -> CachedFile:
        """Where the entries are, but for those that are in memory only."""
        return self._file

    def begin(self) -> None:
        """There is no file yet, so there are no entries: instead of ``load``, for a new segment."""
        self.count = 0

    def load(self) -> None:
        """Learn how many entries there are and what the last one is; a missing file has none."""
        if self.count >= 0:
            return
        size = self._entry.size
        try:
            file = self._file.open()
            self._size = file.size()
            self._stored = self._size // size
            if self._stored:
                self._last = self._entry.unpack(file.pread(size, (self._stored - 1) * size))
        except FileNotFoundError:
            self._stored = 0
        self.count = self._stored

    def find_damage(self, log_size: int) -> str | None:
        """What cannot be so at the end of a file that ``load`` has just read; None if it looks right.

        ``log_size`` is what the segment's log has, in bytes.  Just the last entries are looked at, so that
        opening thousands of segments stays cheap.
        """
        if self._size % self._entry.size:
            return f"{self._size} bytes are no whole entries"
        if self._last is None:
            return None
        before = self._read(self._stored - 2) if self._stored > 1 else None
        if self.is_possible(self._last, before, log_size):
            return None
        return f"its last entry is {self._last}, which cannot be"

    @abstractmethod
    def is_possible(self, last: tuple[int, ...], before: tuple[int, ...] | None, log_size: int) -> bool:
        """Whether a file can end with these entries; there may be just one."""

    def add(self, *entry: int) -> None:
        self._tail += self._entry.pack(*entry)
        self._last = entry
        self.count += 1

    @property
    def wants_store(self) -> bool:
        """So much has gathered in memory that it should go to the file."""
        return len(self._tail) >= _STORE_AT

    def store(self) -> None:
        """Write what is in memory; the file exists afterwards, be it empty."""
        file = self._file.open(create=True)
        if self._tail:
            file.pwrite(self._tail, self._stored * self._entry.size)
            self._stored = self.count
            self._tail = bytearray()

    def open_file(self) -> File:
        """The file, for an fsync; what is in memory only is not part of it."""
        return self._file.open()

    def reset(self) -> None:
        """Drop every entry."""
        self._file.open(create=True).truncate(0)
        self._forget()

    def close(self) -> None:
        self._file.close()

    def _forget(self) -> None:
        self._stored = self.count = 0
        self._tail = bytearray()
        self._last = None

    def _floor(self, key: int) -> tuple[int, ...] | None:
        """The last entry whose key is not above ``key``."""
        number = self._count_below(key + 1)
        return self._read(number - 1) if number else None

    def _read(self, number: int) -> tuple[int, ...]:
        size = self._entry.size
        if number >= self._stored:
            found: tuple[int, ...] = self._entry.unpack_from(self._tail, (number - self._stored) * size)
            return found
        found = self._entry.unpack(self._file.open().pread(size, number * size))
        return found

    def _count_below(self, key: int, unpack: Unpack | None = None) -> int:
        """How many entries have a key below ``key``; ``unpack`` reads another ascending field instead."""
        self.load()
        if unpack is None:
            unpack = self._key.unpack_from
        if self._tail and (not self._stored or unpack(self._tail, 0)[0] < key):
            return self._stored + _search(self._tail, self._entry.size, unpack, key)
        low, high = 0, self._stored
        if not high:
            return 0
        size = self._entry.size
        file = self._file.open()
        while (high - low) * size > _PAGE:
            middle = (low + high) // 2
            if unpack(file.pread(size, middle * size), 0)[0] < key:
                low = middle + 1
            else:
                high = middle
        return low + _search(file.pread((high - low) * size, low * size), size, unpack, key)

    def _keep(self, count: int) -> None:
        """Drop all entries but the first ``count``."""
        if count >= self.count:
            return
        if count == 0:
            self.reset()
            return
        size = self._entry.size
        if count >= self._stored:
            del self._tail[(count - self._stored) * size :]
        else:
            self._tail = bytearray()
            self._file.open().truncate(count * size)
            self._stored = count
        self.count = count
        self._last = self._read(count - 1)


def _search(entries: Buffer, size: int, unpack: Unpack, key: int) -> int:
    low, high = 0, len(entries) // size
    while low < high:
        middle = (low + high) // 2
        if unpack(entries, middle * size)[0] < key:
            low = middle + 1
        else:
            high = middle
    return low
