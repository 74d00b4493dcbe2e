"""Checks one segment: every batch, and the indexes as the batches go by."""

import os
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from protocol.errors import DecodeError
from protocol.records.batch import RecordBatch
from storage import paths
from storage.errors import CorruptFile
from storage.filesystem import File
from storage.offset_index import RELATIVE_OFFSET_MAX
from storage.recovery import has_hole
from storage.verification.batch_reader import ReadBatch, Unreadable
from storage.verification.facts import Kind
from storage.verification.indexes import (
    MarkerSeen,
    OffsetIndexCheck,
    TimeIndexCheck,
    TransactionIndexCheck,
)
from storage.verification.read_only import open_to_read, reason_of
from storage.verification.records import find_faults

if TYPE_CHECKING:
    from storage.verification.log_check import LogCheck

_Index = TypeVar("_Index", OffsetIndexCheck, TimeIndexCheck)


class SegmentCheck:
    """The check of one segment: its files, and the place in each."""

    def __init__(self, log: "LogCheck", number: int, file: File, size: int, is_mended: bool) -> None:
        self.looked_at = 0
        self._log = log
        self._findings = log.findings
        self._facts = log.facts
        self._base = log.bases[number]
        self._is_last = number + 1 == len(log.bases)
        self._file = file
        self._path = file.path
        self._size = size
        self._is_mended = is_mended
        self._latest = -1
        self._offset_of_latest = self._base
        self._is_behind_damage = False
        self._offset_index = self._open(OffsetIndexCheck, paths.OFFSET_INDEX)
        self._time_index = self._open(TimeIndexCheck, paths.TIME_INDEX)
        self._transaction_index = self._open_transactions()

    def _open(self, kind: type[_Index], suffix: str) -> _Index | None:
        path = self._log.path(self._base, suffix)
        if path is None:
            if not self._is_mended and (self._size or suffix == paths.OFFSET_INDEX):
                expected = self._path_of(suffix)
                if suffix == paths.OFFSET_INDEX:
                    self._findings.note(expected, "is missing; a start will rebuild it from the log")
                else:
                    self._findings.damage(expected, "is missing: nobody finds records by their time")
            return None
        try:
            check = kind(open_to_read(self._log.file_system, path), self._base, partial(self._tell, path))
        except (CorruptFile, OSError) as error:
            self._findings.damage(path, reason_of(error))
            return None
        if check.entries.rest:
            self._tell(
                path, check.entries.size_bytes, f"{check.entries.size_bytes} bytes are no whole entries"
            )
        return check

    def _open_transactions(self) -> TransactionIndexCheck:
        path = self._log.path(self._base, paths.TRANSACTION_INDEX)
        tell = partial(self._tell, path or "")
        if path is not None:
            try:
                file = open_to_read(self._log.file_system, path)
                index = TransactionIndexCheck(file, self._base, tell)
                if index.rest:
                    tell(file.size(), f"{file.size()} bytes are no whole entries")
                return index
            except (CorruptFile, OSError) as error:
                self._findings.damage(path, reason_of(error))
        return TransactionIndexCheck(None, self._base, tell)

    def _path_of(self, suffix: str) -> str:
        found = self._log.path(self._base, suffix)
        return found or os.path.join(self._facts.path, paths.offset_name(self._base) + suffix)

    def _tell(self, path: str, position: int, text: str) -> None:
        """Something is wrong with an index."""
        if self._is_mended:
            self._findings.note(path, f"{text}; a start will rebuild it", position)
        else:
            self._findings.damage(path, text, position)

    @property
    def _is_safe(self) -> bool:
        """What is lost from here on was never flushed, and no broker starts without taking note."""
        is_metadata = self._facts.kind is Kind.METADATA
        return (
            self._is_mended
            and self._log.next_offset >= self._facts.recovery_point
            and not (is_metadata and (self._facts.was_clean or not self._is_last))
        )

    def see_unreadable(self, piece: Unreadable) -> None:
        """The next bytes are no sound batch."""
        if piece.next_offset is not None:
            self._see_unknown_format(piece, piece.next_offset)
            return
        log = self._log
        rest = self._size - piece.position
        reaches_end = piece.end == self._size
        is_metadata = self._facts.kind is Kind.METADATA
        is_safe = self._is_safe
        later = "" if self._is_last else " and remove the segments behind it"
        will_be_cut = is_safe and reaches_end and self._is_last
        if will_be_cut:
            text = (
                f"{piece.reason}; a start will cut the last {rest} bytes off, and the log will end at offset "
                f"{log.next_offset}"
            )
        elif is_safe and (piece.has_hole or (reaches_end and piece.is_torn)):
            will_be_cut = True
            text = (
                f"{piece.reason}: the machine went down before all was written; a start will cut off all "
                f"{rest} bytes from here on{later}"
            )
        elif reaches_end:
            text = f"{piece.reason}; nothing behind it can be read, which is {rest} bytes"
        else:
            text = f"{piece.reason}; the next good batch begins at byte {piece.end}"
        if self._is_mended and not will_be_cut and not is_metadata:
            text += f"; a start would cut off all {rest} bytes from here on{later}"
        self._findings.add(log.severity(will_be_cut), self._path, text, piece.position)
        if reaches_end and self._is_last:
            log.is_cut = True
        if not (will_be_cut and reaches_end and self._is_last):
            log.pass_over()
        self._skip_to(piece.end)

    def _see_unknown_format(self, piece: Unreadable, next_offset: int) -> None:
        self._findings.damage(self._path, piece.reason, piece.position)
        self._log.next_offset = max(next_offset, self._log.next_offset)
        self._log.pass_over()
        self._skip_to(piece.end)

    def _skip_to(self, end: int) -> None:
        """Nothing before byte ``end`` says what indexes ought to say."""
        self._is_behind_damage = True
        if self._offset_index is not None:
            self._offset_index.skip(end)
        if self._time_index is not None:
            self._time_index.skip()

    def see(self, piece: ReadBatch, next_base: int | None) -> None:
        """The next sound batch."""
        log = self._log
        batch = piece.batch
        position = piece.position
        base_offset = batch.base_offset
        last_offset = base_offset + batch.last_offset_delta
        if self._is_behind_damage:
            self._transaction_index.skip(base_offset)
            self._is_behind_damage = False
            log.next_offset = max(log.next_offset, min(base_offset, self._base + RELATIVE_OFFSET_MAX))
        if base_offset != log.next_offset:
            self._check_order(position, batch)
        if last_offset - self._base > RELATIVE_OFFSET_MAX:
            self._findings.damage(
                self._path, f"offset {last_offset} is too far from the segment's base", position
            )
        if next_base is not None and last_offset >= next_base:
            self._findings.damage(
                self._path,
                f"it ends at offset {last_offset}, but the next segment begins at {next_base}",
                position,
            )
        if log.snapshot_is_due(base_offset):
            log.compare_snapshots(base_offset)
        log.next_offset = max(last_offset, base_offset) + 1
        if self._offset_index is not None:
            self._offset_index.see(position, last_offset)
        timestamp = batch.max_timestamp
        if timestamp > self._latest:
            self._latest = timestamp
            self._offset_of_latest = last_offset
            if self._time_index is not None:
                self._time_index.see(base_offset, last_offset, timestamp)
        log.check_epoch(self._path, position, batch, self._is_mended)
        if batch.record_count <= batch.last_offset_delta:
            log.is_compacted = True
        log.records += max(batch.record_count, 0)
        if self._check_records(piece) and batch.producer_id >= 0:
            if batch.is_control:
                marker = log.check_marker(batch)
                if marker is not None:
                    self._check_aborted(marker)
            else:
                log.check_producer(self._path, position, batch)

    def _check_aborted(self, seen: MarkerSeen) -> None:
        """Compare a marker with its entry in the transaction index."""
        log = self._log
        path = self._path_of(paths.TRANSACTION_INDEX)
        found = self._transaction_index.take(seen.offset)
        if found is None:
            is_expected = seen.is_abort and seen.ended is not None and seen.had_records
            if is_expected and not log.is_blind and not self._is_mended:
                assert seen.ended is not None
                self._findings.damage(
                    path,
                    f"the transaction of producer {seen.producer_id} from offset {seen.ended.first_offset}, "
                    f"aborted at {seen.offset}, is missing: its records would be read as committed",
                )
            return
        at, entry = found
        where = f"it says that producer {entry.producer_id} aborted at offset {entry.last_offset}"
        if not seen.is_abort:
            self._tell(path, at, f"{where}, where it committed")
        elif entry.producer_id != seen.producer_id:
            self._tell(path, at, f"{where}, where producer {seen.producer_id} did")
        elif not (log.is_blind or self._is_mended or log.is_gone(entry.first_offset)):
            if seen.ended is None or entry.first_offset != seen.ended.first_offset:
                begun = f"began at {seen.ended.first_offset}" if seen.ended is not None else "never began"
                log.suspect(path, at, f"{where} what began at {entry.first_offset}; it {begun}")
            elif entry.last_stable != seen.last_stable and not log.is_gone(entry.last_stable):
                log.suspect(
                    path, at, f"{where} and all was decided below {entry.last_stable}, not {seen.last_stable}"
                )

    def _check_order(self, position: int, batch: RecordBatch) -> None:
        log = self._log
        if batch.base_offset < log.next_offset:
            text = f"offset {batch.base_offset} where {log.next_offset} or more must be"
            end = position + batch.size_bytes
            # The offset, which no CRC covers, may stand in another sector than the rest.
            is_torn = self._is_safe and has_hole(self._file, position, end, log.next_offset)
            if is_torn:
                text += f"; a start will cut off all {self._size - position} bytes from here on"
                log.pass_over()
            self._findings.add(log.severity(is_torn), self._path, text, position)
        else:
            log.see_gap(self._path, position, batch.base_offset)

    def _check_records(self, piece: ReadBatch) -> bool:
        """Whether the batch is fit to be counted in."""
        batch = piece.batch
        if not piece.is_whole:
            self._findings.note(
                self._path,
                f"a batch of {batch.size_bytes} bytes: its CRC is right, its records were not looked at",
                piece.position,
            )
            return not batch.is_control
        is_sound = True
        for is_damage, text in find_faults(batch):
            what = f"the batch at offset {batch.base_offset}: {text}"
            if is_damage:
                is_sound = False
                self._findings.damage(self._path, what, piece.position)
            else:
                self._findings.note(self._path, what, piece.position)
        if is_sound and self._log.look_into is not None:
            try:
                self._log.look_into(batch)
            except DecodeError as error:
                self._findings.damage(
                    self._path, f"the batch at offset {batch.base_offset}: {error}", piece.position
                )
        return is_sound

    def end(self) -> None:
        """There are no more batches: what is left in the indexes has no counterpart."""
        if self._offset_index is not None:
            self._offset_index.end(self._size)
            self._tell_of_index(self._offset_index, self._offset_index.of_whole_appends)
        if self._time_index is not None:
            self._time_index.end()
            self._tell_of_index(self._time_index, self._time_index.within_batches)
            is_short = self._time_index.last_timestamp < self._latest and not self._time_index.is_blind
            if is_short and not self._is_mended:
                self._findings.damage(
                    self._time_index.entries.path,
                    f"it ends with timestamp {self._time_index.last_timestamp}, but the latest is "
                    f"{self._latest}, at offset {self._offset_of_latest}",
                )
        if not self._is_behind_damage:
            self._transaction_index.end()

    def _tell_of_index(self, index: OffsetIndexCheck | TimeIndexCheck, old_entries: int) -> None:
        if index.padding is not None:
            rest = index.entries.size_bytes - index.padding
            text = f"its last {rest} bytes are zeros, the room that Kafka keeps while it runs"
            if self._is_mended:
                if self._facts.kind is not Kind.METADATA:  # there Kafka leaves it at every stop
                    self._findings.note(index.entries.path, f"{text}; a start will cut it off", index.padding)
            else:
                self._findings.damage(index.entries.path, text, index.padding)
        if old_entries:
            self._findings.note(
                index.entries.path, f"{old_entries} entries are of the kind that Kafka wrote before 4.2"
            )
