"""One segment: a ``.log`` file, its indexes, and what must be known to append to it."""

import os
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple, TypeVar

from protocol.records.batch import RecordBatch
from protocol.records.control import EndTransactionMarker
from protocol.records.errors import CorruptRecords
from storage import paths
from storage.config import LogConfig
from storage.descriptors import CachedFile, Descriptors
from storage.errors import CorruptFile, CorruptLog, UnsupportedFormat
from storage.filesystem import File
from storage.log_services import Report
from storage.offset_index import RELATIVE_OFFSET_MAX, OffsetIndex
from storage.producer_state import EndedTransaction
from storage.removals import Removals
from storage.stored_batches import find_batch, read_headers, read_stored_batches
from storage.time_index import NO_TIMESTAMP, TimeIndex
from storage.transaction_index import AbortedTransaction, TransactionIndex

_PLACES_MAX = 32

_SEARCH_WINDOW = 64 << 10

_Found = TypeVar("_Found")


class FoundRecord(NamedTuple):
    """The answer to a search by time."""

    offset: int
    timestamp: int
    leader_epoch: int
    """Of the batch that holds the record; -1 if it has none."""


class Segment:
    """Batches from ``base_offset`` on, in one file.

    Invariant: the first ``size_bytes`` bytes of the file are whole batches.  A failed write may leave
    more in the file; the next write, or ``seal``, first cuts that off.
    """

    __slots__ = (
        "_created_ms",
        "_first_timestamp",
        "_has_overhang",
        "_index_interval_bytes",
        "_is_doubted",
        "_is_loaded",
        "_jitter_ms",
        "_last_indexed",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "_places",
        "_report",
        "base_offset",
        "file",
        "offset_index",
        "size_bytes",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        config: LogConfig,
        descriptors: Descriptors,
        *,
        size_bytes: int = 0,
        now_ms: int,
        jitter_ms: int = 0,
        suffix: str = "",
        report: Report | None = None,
    ) -> None:
        """A segment whose file has ``size_bytes`` bytes; nothing is read or created yet.

        ``report`` is told of indexes that had to be rebuilt.  ``suffix`` marks the files of one that is
        not part of the log.
        """
        prefix = os.path.join(directory, paths.offset_name(base_offset))
        index_bytes = config.segment_index_bytes
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.file = CachedFile(descriptors, prefix + paths.LOG + suffix)
        self.offset_index = OffsetIndex(
            CachedFile(descriptors, prefix + paths.OFFSET_INDEX + suffix), base_offset, index_bytes
        )
        self.time_index = TimeIndex(
            CachedFile(descriptors, prefix + paths.TIME_INDEX + suffix), base_offset, index_bytes
        )
        self.transaction_index = TransactionIndex(
            CachedFile(descriptors, prefix + paths.TRANSACTION_INDEX + suffix), base_offset
        )
        self._index_interval_bytes = config.index_interval_bytes
        self._created_ms = now_ms
        self._jitter_ms = jitter_ms
        self._has_overhang = False
        self._first_timestamp: int | None = None
        self._is_loaded = False
        self._is_doubted = False
        """The index has led to a place where no batch is, and was compared with the log."""
        self._report = report
        self._last_indexed = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._places: dict[int, int] = {}
        """Base offset -> position of batches written lately: consumers at the end ask for just these."""

    def __repr__(self) -> str:
        return f"Segment({self.file.path!r}, {self.size_bytes} bytes)"

    def load(self) -> None:
        """Read what the indexes end with; needed before the first append, and done only once."""
        if not self._is_loaded:
            self._load_offset_index()
        if not self._is_loaded:
            self.time_index.load()
            if (damage := self.time_index.find_damage(self.size_bytes)) is not None:
                self._rebuild_indexes(f"{self.time_index.path}: {damage}")
                return
            self._last_indexed = self.offset_index.last_position
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last
            self._is_loaded = True

    def _load_offset_index(self) -> None:
        index = self.offset_index
        if index.count < 0:
            index.load()
            if (damage := index.find_damage(self.size_bytes)) is not None:
                self._rebuild_indexes(f"{index.path}: {damage}")

    def _rebuild_indexes(self, reason: str) -> None:
        """Fill the offset and the time index from the headers of all batches, as far as these are whole."""
        if self._report is not None:
            self._report(f"{reason}; the indexes are rebuilt from the log")
        size = self.size_bytes
        self.offset_index.reset()
        self.time_index.reset()
        self._last_indexed = 0
        self._max_timestamp, self._offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self._is_loaded = True
        try:
            for position, batch in read_headers(self.file.open(), 0, size):
                if not self.base_offset <= batch.last_offset <= self.base_offset + RELATIVE_OFFSET_MAX:
                    break  # what lies behind is found from here on, by walking
                self.note(batch.last_offset, batch.max_timestamp, position, batch.size_bytes)
        except CorruptFile:
            pass  # told to whoever reads there
        self.size_bytes = size
        self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
        for index in (self.offset_index, self.time_index):
            index.store()
            index.open_file().sync()

    def create(self) -> None:
        """Make the file, empty, instead of ``load``; the indexes get theirs when they are stored."""
        self.file.open(create=True)
        self.offset_index.begin()
        self.time_index.begin()
        self.transaction_index.begin()
        self._is_loaded = True

    def has_index_in(self, names: Container[str]) -> bool:
        """Whether the offset and the time index are among the names of files in the directory."""
        indexes = (self.offset_index, self.time_index)
        return all(os.path.basename(index.path) in names for index in indexes)

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of all records, in ms; -1 if none has any."""
        self.load()
        return self._max_timestamp

    def latest_ms(self) -> int:
        """The same, but a segment without any timestamp counts as old as its file, as in Kafka."""
        latest = self.max_timestamp
        return latest if latest >= 0 else self.file.modified_ms()

    @property
    def first_timestamp(self) -> int:
        """The first batch's max timestamp, from which the segment's age counts; -1 if unknown."""
        if self._first_timestamp is None and self.size_bytes:
            _, batch = next(read_headers(self.file.open(), 0, self.size_bytes))
            self._first_timestamp = batch.max_timestamp
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def read_next_offset(self) -> int:
        """The offset behind the last batch, found on disk.  Raises CorruptLog if the file ends inside one."""
        self._load_offset_index()
        return self._with_index(self.offset_index.last_position, self._read_next_offset)

    def _read_next_offset(self, position: int) -> int:
        next_offset = self.base_offset
        for _, batch in read_headers(self.file.open(), position, self.size_bytes):
            next_offset = batch.next_offset
        return next_offset

    # Appending

    def should_roll(self, batch: RecordBatch, config: LogConfig, now_ms: int) -> bool:
        """Whether ``batch``, whose offset is set, belongs into a segment of its own."""
        if not self.size_bytes:
            return batch.last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        first_timestamp = self._first_timestamp
        if first_timestamp is None:
            first_timestamp = self.first_timestamp
        age = batch.max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - self._created_ms
        return (
            self.size_bytes + batch.size_bytes > config.segment_bytes
            or age > config.segment_ms - self._jitter_ms
            or batch.base_offset + batch.last_offset_delta - self.base_offset > RELATIVE_OFFSET_MAX
            or self.offset_index.is_full
            or self.time_index.is_full
        )

    def append(self, batch: RecordBatch) -> None:
        """Write ``batch`` at the end.  On OSError the segment is as it was before."""
        position = self.size_bytes
        if self._has_overhang:
            self._cut_overhang()
        if position - self._last_indexed > self._index_interval_bytes and (
            self.offset_index.wants_store or self.time_index.wants_store
        ):
            self._store_indexes()
        try:
            self.file.open().pwrite(batch.data, position)
        except OSError:
            self._has_overhang = True
            try:
                self._cut_overhang()
            except OSError:
                pass  # tried again before the next write; meanwhile nobody reads behind size_bytes
            raise
        places = self._places
        if len(places) >= _PLACES_MAX:
            places.clear()
        places[batch.base_offset] = position
        self.note(
            batch.base_offset + batch.last_offset_delta, batch.max_timestamp, position, batch.size_bytes
        )

    # Several batches in one write, which is how they come to a follower.

    def begin_run(self, config: LogConfig) -> "Run":
        """Gather batches that are written at once, at the end.  Raises OSError.

        Nothing else may be appended until that is done or given up.
        """
        if self._has_overhang:
            self._cut_overhang()
        if self.offset_index.wants_store or self.time_index.wants_store:
            self._store_indexes()
        return Run(self, config)

    def take_run(self, batches: Sequence[RecordBatch]) -> None:
        """Count in what was written."""
        places = self._places
        for batch in batches:
            position = self.size_bytes
            if len(places) >= _PLACES_MAX:
                places.clear()
            places[batch.base_offset] = position
            self.note(
                batch.base_offset + batch.last_offset_delta, batch.max_timestamp, position, batch.size_bytes
            )

    def give_up_run(self) -> None:
        """What was to be written may be there in part."""
        self._has_overhang = True
        try:
            self._cut_overhang()
        except OSError:
            pass  # tried again before the next write, as in ``append``

    def note(self, last_offset: int, timestamp: int, position: int, size_bytes: int) -> None:
        """Count in a batch that the file has at ``position``, where the segment ended so far.

        The offset is that of its last record, the timestamp the batch's maximum.
        """
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
            self._offset_of_max_timestamp = last_offset
        if position - self._last_indexed > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
            self._last_indexed = position
        elif not position:
            self._first_timestamp = timestamp
        self.size_bytes = position + size_bytes

    def expect_marker(self, marker: EndTransactionMarker) -> None:
        """A marker is about to be written.  Raises OSError where ``note_aborted`` could not read the index.

        Once the marker is in the log, nothing else may fail: a repeated one would end no transaction.
        """
        if not marker.is_commit:
            self.transaction_index.load()

    def note_aborted(self, ended: EndedTransaction, last_stable: int) -> None:
        """The marker that was counted in last has aborted a transaction."""
        self.transaction_index.append(
            AbortedTransaction(ended.producer_id, ended.first_offset, ended.marker_offset, last_stable)
        )

    def _cut_overhang(self) -> None:
        self.file.open().truncate(self.size_bytes)
        self._has_overhang = False

    def seal(self) -> None:
        """Leave files that are complete: the time index ends with the latest timestamp of all."""
        self.load()
        if self._has_overhang:
            self._cut_overhang()
        self.time_index.append(self._max_timestamp, self._offset_of_max_timestamp)
        self._store_indexes()
        self._places.clear()

    def store_indexes_if_large(self) -> None:
        """Write what has gathered of them in memory, if it is much."""
        if self.offset_index.wants_store or self.time_index.wants_store:
            self._store_indexes()

    def _store_indexes(self) -> None:
        self.offset_index.store()
        self.time_index.store()
        self.transaction_index.store()

    @property
    def files(self) -> tuple[CachedFile, ...]:
        """All of them, which are complete after ``seal``; few segments have the last one on disk."""
        return self.file, self.offset_index.file, self.time_index.file, self.transaction_index.file

    def open_indexes(self) -> list[File]:
        """Their files, for an fsync after ``seal``."""
        files = [self.offset_index.open_file(), self.time_index.open_file()]
        if (file := self.transaction_index.find_file()) is not None:
            files.append(file)
        return files

    # Finding

    def locate(self, offset: int) -> int | None:
        """Where the batch starts that holds ``offset``, or else the next one; None if there is none."""
        position = self._places.get(offset)
        if position is not None:
            return position
        self._load_offset_index()
        file = self.file.open()
        return self._with_index(
            self.offset_index.lookup(offset), lambda start: find_batch(file, offset, start, self.size_bytes)
        )

    def _with_index(self, start: int, walk: Callable[[int], _Found]) -> _Found:
        """The answer of a ``walk`` over batches from byte ``start`` on, which is what the index says.

        If there is no batch, the walk from the beginning tells whether the log is damaged or the index,
        which is rebuilt then.
        """
        try:
            return walk(start)
        except (CorruptLog, UnsupportedFormat) as damage:
            if not start or self._is_doubted:
                raise
            self._is_doubted = True
            found = walk(0)
            self._rebuild_indexes(f"{self.offset_index.path} leads to byte {start}: {damage.reason}")
            return found

    def end_of_range(self, position: int) -> int | None:
        """An offset that no record before byte ``position`` exceeds; None if the index knows of none."""
        self._load_offset_index()
        return self.offset_index.lookup_position(position)

    def find_by_timestamp(self, timestamp: int, start: int) -> FoundRecord | None:
        """The first record from offset ``start`` on that is not before ``timestamp``."""
        self.load()
        position = self.offset_index.lookup(max(self.time_index.lookup(timestamp), start))
        return self._find_record(position, timestamp, start)

    def find_max_timestamp(self) -> FoundRecord | None:
        """The first record that has the segment's latest timestamp."""
        self.load()
        position = self.offset_index.lookup(self._offset_of_max_timestamp)
        return self._find_record(position, self._max_timestamp, self.base_offset)

    def _find_record(self, position: int, timestamp: int, start: int) -> FoundRecord | None:
        batches = read_stored_batches(self.file.open(), position, self.size_bytes, window_size=_SEARCH_WINDOW)
        for batch_position, batch in batches:
            if batch.max_timestamp < timestamp:
                continue
            try:
                for record in batch.records():
                    if record.timestamp >= timestamp and record.offset >= start:
                        return FoundRecord(record.offset, record.timestamp, batch.partition_leader_epoch)
            except CorruptRecords as error:
                raise CorruptLog(self.file.path, batch_position, str(error)) from error
        return None

    # Shortening and closing

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop the batch that holds ``offset`` and all behind it."""
        self.load()
        position = self.locate(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self._places.clear()
        if position is not None:
            self.size_bytes = position
            self._cut_overhang()
        if not self.size_bytes:
            self._created_ms = now_ms
            self._first_timestamp = None
        self._last_indexed = self.offset_index.last_position
        # What the time index knows, and what came after its last entry.
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last
        start = self.offset_index.lookup(self._offset_of_max_timestamp)
        for _, batch in read_headers(self.file.open(), start, self.size_bytes):
            if batch.max_timestamp > self._max_timestamp:
                self._max_timestamp = batch.max_timestamp
                self._offset_of_max_timestamp = batch.last_offset

    def reset_indexes(self, names: Container[str]) -> None:
        """Forget what the indexes say, and the size: recovery counts every batch in again.

        ``names`` are those of the files that there are.
        """
        for index in (self.offset_index, self.time_index, self.transaction_index):
            if os.path.basename(index.path) in names:
                index.reset()
            else:
                index.begin()
        self.size_bytes = 0
        self._last_indexed = 0
        self._max_timestamp, self._offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self._is_loaded = True

    def cut(self) -> None:
        """Make the file end with the last batch that was counted in."""
        self._cut_overhang()

    def mark_deleted(self, removals: Removals, due_ms: int) -> None:
        """Rename the files so that no restart takes them for live; they go when ``due_ms`` is past."""
        self.close()
        for file in self.files:
            removals.mark_file(file.path, due_ms)

    def note_renamed(self, directory: str) -> None:
        """The files are in this folder now: those that are open, which know their old paths, are let go."""
        for file in self.files:
            file.close()
            file.path = os.path.join(directory, os.path.basename(file.path))

    def close(self) -> None:
        """Let go of the descriptors."""
        self.file.close()
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()


class Run:
    """Batches that stand one behind the other in a buffer, and belong into the same segment."""

    __slots__ = ("_config", "_first_timestamp", "_segment", "batches", "size_bytes")

    def __init__(self, segment: Segment, config: LogConfig) -> None:
        self._segment = segment
        self._config = config
        self._first_timestamp = segment.first_timestamp
        """-1 if that is unknown, or if the segment is empty."""
        self.batches: list[RecordBatch] = []
        self.size_bytes = 0

    def add(self, batch: RecordBatch, now_ms: int) -> bool:
        """Whether the batch goes with the others: not if the segment would be full with these.

        The first one always does, for which ``Segment.should_roll`` was asked; so it will be for one that is
        turned away.
        """
        if self.batches and not self._has_room(batch, now_ms):
            return False
        if not self.batches and not self._segment.size_bytes:
            self._first_timestamp = batch.max_timestamp
        self.batches.append(batch)
        self.size_bytes += batch.size_bytes
        return True

    def _has_room(self, batch: RecordBatch, now_ms: int) -> bool:
        segment, config, first_timestamp = self._segment, self._config, self._first_timestamp
        size_bytes = segment.size_bytes + self.size_bytes
        age = batch.max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment._created_ms
        entries = self.size_bytes // max(segment._index_interval_bytes, 1) + 1  # no more than these are added
        return (
            size_bytes + batch.size_bytes <= config.segment_bytes
            and age <= config.segment_ms - segment._jitter_ms
            and batch.last_offset - segment.base_offset <= RELATIVE_OFFSET_MAX
            and segment.offset_index.count + entries < segment.offset_index.count_max
            and segment.time_index.count + entries < segment.time_index.count_max - 1
        )
