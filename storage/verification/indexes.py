"""Compares the indexes of a segment with its batches, while these go by one after the other."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from storage import offset_index, time_index, transaction_index
from storage.filesystem import File
from storage.producer_state import EndedTransaction
from storage.transaction_index import AbortedTransaction
from storage.verification.entries import EntryFile

Tell = Callable[[int, str], None]
"""Takes a position in the index file and what is wrong there."""


class OffsetIndexCheck:
    """The ``.index`` file.  Batches must be shown in the order of the log."""

    def __init__(self, file: File, base_offset: int, tell: Tell) -> None:
        self.entries = EntryFile(file, offset_index.ENTRY)
        self.padding: int | None = None
        """Where the place begins that a JVM reserves in advance, and takes back when it closes the file."""
        self.of_whole_appends = 0
        """Entries as Kafka wrote them once: where an append begins, and where its last batch ends."""
        self._base_offset = base_offset
        self._tell = tell
        self._read = self._entries()
        self._next = next(self._read, None)
        self._append: tuple[int, int, int] | None = None
        """Entry's position, its last offset, and where the batch is that it leads to."""

    def _entries(self) -> Iterator[tuple[int, int, int]]:
        last_offset = last_position = -1
        for number, (relative, position) in enumerate(self.entries):
            at = self.entries.position(number)
            if relative == 0 and position == 0 and self.entries.is_zero_from(number):
                self.padding = at
                return
            if relative < 0 or position < 0 or relative <= last_offset or position <= last_position:
                self._tell(
                    at, f"entry {number} is ({relative}, {position}), behind ({last_offset}, {last_position})"
                )
                continue
            last_offset, last_position = relative, position
            yield at, self._base_offset + relative, position

    def see(self, position: int, last_offset: int) -> None:
        """The next batch begins at byte ``position`` of the log."""
        if self._append is not None:
            self._see_in_append(last_offset)
        while self._next is not None and self._next[2] <= position:
            at, offset, place = self._next
            self._next = next(self._read, None)
            if place < position:
                self._tell(at, f"it leads to byte {place} of the log, where no batch begins")
            elif offset > last_offset:
                self._append = at, offset, place
            elif offset != last_offset:
                self._tell(
                    at, f"it says {offset} of the batch at byte {place}, which ends at offset {last_offset}"
                )

    def _see_in_append(self, last_offset: int) -> None:
        assert self._append is not None
        at, offset, place = self._append
        if last_offset < offset:
            return
        self._append = None
        if last_offset == offset:
            self.of_whole_appends += 1
        else:
            self._tell(at, f"it says {offset} of the batch at byte {place}, but no batch ends at that offset")

    def skip(self, end: int) -> None:
        """Up to byte ``end`` there is nothing that entries could be compared with."""
        self._append = None
        while self._next is not None and self._next[2] < end:
            self._next = next(self._read, None)

    def end(self, log_size: int) -> None:
        """There are no more batches."""
        if self._append is not None:
            at, offset, place = self._append
            self._tell(at, f"it says {offset} of the batch at byte {place}, but the log ends before")
        while self._next is not None:
            at, _, place = self._next
            self._next = next(self._read, None)
            self._tell(at, f"it leads to byte {place} of a log of {log_size} bytes")


