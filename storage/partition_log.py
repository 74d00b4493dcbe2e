"""One partition's log: records appended at its end, read by offset, kept in segments on disk."""

import errno
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from protocol.records.batch import RecordBatch, read_batches
from protocol.records.control import EndTransactionMarker
from protocol.records.errors import CorruptRecords
from storage import paths
from storage.checkpoints import format_epochs
from storage.cleaner import Cleanable, CleaningJob, assess
from storage.config import LogConfig
from storage.errors import BatchTooLarge, DiskFailure, OffsetNotNext, OffsetOutOfRange, TornBatch
from storage.file_range import FileRange
from storage.filesystem import Buffer, File
from storage.leader_epochs import LeaderEpochs
from storage.log_services import LogServices
from storage.producer_replay import load_producers, read_marker
from storage.producer_snapshot import ProducerSnapshots
from storage.producer_state import ProducerState
from storage.retention import Expired, count_expired, may_need_care
from storage.segment import FoundRecord, Run, Segment
from storage.segments import create_segment
from storage.stored_batches import read_batch_size
from storage.swaps import discard_cleaned, is_marked_swap, mark_cleaned, unmark_cleaned, unmark_swapped
from storage.transaction_index import AbortedTransaction
from storage.transaction_verification import VOUCHED, Verification


class Appended(NamedTuple):
    """Where a batch lies in the log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    """Of the batch, in ms; Kafka answers a duplicate with it as LogAppendTimeMs."""
    log_start: int
    is_duplicate: bool
    """Nothing was written: these are the offsets from when the batch came first."""


class SegmentInfo(NamedTuple):
    base_offset: int
    size_bytes: int
    """Of the .log file alone, as DescribeLogDirs counts."""
    max_timestamp: int
    """-1 if no record has a timestamp."""


class LogChanged(Exception):
    """The log is not what was cleaned any more: what came of it is not wanted."""


class ActiveProducer(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int
    """Offset of its open transaction's first record; -1 if none is open."""


