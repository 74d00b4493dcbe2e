"""The ``.timeindex`` file: the latest timestamp so far, and the last offset of the batch that has it."""

from struct import Struct

from storage.descriptors import CachedFile
from storage.sparse_index import SparseIndex

ENTRY = Struct(">qi")
_KEY = Struct(">q")

NO_TIMESTAMP = -1


class TimeIndex(SparseIndex):
    """No record at or below an entry's offset is later than the entry says.  Timestamps strictly increase."""

    __slots__ = ()

    def __init__(self, file: CachedFile, base_offset: int, size_max: int) -> None:
        super().__init__(file, base_offset, ENTRY, _KEY, size_max)

    def is_possible(self, last: tuple[int, ...], before: tuple[int, ...] | None, log_size: int) -> bool:
        timestamp, offset = last
        if before is not None and not (before[0] < timestamp and before[1] <= offset):
            return False
        return timestamp >= 0 and offset >= 0 and log_size > 0

    @property
    def is_full(self) -> bool:
        """One place is kept for the entry that ends a segment."""
        return self.count >= self.count_max - 1

    @property
    def last(self) -> tuple[int, int]:
        """The last entry's timestamp and offset; (-1, base offset) if there is none."""
        self.load()
        if self._last is None:
            return NO_TIMESTAMP, self.base_offset
        return self._last[0], self.base_offset + self._last[1]

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry if ``timestamp`` is later than the last one's."""
        if timestamp > self.last[0]:
            self.add(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> int:
        """An offset at or below which every record is at or before ``timestamp``; else the base offset."""
        found = self._floor(timestamp)
        return self.base_offset + (found[1] if found is not None else 0)

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above ``offset``."""
        self.load()
        # Offsets do not decrease either, so what is to go stands at the end.
        keep = self.count
        while keep and self._read(keep - 1)[1] >= offset - self.base_offset:
            keep -= 1
        self._keep(keep)
