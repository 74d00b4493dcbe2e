"""Reads the entries of an index file one after the other, however many there are."""

from collections.abc import Iterator
from struct import Struct
from typing import Any

from storage.filesystem import File

_PIECE = 64 << 10


class EntryFile:
    """A file of entries of one size; what is left over at its end is no entry."""

    __slots__ = ("_entry", "_file", "count", "path", "size_bytes")

    def __init__(self, file: File, entry: Struct) -> None:
        self.path = file.path
        self.size_bytes = file.size()
        self.count = self.size_bytes // entry.size
        self._file = file
        self._entry = entry

    @property
    def rest(self) -> int:
        """Bytes behind the last whole entry."""
        return self.size_bytes % self._entry.size

    def position(self, number: int) -> int:
        """The byte at which an entry begins."""
        return number * self._entry.size

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        size = self._entry.size
        piece_size = _PIECE // size * size
        for position in range(0, self.count * size, piece_size):
            piece = self._file.pread(min(piece_size, self.count * size - position), position)
            yield from self._entry.iter_unpack(piece[: len(piece) // size * size])

    def is_zero_from(self, number: int) -> bool:
        """Whether the file has nothing but zeros from this entry to its end."""
        position = self.position(number)
        while piece := self._file.pread(1 << 20, position):
            if piece.count(0) != len(piece):
                return False
            position += len(piece)
        return True