class TimeIndexCheck:
    """The ``.timeindex`` file.  Batches must be shown in the order of the log."""

    def __init__(self, file: File, base_offset: int, tell: Tell) -> None:
        self.entries = EntryFile(file, time_index.ENTRY)
        self.padding: int | None = None
        self.within_batches = 0
        """Entries that name a record instead of the end of its batch, as Kafka once did."""
        self.last_timestamp = -1
        self._base_offset = base_offset
        self._tell = tell
        self._latest = -1
        self.is_blind = False
        self._read = self._entries()
        self._next = next(self._read, None)

    def _entries(self) -> Iterator[tuple[int, int, int]]:
        last_timestamp = last_offset = -1
        for number, (timestamp, relative) in enumerate(self.entries):
            at = self.entries.position(number)
            # Of a record from 1970 the first entry may well say that.
            is_single = self.entries.count == 1
            if timestamp == 0 and relative == 0 and not is_single and self.entries.is_zero_from(number):
                self.padding = at
                return
            if relative < 0 or timestamp <= last_timestamp or relative < last_offset:
                self._tell(
                    at,
                    f"entry {number} is ({timestamp}, {relative}), behind ({last_timestamp}, {last_offset})",
                )
                continue
            last_timestamp, last_offset = timestamp, relative
            self.last_timestamp = timestamp
            yield at, timestamp, self._base_offset + relative

    def see(self, base_offset: int, last_offset: int, timestamp: int) -> None:
        """The next batch has ``timestamp`` as its latest."""
        if timestamp <= self._latest or self.is_blind:
            return
        self._latest = timestamp
        while self._next is not None and self._next[1] <= timestamp:
            at, time, offset = self._next
            self._next = next(self._read, None)
            if time < timestamp:
                self._tell(at, f"it says that {time} is the latest timestamp up to {offset}, which is wrong")
            elif base_offset <= offset < last_offset:
                self.within_batches += 1
            elif offset != last_offset:
                self._tell(
                    at,
                    f"it says that timestamp {time} comes at offset {offset}, but it does at {last_offset}",
                )

    def skip(self) -> None:
        """Batches are missing: what entries say of timestamps cannot be compared any more."""
        self.is_blind = True

    def end(self) -> None:
        """There are no more batches."""
        while self._next is not None:
            at, time, offset = self._next
            self._next = next(self._read, None)
            if not self.is_blind:
                self._tell(at, f"it names timestamp {time} at offset {offset}, which no batch has")


class MarkerSeen(NamedTuple):
    """A marker in the log, and what it meant there."""

    producer_id: int
    offset: int
    is_abort: bool
    ended: EndedTransaction | None
    had_records: bool
    """The transaction has any in the log; compaction removes those of aborted ones."""
    last_stable: int


class TransactionIndexCheck:
    """The ``.txnindex`` file; None stands for one that does not exist."""

    def __init__(self, file: File | None, base_offset: int, tell: Tell) -> None:
        self.rest = 0
        self._base_offset = base_offset
        self._tell = tell
        self._entries = EntryFile(file, transaction_index.ENTRY) if file is not None else None
        if self._entries is not None:
            self.rest = self._entries.rest
        self._read = self._transactions()
        self._next = next(self._read, None)

    def _transactions(self) -> Iterator[tuple[int, AbortedTransaction]]:
        if self._entries is None:
            return
        before = self._base_offset - 1
        for number, (version, *fields) in enumerate(self._entries):
            at = self._entries.position(number)
            found = AbortedTransaction(*fields)
            if version != transaction_index.VERSION:
                self._tell(at, f"entry {number} is of version {version}")
            elif not found.first_offset <= found.last_offset or found.last_offset <= before:
                self._tell(
                    at,
                    f"entry {number} is a transaction from {found.first_offset} to {found.last_offset}, "
                    f"behind one that ends at {before}",
                )
            else:
                before = found.last_offset
                yield at, found

    def take(self, offset: int) -> tuple[int, AbortedTransaction] | None:
        """The entry of the marker at ``offset``, with its position; entries before it have no marker."""
        while self._next is not None and self._next[1].last_offset < offset:
            at, found = self._next
            self._next = next(self._read, None)
            self._tell(at, f"it names a marker at offset {found.last_offset}, where there is none")
        if self._next is not None and self._next[1].last_offset == offset:
            entry = self._next
            self._next = next(self._read, None)
            return entry
        return None

    def skip(self, next_offset: int) -> None:
        """Below ``next_offset`` there may have been markers that nobody can read any more."""
        while self._next is not None and self._next[1].last_offset < next_offset:
            self._next = next(self._read, None)

    def end(self) -> None:
        """There are no more markers."""
        self.take(1 << 64)
