"""The ``.index`` file: about every 4 KiB, the last offset of a batch and where the batch starts."""

from struct import Struct

from storage.descriptors import CachedFile
from storage.sparse_index import SparseIndex

ENTRY = Struct(">ii")
_KEY = Struct(">i")
_POSITION = Struct(">4xi")

RELATIVE_OFFSET_MAX = (1 << 31) - 1


class OffsetIndex(SparseIndex):
    """Offsets are stored relative to the segment's base, and strictly increase."""

    __slots__ = ()

    def __init__(self, file: CachedFile, base_offset: int, size_max: int) -> None:
        super().__init__(file, base_offset, ENTRY, _KEY, size_max)

    def append(self, last_offset: int, position: int) -> None:
        """The batch that ends with ``last_offset`` starts at byte ``position``."""
        self.add(last_offset - self.base_offset, position)

    def is_possible(self, last: tuple[int, ...], before: tuple[int, ...] | None, log_size: int) -> bool:
        offset, position = last
        if before is not None and not (before[0] < offset and before[1] < position):
            return False
        return offset >= 0 and 0 <= position < log_size

    @property
    def is_full(self) -> bool:
        return self.count >= self.count_max

    @property
    def last_position(self) -> int:
        """Where the last indexed batch starts; 0 if there is none."""
        self.load()
        return self._last[1] if self._last is not None else 0

    def lookup(self, offset: int) -> int:
        """The position of the last indexed batch that ends at or before ``offset``; 0 if there is none.

        The batch that holds ``offset`` starts there or later.
        """
        found = self._floor(min(offset - self.base_offset, RELATIVE_OFFSET_MAX))
        return found[1] if found is not None else 0

    def lookup_position(self, position: int) -> int | None:
        """The last offset of the first indexed batch that starts at byte ``position`` or later."""
        number = self._count_below(position, _POSITION.unpack_from)
        return self.base_offset + self._read(number)[0] if number < self.count else None

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or above ``offset``."""
        self._keep(self._count_below(min(offset - self.base_offset, RELATIVE_OFFSET_MAX)))