class PartitionLog:
    """Offsets, in order: log_start <= last_stable <= high_watermark <= log_end.

    Everything here is called from one thread, the event loop's.  Only ``FlushJob.run`` and what
    ``FileRange`` does may run elsewhere, at the same time.

    Where OSError can occur, DiskFailure is raised.
    """

    def __init__(
        self,
        services: LogServices,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        segments: list[Segment],
        unsynced: Iterable[Segment] = (),
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
        snapshots: ProducerSnapshots,
        log_start: int,
        log_end: int,
        recovery_point: int,
        high_watermark: int,
        stored_epochs: tuple[tuple[int, int], ...] | None = None,
        is_new: bool = False,
        is_recovered: bool = False,
    ) -> None:
        """For ``loading`` and ``LogDirectory``: the parts must agree with what is on disk.

        ``stored_epochs`` is what the checkpoint of leader epochs says, if that is known.
        """
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.config = config
        """May be replaced at any time; the next append goes by it."""
        self.log_start = log_start
        """First offset still served."""
        self.log_end = log_end
        """Offset of the next record."""
        self.high_watermark = high_watermark
        """All in-sync replicas have everything below; moved by ``advance_high_watermark``."""
        self.recovery_point = recovery_point
        """Everything below is fsynced."""
        self.leader_epochs = leader_epochs
        self.producers = producers
        producers.advance_high_watermark(high_watermark)  # it may have come from a walk through the log
        self._services = services
        self._snapshots = snapshots
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._active = segments[-1]
        self._unsynced = list(unsynced)
        """Sealed segments that no flush has covered yet."""
        self._names_changed = 0
        """How often files came or went; ``_names_synced`` says up to where an fsync has covered that."""
        self._names_synced = -1 if is_new or is_recovered else 0
        self._is_new = is_new
        """The directory's own name was not fsynced yet."""
        self._is_gone = False
        """Deleted: there is nothing left that could be flushed."""
        self.is_being_written = False
        """A ``FollowerWrite`` is under way: nothing else may be written, and nothing truncated."""
        self._has_changes = is_new or is_recovered
        """Something is to be flushed or noted before the files can be left alone."""
        self._stored_epochs = stored_epochs
        """What the checkpoint of leader epochs says, if nothing else was stored since."""
        self._cuts = 0
        """How often the log was truncated, or about to be: a flush that began before must not move
        recovery_point."""
        self.lowest_cut: int | None = None
        """The lowest offset that the log was truncated to since it was opened."""
        self._swapping: int | None = None
        """Base offset of a cleaned segment that is about to take its place, and has not yet.

        One that has is among ``_segments`` at once, while its files may still be called swap files.
        """
        self._torn: frozenset[int] = frozenset()
        """Bases of segments that were reported because they end inside a batch."""
        self._flush_lock = Lock()
        self._presence_lock = Lock()

    def __repr__(self) -> str:
        return f"PartitionLog({self.directory!r}, {self.log_start} to {self.log_end})"

    @property
    def last_stable(self) -> int:
        """First offset whose transaction is undecided, at most the high watermark."""
        first_unstable = self.producers.first_unstable
        if first_unstable is None or first_unstable > self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log_start)

    # Writing

    def append_as_leader(
        self,
        batch: RecordBatch,
        leader_epoch: int,
        *,
        now_ms: int,
        from_client: bool = True,
        verification: Verification | None = VOUCHED,
    ) -> Appended:
        """Give ``batch`` its offsets and this leader epoch, in place, and write it.

        The batch must be valid already, and its buffer writable.  ``from_client=False`` is for
        coordinators and markers, whose sequences are not checked.  ``verification`` is what
        ``producers.begin_verification`` gave for a transactional batch.

        Raises OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState,
        UnverifiedTransaction, TransactionCoordinatorFenced, BatchTooLarge or DiskFailure, and then the
        log is as before.
        A batch that one of the producer's last five repeats is not written again: the answer has
        ``is_duplicate`` set.
        """
        if batch.size_bytes > self.config.segment_bytes:
            raise BatchTooLarge(batch.size_bytes, self.config.segment_bytes)
        marker: EndTransactionMarker | None = None
        if batch.producer_id >= 0:
            if batch.is_control:
                marker = read_marker(batch)
                if marker is not None:
                    self.producers.check_marker(batch, marker)
            elif from_client:
                known = self.producers.check(batch, verification)
                if known is not None:
                    return Appended(
                        known.base_offset, known.last_offset, known.timestamp, self.log_start, True
                    )
            else:
                self.producers.check_internal(batch, verification)
        base_offset = self.log_end
        batch.set_place(base_offset, leader_epoch)
        self._append(batch, marker, now_ms)
        return Appended(base_offset, self.log_end - 1, batch.max_timestamp, self.log_start, False)

    def append_as_follower(self, records: Buffer, *, now_ms: int, leader_epoch: int | None = None) -> int:
        """Write whole batches as they are, offsets and epochs included; return the new log end.

        An incomplete batch at the end is left out, and so is everything from a batch on that is of a later
        epoch than ``leader_epoch``, in which these were asked for: its leader is not the one who was asked
        (KAFKA-18723).  What goes into one segment is written at once.

        Raises OffsetNotNext, CorruptRecords (a bad CRC included) or DiskFailure; the batches before the
        offending one have been written then, or before those of the same segment if the disk failed.
        """
        for write in self.writes_of(records, now_ms=now_ms, leader_epoch=leader_epoch):
            write.run()
            write.finish()
        return self.log_end

    def writes_of(
        self, records: Buffer, *, now_ms: int, leader_epoch: int | None = None
    ) -> Iterator["FollowerWrite"]:
        """The same in steps, each to be run, in a thread perhaps, and finished before the next is asked for.

        Meanwhile nothing else may be written, nor anything truncated.
        """
        self._has_changes = True
        next_offset = self.log_end
        position = 0
        failure: Exception | None = None
        while failure is None:
            segment = self._active
            run: Run | None = None
            is_full = False
            try:
                for batch in read_batches(records, position):
                    if leader_epoch is not None and batch.partition_leader_epoch > leader_epoch:
                        break
                    batch.check_crc()
                    if batch.base_offset < next_offset or batch.last_offset_delta < 0:
                        raise OffsetNotNext(batch.base_offset, next_offset)
                    marker: EndTransactionMarker | None = None
                    if batch.is_control and batch.producer_id >= 0:
                        marker = read_marker(batch)
                    if run is None:
                        if segment.should_roll(batch, self.config, now_ms):
                            segment = self._roll(batch.base_offset, now_ms)
                        run = segment.begin_run(self.config)
                    if marker is not None:
                        segment.expect_marker(marker)
                    if not run.add(batch, now_ms):
                        is_full = True
                        break
                    next_offset = batch.base_offset + batch.last_offset_delta + 1
            except OSError as error:
                raise DiskFailure(segment.file.path, "append to", error) from error
            except (CorruptRecords, OffsetNotNext) as error:
                failure = error
            if run is not None and run.batches:
                position = run.batches[-1].position + run.batches[-1].size_bytes
                yield FollowerWrite(self, segment, run.batches, records)
            if not is_full:
                break
        if failure is not None:
            raise failure

    def begins_segment(self, batch: RecordBatch, *, now_ms: int) -> bool:
        """Whether ``batch``, whose offset is set, would be the first of a new segment."""
        return self._active.should_roll(batch, self.config, now_ms)

    def _append(self, batch: RecordBatch, marker: EndTransactionMarker | None, now_ms: int) -> None:
        segment = self._active
        self._has_changes = True
        try:
            if segment.should_roll(batch, self.config, now_ms):
                segment = self._roll(batch.base_offset, now_ms)
            if marker is not None:
                segment.expect_marker(marker)
            segment.append(batch)
        except OSError as error:
            raise DiskFailure(segment.file.path, "append to", error) from error
        self._take_note(segment, batch, marker)

    def _take_note(self, segment: Segment, batch: RecordBatch, marker: EndTransactionMarker | None) -> None:
        """A batch is in the segment now."""
        self.log_end = batch.base_offset + batch.last_offset_delta + 1
        if batch.partition_leader_epoch > self.leader_epochs.latest:
            self.leader_epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        if batch.producer_id >= 0:
            if marker is not None:
                ended = self.producers.apply_marker(batch, marker)
                if ended is not None and not ended.is_commit:
                    segment.note_aborted(ended, self.producers.last_stable_after(ended))
            elif not batch.is_control:
                self.producers.apply(batch)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upper: int | None = None, at_least_one: bool = True
    ) -> FileRange | None:
        """Where the bytes from the batch that holds ``offset`` on lie; None if there are none yet.

        At most ``max_bytes``, the last batch being cut at the limit as Kafka cuts it.  If not even
        the first batch fits, it is given whole with ``at_least_one``, else None.  Nothing from
        ``upper`` on (an exclusive offset: high_watermark, last_stable or log_end; None stands for
        log_end).  Stays within one segment.  Reads headers only, and not even these where a
        consumer follows the end of the log.

        Raises OffsetOutOfRange if ``offset`` lies below log_start or above log_end; CorruptLog.
        """
        log_end = self.log_end
        if not self.log_start <= offset <= log_end:
            raise OffsetOutOfRange(offset, self.log_start, log_end)
        if upper is None or upper > log_end:
            upper = log_end
        if offset >= upper:
            return None
        number = len(self._segments) - 1
        if offset < self._bases[number]:
            number = max(bisect_right(self._bases, offset) - 1, 0)
        try:
            # A segment may end below its successor's base: compaction leaves such gaps.
            while (position := self._locate(number, offset)) is None:
                number += 1
                if number == len(self._segments) or self._bases[number] >= upper:
                    return None
            segment = self._segments[number]
            end = segment.size_bytes
            if upper < log_end and (number + 1 == len(self._segments) or upper < self._bases[number + 1]):
                limit = self._locate(number, upper)
                if limit is not None:
                    end = limit
            size = end - position
            if size <= 0:
                return None
            file = segment.file.open()
            if size > max_bytes:
                first_size = read_batch_size(file, position)
                if max_bytes >= first_size:
                    size = max_bytes
                elif at_least_one:
                    size = first_size
                else:
                    return None
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error
        return FileRange(file, position, size, offset)

    def _locate(self, number: int, offset: int) -> int | None:
        """``Segment.locate``, but what a segment has lost at its end is not there, as in Kafka.

        Where the log goes on behind it nobody would ever get past it otherwise.
        """
        try:
            return self._segments[number].locate(offset)
        except TornBatch as damage:
            self._go_on_behind(number, damage)
            return None

    def _go_on_behind(self, number: int, damage: TornBatch) -> None:
        """Report, once, that a segment has lost its end; raises ``damage`` if it is the last one."""
        if number + 1 == len(self._segments):
            raise damage
        if self._bases[number] not in self._torn:
            self._torn |= {self._bases[number]}
            self._services.report(
                f"{damage}; the records from there on are lost, readers go on at offset "
                f"{self._bases[number + 1]}"
            )

    def aborted_transactions(self, records: FileRange) -> list[AbortedTransaction]:
        """The aborted transactions that may have records in ``records``, which ``read`` gave.

        Like Kafka's answer it may name some that begin a little behind the range; or more of them, if the
        segment was replaced since, or its file was let go.  Raises CorruptFile.
        """
        first = number = max(bisect_right(self._bases, records.base_offset) - 1, 0)
        while self._segments[number].file.opened is not records.file:
            number += 1
            if number == len(self._segments):
                return self._collect_aborted(first, records.base_offset, self.log_end)
        try:
            upper = self._segments[number].end_of_range(records.position + records.size_bytes)
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error
        if upper is None:
            upper = self._bases[number + 1] if number + 1 < len(self._bases) else self.log_end
        return self._collect_aborted(number, records.base_offset, upper)

    def _collect_aborted(self, number: int, start: int, upper: int) -> list[AbortedTransaction]:
        """Those that reach into ``start`` to ``upper``, from the segment with this number on."""
        found: list[AbortedTransaction] = []
        try:
            for segment in self._segments[number:]:
                some, is_complete = segment.transaction_index.collect(start, upper)
                found += some
                if is_complete:
                    break
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error
        return found

    def find_by_timestamp(self, timestamp: int, *, upper: int | None = None) -> FoundRecord | None:
        """The first record at or after ``timestamp`` (ms), if its offset is below ``upper``.

        Raises CorruptLog if a batch that must be looked into cannot be decompressed.
        """
        try:
            for number, segment in enumerate(self._segments):
                if segment.size_bytes and segment.latest_ms() >= timestamp:
                    try:
                        return _below(upper, segment.find_by_timestamp(timestamp, self.log_start))
                    except TornBatch as damage:
                        self._go_on_behind(number, damage)
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error
        return None

    def find_max_timestamp(self, *, upper: int | None = None) -> FoundRecord | None:
        """The first record that has the log's latest timestamp (ListOffsets -3)."""
        try:
            latest = max(self._segments, key=lambda segment: segment.max_timestamp)
            return _below(upper, latest.find_max_timestamp())
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch not above ``leader_epoch`` and where it ends: OffsetForLeaderEpoch.

        (-1, -1) if the log knows no such epoch.
        """
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end)

    # Moving the ends

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, up to the log end; return whether it moved."""
        if offset > self.log_end:
            offset = self.log_end
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.advance_high_watermark(offset)
        return True

    def follow_high_watermark(self, offset: int) -> bool:
        """Take over the leader's high watermark, as far as this log reaches; return whether it changed.

        Unlike a leader's own it may go back: a new leader begins with what it knew as a follower.
        """
        offset = max(min(offset, self.log_end), self.log_start)
        if offset == self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.advance_high_watermark(offset)
        return True

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This replica leads from now on: the epoch starts at the log end, whether data follows or not."""
        if leader_epoch != self.leader_epochs.latest:  # nor can a later one be true
            self.leader_epochs.assign(leader_epoch, self.log_end)
            self._has_changes = True

    def delete_records_before(self, offset: int) -> int:
        """Move log_start forward to ``offset`` (DeleteRecords); return the log start.

        Nothing happens if it is there already.  Raises OffsetOutOfRange above the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start, self.high_watermark)
        if offset > self.log_start:
            self.log_start = offset
            self.leader_epochs.truncate_from_start(offset)
            self._has_changes = True
        return self.log_start

    def remove_segments_below_log_start(self, *, now_ms: int) -> int:
        """Drop segments that nobody can read any more; return how many.  The last one always stays."""
        count = bisect_right(self._bases, self.log_start) - 1
        if count <= 0:
            return 0
        self._drop(0, count, now_ms)
        return count

    def delete_expired_segments(self, *, now_ms: int, at_most: int = 1000) -> Expired:
        """Drop the oldest segments as the topic's retention asks, or DeleteRecords did; return what was due.

        If more than ``at_most`` were due, the rest is for the next call.  The log start moves, too.
        """
        if self._is_gone or self.is_being_written:
            return Expired()
        try:
            expired = count_expired(
                self._segments,
                self.config,
                log_start=self.log_start,
                high_watermark=self.high_watermark,
                log_end=self.log_end,
                now_ms=now_ms,
            )
            count = min(expired.total, at_most)
            if not count:
                return expired
            if count == len(self._segments):
                self._roll(self.log_end, now_ms)
        except OSError as error:
            raise DiskFailure(self.directory, "apply retention in", error) from error
        start = self._bases[count]
        if start > self.log_start:
            self.log_start = start
            self.leader_epochs.truncate_from_start(start)
        self._drop(0, count, now_ms)
        return expired

    def may_need_care(self, *, now_ms: int) -> bool:
        """Whether retention or the cleaner may have work here, wherever the high watermark is.

        Raises DiskFailure, CorruptLog.
        """
        try:
            return may_need_care(self._segments, self.config, log_start=self.log_start, now_ms=now_ms)
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error

    # Compaction

    def assess(self, checkpoint: int | None, *, now_ms: int) -> Cleanable:
        """What the cleaner would find here, if its last run ended at ``checkpoint``.

        Raises DiskFailure, CorruptLog.
        """
        try:
            return assess(
                self._segments,
                self.config,
                checkpoint=checkpoint,
                log_start=self.log_start,
                log_end=self.log_end,
                last_stable=self.last_stable,
                now_ms=now_ms,
            )
        except OSError as error:
            raise DiskFailure(self.directory, "read", error) from error

    def begin_cleaning(
        self, cleanable: Cleanable, *, keys_max: int, bytes_per_second: float, now_ms: int
    ) -> CleaningJob:
        """The job of cleaning what was found.

        A flush must have begun since, and be finished: a record must not go because of a later one, or of
        a transaction's marker, that a power cut can still take.
        """
        upper = cleanable.first_uncleanable
        assert upper <= self.recovery_point, "what replaces a record is safe"
        bases = self._bases[: bisect_left(self._bases, upper)]
        aborted = self._collect_aborted(0, self.log_start, upper) if bases else []
        return CleaningJob(
            directory=self.directory,
            bases=bases,
            first_dirty=cleanable.first_dirty,
            upper=upper,
            high_watermark=self.high_watermark,
            now_ms=now_ms,
            aborted=[list(each) for each in aborted],
            last_records=[
                [
                    entry.producer_id,
                    entry.batches[-1].last_offset if entry.batches else -1,
                    entry.producer_epoch,
                ]
                for entry in self.producers.entries.values()
            ],
            keys_max=keys_max,
            bytes_per_second=bytes_per_second,
            segment_bytes=self.config.segment_bytes,
            segment_index_bytes=self.config.segment_index_bytes,
            index_interval_bytes=self.config.index_interval_bytes,
            delete_retention_ms=self.config.delete_retention_ms,
        )

    @property
    def cuts(self) -> int:
        """How often the log was truncated: what was cleaned before the last time must not come back."""
        return self._cuts

    def swap_in_steps(self, bases: Sequence[int], *, cuts: int, now_ms: int) -> Iterator[Callable[[], None]]:
        """Put a cleaned segment, whose files are complete, in the place of the ones with ``bases``.

        Call each answer, in a thread, before the next one is asked for: it fsyncs the folder.  After a
        crash at any point ``finish_swaps`` sees to it that either the old segments are there or the new one.

        Raises LogChanged if the old segments are not there any more, or the log was truncated since ``cuts``:
        the cleaned files are gone then.  This and the answers raise DiskFailure, after which the log must be
        opened anew.
        """
        if not self._is_replaceable(bases, cuts):
            with self._renaming():
                discard_cleaned(self._services, self.directory, bases[0])
            raise LogChanged
        self._names_changed += 1  # before any name does: a flush may be looking for the old ones
        self._has_changes = True
        self._swapping = bases[0]
        with self._renaming():
            mark_cleaned(self._services, self.directory, bases[0])
        yield self._sync_names  # before what it replaces goes
        if self._swapping != bases[0] or not self._is_replaceable(bases, cuts):
            self._give_up_swap()
            yield self._sync_names  # some of them, left alone, would count as those of a finished swap
            if not self._is_gone:
                with self._renaming():
                    discard_cleaned(self._services, self.directory, bases[0])
            raise LogChanged
        self._swapping = None
        with self._renaming():
            cleaned = self._replace(bases, now_ms)
        # The name of its log says that it replaces others: these go first, and its indexes have to wait, or a
        # start would take theirs for names of what was replaced.
        for files in (cleaned.files[:1], cleaned.files[1:]):
            yield self._sync_names
            if self._is_gone or cleaned not in self._segments:
                return
            self._names_changed += 1
            with self._renaming():
                unmark_swapped(self._services, files)

    def _is_replaceable(self, bases: Sequence[int], cuts: int) -> bool:
        first = bisect_left(self._bases, bases[0])
        end = first + len(bases)
        return (
            not self._is_gone
            and cuts == self._cuts
            and self._bases[first:end] == list(bases)
            and end < len(self._segments)
            # Names of the new one are still taken where the last swap was left half-way.
            and not any(
                is_marked_swap(file.path) for segment in self._segments[first:end] for file in segment.files
            )
        )

    @contextmanager
    def _renaming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DiskFailure(self.directory, "rename in", error) from error

    def _sync_names(self) -> None:
        try:
            self._services.file_system.sync_directory(self.directory)
        except OSError as error:
            if not self._is_gone:
                raise DiskFailure(self.directory, "flush", error) from error

    def _replace(self, bases: Sequence[int], now_ms: int) -> Segment:
        """Mark the old segments as deleted; from here on the cleaned one is read, as a swap file."""
        first = bisect_left(self._bases, bases[0])
        end = first + len(bases)
        self._names_changed += 1
        self._has_changes = True
        due_ms = now_ms + self.config.file_delete_delay_ms
        for segment in self._segments[first:end]:
            segment.mark_deleted(self._services.removals, due_ms)
        cleaned = Segment(
            self.directory,
            bases[0],
            self.config,
            self._services.descriptors,
            now_ms=now_ms,
            suffix=paths.SWAP,
            report=self._services.report,
        )
        cleaned.size_bytes = self._services.file_system.file_size(cleaned.file.path)
        replaced = set(self._segments[first:end])
        self._unsynced = [segment for segment in self._unsynced if segment not in replaced]
        self._segments[first:end] = [cleaned]
        self._bases[first:end] = [bases[0]]
        # One of a clean stop may lie inside a segment: a start would find it strange beside a swap file.
        for offset in self._snapshots.between(bases[0], self._bases[first + 1]):
            try:
                self._snapshots.remove(offset)
            except OSError as error:  # true all the same, and removed by the next start
                self._services.report(f"{self._snapshots.path(offset)} is left behind: {error.strerror}")
        return cleaned

    def swap_in(self, bases: Sequence[int], *, cuts: int, now_ms: int) -> bool:
        """All steps at once, where waiting is right; False if the cleaned segment is not wanted any more."""
        try:
            for sync in self.swap_in_steps(bases, cuts=cuts, now_ms=now_ms):
                sync()
        except LogChanged:
            return False
        return True

    def _give_up_swap(self) -> None:
        """A swap that has begun, and replaced nothing yet, shall not be finished: nor by a start."""
        base, self._swapping = self._swapping, None
        if base is None or self._is_gone:
            return
        self._names_changed += 1
        with self._renaming():
            unmark_cleaned(self._services, self.directory, base)

    def _end_swap_of(self, segment: Segment) -> None:
        """See to it that what is written from now on is in no swap file.

        Nothing shortens a log that is compacted while it is, so the wait for the disk is none in practice.
        """
        for files in (segment.files[:1], segment.files[1:]):
            if any(is_marked_swap(file.path) for file in files):
                self._sync_names()
                unmark_swapped(self._services, files)

    # Shortening

    def lower_recovery_point(self, offset: int) -> None:
        """Count on nothing from ``offset`` on: the log is about to be truncated.

        Write the checkpoint before that is done.  A power cut may undo a half of a truncation, and leave the
        old segments beside the new one: recovery looks no further back than to the recovery point that it
        finds.
        """
        self._cuts += 1
        self.lowest_cut = offset if self.lowest_cut is None else min(self.lowest_cut, offset)
        self._has_changes = True
        self.recovery_point = min(self.recovery_point, offset)

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Forget everything from ``offset`` on; return False if the log ends before it anyway.

        Where that goes back behind the recovery point, ``lower_recovery_point`` comes first.  The log may
        start elsewhere, too: write the checkpoint (``LogDirectory.begin_checkpoint``) before more is
        appended, or else a crash might trust what it must not.  After DiskFailure the log must be opened
        anew; the same holds for ``truncate_fully_and_start_at``.
        """
        if offset >= self.log_end:
            # A leader that was deposed before its first append may have left an epoch here.
            self.leader_epochs.truncate_from_end(self.log_end)
            return False
        if offset < self._bases[0]:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        self._note_cut(offset)
        keep = bisect_right(self._bases, offset)
        self._drop(keep, len(self._segments), now_ms)
        self._active = self._segments[-1]
        try:
            self._end_swap_of(self._active)
            self._active.truncate_to(offset, now_ms)
            self.log_end = offset
            self.log_start = min(self.log_start, offset)
            self.high_watermark = min(self.high_watermark, offset)
            self.leader_epochs.truncate_from_end(offset)
            self._rebuild_producers(now_ms)
        except OSError as error:
            raise DiskFailure(self._active.file.path, "truncate", error) from error
        return True

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Forget everything and continue, empty, at ``offset``."""
        self._note_cut(offset)
        self._drop(0, len(self._segments), now_ms)
        self.log_start = self.log_end = self.high_watermark = offset
        self.leader_epochs.clear()
        self.producers.clear(offset)
        try:
            self._snapshots.clear()
            self._add_segment(offset, now_ms)
        except OSError as error:
            raise DiskFailure(self.directory, "write in", error) from error

    def skip_to(self, offset: int, *, now_ms: int) -> None:
        """Continue at ``offset``, above the log end, in a new segment: there is nothing between."""
        assert offset >= self.log_end
        self._has_changes = True
        try:
            self._roll(offset, now_ms)
        except OSError as error:
            raise DiskFailure(self.directory, "write in", error) from error
        self.log_end = offset

    def _note_cut(self, offset: int) -> None:
        self._give_up_swap()
        self.lower_recovery_point(offset)

    def _drop(self, first: int, end: int, now_ms: int) -> None:
        """Mark segments as deleted, and their producer snapshots.

        At every moment what is left on disk is a log without a hole: so the oldest ones go oldest first,
        and the newest ones newest first.
        """
        self._give_up_swap()
        due_ms = now_ms + self.config.file_delete_delay_ms
        goes_backwards = end == len(self._segments)
        self._names_changed += 1
        self._has_changes = True
        try:
            while first < end:
                end -= 1
                number = end if goes_backwards else first
                segment = self._segments[number]
                try:
                    segment.mark_deleted(self._services.removals, due_ms)
                finally:
                    # Without its log it is no segment any more; the next start removes what is left.
                    if not self._services.file_system.exists(segment.file.path):
                        del self._segments[number]
                        del self._bases[number]
                        if segment in self._unsynced:
                            self._unsynced.remove(segment)
                self._snapshots.remove(segment.base_offset)
        except OSError as error:
            raise DiskFailure(self.directory, "rename in", error) from error

    def _rebuild_producers(self, now_ms: int) -> None:
        """Producer state of everything below log_end, after a truncation."""
        self._snapshots.remove_above(self.log_end)
        if not self.producers.entries:
            self.producers.clear(self.log_end)
            return
        load_producers(self.producers, self._snapshots, self._segments, self.log_start, self.log_end, now_ms)
        self.producers.advance_high_watermark(self.high_watermark)

    def roll(self, *, now_ms: int) -> None:
        """Begin a new segment at the log end, unless the active one is empty."""
        try:
            self._roll(self.log_end, now_ms)
        except OSError as error:
            raise DiskFailure(self.directory, "write in", error) from error

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Seal the active segment and begin one at ``base_offset``, which is not below the log end."""
        active = self._active
        if active.size_bytes:
            active.seal()
            if active not in self._unsynced:
                self._unsynced.append(active)
        elif active.base_offset == base_offset:
            return active
        segment = self._add_segment(base_offset, now_ms)
        # Also if what it is for is not written: nothing below its base may be written into it.
        self.log_end = base_offset
        if not active.size_bytes:
            # It was far below what comes next: the offsets would not have fitted its index.
            self._drop(len(self._segments) - 2, len(self._segments) - 1, now_ms)
        self.producers.end_offset = base_offset
        self._snapshots.write(base_offset, self.producers.entries.values())
        return segment

    def _add_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = create_segment(self._services, self.directory, base_offset, self.config, now_ms)
        self._segments.append(segment)
        self._bases.append(base_offset)
        self._active = segment
        self._names_changed += 1
        self._has_changes = True
        return segment

    # Durability

    @property
    def needs_flush(self) -> bool:
        """``flush.messages`` is reached: flush before acknowledging what was appended."""
        return self.log_end - self.recovery_point >= self.config.flush_messages

    @property
    def has_unflushed_segment(self) -> bool:
        """A sealed segment is not fsynced: flush in the background."""
        return bool(self._unsynced)

    def begin_flush(self) -> "FlushJob | None":
        """What must be fsynced so that recovery_point may move to the present log end.

        None if nothing has to be.  Three steps, so that the loop never waits for the disk and
        appends go on meanwhile: ``job = log.begin_flush()``; ``job.run()`` in a thread;
        ``job.finish()`` back on the loop.
        """
        if self._is_gone:
            return None
        if self.recovery_point == self.log_end and not self.leader_epochs.changed and not self._unsynced:
            return None
        return FlushJob(self)

    def flush(self) -> None:
        """The three steps at once, where waiting is right: at a stop, in the controller, in tests."""
        job = self.begin_flush()
        if job is not None:
            job.run()
            job.finish()

    def close(self) -> None:
        """Flush, and leave files that need no recovery; let go of descriptors."""
        job = self.begin_close()
        if job is not None:
            job.run()
        self.finish_close(job)

    def begin_close(self) -> "FlushJob | None":
        """The first step of ``close``: write what is only in memory; the answer is to be run."""
        return FlushJob(self) if self._complete() else None

    def _complete(self) -> bool:
        """Write what is only in memory; return whether anything is to be fsynced."""
        if not self._has_changes or self._is_gone:
            return False
        self._give_up_swap()
        if self._active not in self._unsynced:
            self._unsynced.append(self._active)
        try:
            self._active.seal()
            self._names_changed += 1
            self.producers.end_offset = self.log_end
            if self.log_end > 0 and self._snapshots.newest != self.log_end:
                self._snapshots.write(self.log_end, self.producers.entries.values())
        except OSError as error:
            raise DiskFailure(self.directory, "write in", error) from error
        return True

    def begin_close_of_many(self) -> bool:
        """``begin_close`` for who fsyncs everything at once and then calls ``finish_close_of_many``.

        Returns whether there is anything to fsync; lets go of descriptors.
        """
        is_changed = self._complete()
        if is_changed and self.leader_epochs.entries != self._stored_epochs:
            path = os.path.join(self.directory, paths.LEADER_EPOCHS)
            content = format_epochs(self.leader_epochs.entries)
            try:
                self._services.file_system.replace_file(path, content, sync=False)
            except OSError as error:
                raise DiskFailure(path, "write", error) from error
        for segment in self._segments:
            segment.close()
        return is_changed

    def finish_close_of_many(self) -> None:
        """Everything is on the device."""
        self.recovery_point = self.log_end
        self.leader_epochs.changed = False
        self._unsynced.clear()
        self._snapshots.unsynced.clear()
        self._names_synced = self._names_changed
        self._is_new = False
        self._has_changes = False

    def finish_close(self, job: "FlushJob | None") -> None:
        """The last step of ``close``, after ``job.run()``."""
        if job is not None:
            job.finish()
            self._has_changes = False
        for segment in self._segments:
            segment.close()

    def note_renamed(self, directory: str) -> None:
        """The folder is called so now; no flush may be under way.

        The next flush sees to it that the new name is on the device.
        """
        self.directory = directory
        self._snapshots.note_renamed(directory)
        for segment in self._segments:
            segment.note_renamed(directory)
        self._is_new = True
        self._has_changes = True

    def abandon(self) -> None:
        """The files are about to be deleted or moved: let go of descriptors, and leave the rest."""
        with self._presence_lock:
            self._is_gone = True
        for segment in self._segments:
            segment.close()

    @contextmanager
    def _presence(self) -> Iterator[None]:
        """Inside, in a thread, names are those of this log's files: it is not deleted meanwhile.

        Raises FileNotFoundError if it has gone: another log may have its place.
        """
        with self._presence_lock:
            if self._is_gone:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.directory)
            yield

    # Facts

    @property
    def size_bytes(self) -> int:
        """Of all record data on disk."""
        return sum([segment.size_bytes for segment in self._segments])

    @property
    def first_base(self) -> int:
        """Base offset of the oldest segment; log_start may lie above it."""
        return self._bases[0]

    @property
    def needs_stored_start(self) -> bool:
        """The files do not say where the log starts, or a power cut could bring back deleted ones."""
        return self.log_start > self.first_base or self._names_synced < self._names_changed

    @property
    def segments(self) -> list[SegmentInfo]:
        """Oldest first."""
        return [SegmentInfo(s.base_offset, s.size_bytes, s.max_timestamp) for s in self._segments]

    def active_producers(self) -> list[ActiveProducer]:
        """Every producer with state here (DescribeProducers)."""
        return [
            ActiveProducer(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_start,
            )
            for entry in self.producers.entries.values()
        ]

    def expire_producers(self, *, now_ms: int) -> None:
        """Forget producers idle for ``producer.id.expiration.ms`` without an open transaction."""
        self.producers.expiration_ms = self._services.producer_expiration_ms  # it may have changed
        self.producers.expire(now_ms)


class FlushJob:
    """One flush under way.  ``recovery_point`` moves in ``finish``, to where ``begin_flush`` saw the end.

    Why a thread may run it while the loop goes on: neither rolling nor deletion closes a file that it
    holds; fsync covers at least what was written before; and sealed files do not change.  The active
    segment's indexes are left out, to spare two fsyncs of three: recovery rebuilds them, see
    ``segments.first_untrusted``.

    It holds the files that are open anyway.  The others, which may be thousands after a recovery, are
    opened one by one; what has been deleted or replaced by then needs no fsync from here.
    """

    __slots__ = (
        "_cuts",
        "_files",
        "_log",
        "_names",
        "_sealed",
        "_snapshots",
        "_syncs_parent",
        "end_offset",
    )

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self.end_offset = log.log_end
        """Where recovery_point will be."""
        self._cuts = log._cuts
        self._sealed = list(log._unsynced)
        self._snapshots = dict(log._snapshots.unsynced)
        self._files: list[tuple[str, File | None]] = [
            (log._snapshots.path(offset), None) for offset in self._snapshots
        ]
        for segment in self._sealed:
            self._files += [(file.path, file.opened) for file in segment.files]
        if log._active not in self._sealed:
            active = log._active.file
            self._files.append((active.path, active.opened))
        self._names = log._names_changed
        self._syncs_parent = log._is_new

    def run(self) -> None:
        """Fsync.  Safe in a thread while the loop appends, rolls, truncates or deletes.

        Raises DiskFailure, after which ``finish`` must not be called.  Unless it ``leaves_doubt`` no fsync
        has failed, and this may be called again.
        """
        log = self._log
        file_system = log._services.file_system
        path = log.directory
        action = "flush"
        with log._flush_lock:
            try:
                for path, held in self._files:
                    file = self._open(path) if held is None else held
                    if file is not None:
                        file.sync()
                epochs = log.leader_epochs
                if epochs.changed:
                    # In this order: what is assigned from here on is stored by the next flush.
                    epochs.changed = False
                    log._stored_epochs = None
                    path = os.path.join(log.directory, paths.LEADER_EPOCHS)
                    try:
                        action = "write"
                        with log._presence():
                            temporary = file_system.write_temporary(path, format_epochs(epochs.entries))
                        action = "flush"
                        temporary.sync()
                        with log._presence():
                            file_system.rename(temporary.path, path)
                        file_system.sync_directory(log.directory)
                    except OSError:
                        epochs.changed = True
                        raise
                elif self._names > log._names_synced:
                    path = log.directory
                    file_system.sync_directory(path)
                if self._syncs_parent:
                    path = os.path.dirname(log.directory)
                    file_system.sync_directory(path)
            except OSError as error:
                if log._is_gone:
                    return
                failure = DiskFailure(path, action, error)
                if failure.lacks_descriptor:
                    log._services.descriptors.make_room()
                raise failure from error

    def _open(self, path: str) -> File | None:
        """A file for its fsync; None if it has gone since this flush began, or never was."""
        log = self._log
        try:
            return log._services.descriptors.open(path)
        except FileNotFoundError:
            if self._cuts != log._cuts or self._names != log._names_changed:
                return None
            if path.endswith(paths.TRANSACTION_INDEX):
                return None
            raise

    def finish(self) -> None:
        """Back on the loop: move recovery_point."""
        log = self._log
        log._unsynced = [segment for segment in log._unsynced if segment not in self._sealed]
        log._snapshots.note_synced(self._snapshots)
        log._names_synced = max(log._names_synced, self._names)
        if self._syncs_parent:
            log._is_new = False
        if self._cuts == log._cuts:
            log.recovery_point = max(log.recovery_point, self.end_offset)


class FollowerWrite:
    """Some batches on their way into one segment of a follower's log."""

    __slots__ = ("_batches", "_data", "_failure", "_file", "_log", "_position", "_segment")

    def __init__(
        self, log: PartitionLog, segment: Segment, batches: list[RecordBatch], records: Buffer
    ) -> None:
        self._log = log
        self._segment = segment
        self._batches = batches
        last = batches[-1]
        self._data = memoryview(records)[batches[0].position : last.position + last.size_bytes]
        self._position = segment.size_bytes
        self._failure: OSError | None = None
        try:
            self._file = segment.file.open()
        except OSError as error:
            raise DiskFailure(segment.file.path, "append to", error) from error
        log.is_being_written = True

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def run(self) -> None:
        """Write.  Safe in a thread, whatever happens to the log meanwhile; does not raise."""
        try:
            self._file.pwrite(self._data, self._position)
        except OSError as error:
            self._failure = error

    def give_up(self) -> None:
        """Back on the loop, instead of ``finish``: what was written, if anything was, does not count."""
        self._log.is_being_written = False
        if not self._log._is_gone:
            self._segment.give_up_run()

    def finish(self) -> None:
        """Back on the loop: the batches are in the log.  Raises DiskFailure if they could not be written."""
        log, segment, failure = self._log, self._segment, self._failure
        if failure is not None:
            self.give_up()
            raise DiskFailure(segment.file.path, "append to", failure) from failure
        log.is_being_written = False
        if log._is_gone:
            return
        segment.take_run(self._batches)
        for batch in self._batches:
            has_marker = batch.is_control and batch.producer_id >= 0
            log._take_note(segment, batch, read_marker(batch) if has_marker else None)


def _below(upper: int | None, found: FoundRecord | None) -> FoundRecord | None:
    if found is None or upper is None or found.offset < upper:
        return found
    return None
