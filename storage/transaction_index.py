"""The ``.txnindex`` file: which transactions of a segment were aborted, so that readers can skip them."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from storage.descriptors import CachedFile
from storage.errors import CorruptFile
from storage.filesystem import File, FileSystem
from storage.sparse_index import SparseIndex

VERSION = 0

ENTRY = Struct(">hqqqq")
_KEY = Struct(">18xq")

_SIZE_MAX = 1 << 31


class AbortedTransaction(NamedTuple):
    """One aborted transaction; its entry stands in the segment that holds the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The marker's own."""
    last_stable: int
    """Where the log was decided up to once this marker was written: no later abort began below."""


class TransactionIndex(SparseIndex):
    """Entries in the order of their markers.  There is no file unless the segment has an abort marker."""

    __slots__ = ()

    def __init__(self, file: CachedFile, base_offset: int) -> None:
        super().__init__(file, base_offset, ENTRY, _KEY, _SIZE_MAX)

    def is_possible(self, last: tuple[int, ...], before: tuple[int, ...] | None, log_size: int) -> bool:
        version, _, first_offset, last_offset, _ = last
        return (
            version == VERSION
            and last_offset >= max(first_offset, self.base_offset)
            and (before is None or before[3] < last_offset)
        )

    def append(self, aborted: AbortedTransaction) -> None:
        self.load()
        self.add(VERSION, *aborted)

    def find_file(self) -> File | None:
        """The file, for an fsync; it may be there, and empty, after a truncation."""
        try:
            return self._file.open()
        except FileNotFoundError:
            return None

    def store(self) -> None:
        """Write what is in memory; without that no file comes into being."""
        if self._tail:
            super().store()

    def reset(self) -> None:
        """Drop every entry; a file stays, empty."""
        try:
            self._file.open().truncate(0)
        except FileNotFoundError:
            pass
        self._forget()

    def truncate_to(self, offset: int) -> None:
        """Drop transactions whose marker lies at or above ``offset``."""
        self._keep(self._count_below(offset))

    def entries(self, first: int = 0) -> Iterator[AbortedTransaction]:
        """From entry number ``first`` on.  Raises CorruptFile at one of another version."""
        self.load()
        for number in range(first, self.count):
            yield self._aborted(self._read(number))

    def collect(self, start: int, upper: int) -> tuple[list[AbortedTransaction], bool]:
        """The transactions that reach into ``start`` to ``upper``, and whether no later segment has more."""
        found = []
        for aborted in self.entries(self._count_below(start)):
            if aborted.first_offset < upper:
                found.append(aborted)
            if aborted.last_stable >= upper:
                return found, True
        return found, False

    def _aborted(self, entry: tuple[int, ...]) -> AbortedTransaction:
        version, *facts = entry
        if version != VERSION:
            raise CorruptFile(self.path, f"an entry of version {version}")
        return AbortedTransaction(*facts)


def check_transaction_index(file_system: FileSystem, path: str, base_offset: int) -> None:
    """Raise CorruptFile unless the file's entries can all be true.  Kafka, too, trusts no such file."""
    content = file_system.read_file(path)
    if len(content) % ENTRY.size:
        raise CorruptFile(path, f"{len(content)} bytes are not whole entries")
    last = -1
    for version, _, first_offset, last_offset, _ in ENTRY.iter_unpack(content):
        if version != VERSION:
            raise CorruptFile(path, f"an entry of version {version}")
        if last_offset < base_offset or last_offset <= last or first_offset > last_offset:
            raise CorruptFile(
                path, f"a transaction from {first_offset} to {last_offset} behind one that ends at {last}"
            )
        last = last_offset
