"""Recovery of one log after the process or the machine went down.

It may run anywhere: on the spot, in a thread, in another process (``recovery_job``).  Little of what it
writes is fsynced: the recovery point stays where it was until the log's first flush, so that another crash
only repeats the work.
"""

import os
import zlib
from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    RECORD_BATCH_OVERHEAD,
    RecordBatch,
)
from protocol.records.checksum import crc32c
from protocol.records.errors import CorruptRecords
from storage import paths
from storage.checkpoints import format_epochs, read_epochs
from storage.config import LogConfig
from storage.errors import CorruptFile, CorruptLog, UnsupportedFormat
from storage.filesystem import File
from storage.leader_epochs import LeaderEpochs
from storage.log_services import LogServices
from storage.offset_index import RELATIVE_OFFSET_MAX
from storage.producer_replay import apply_stored_batch, load_producers
from storage.producer_snapshot import ProducerSnapshots
from storage.producer_state import ProducerState
from storage.segment import Segment
from storage.segments import find_index_damage, first_untrusted, list_segments
from storage.stored_batches import BATCHES_WINDOW, check_header, find_next_batch

NoteChecked = Callable[[int], None]
"""Told how many bytes have been checked since it was called last."""


NOTED_BYTES = 64 << 20
"""How much of a segment is checked between two calls of that."""


class Cut(IntEnum):
    """How much recovery may cut off where a log is damaged."""

    NOTHING = 0
    """The log was closed properly: it has no business to be damaged."""
    TORN_TAIL = 1
    """What an unclean stop leaves of the last writes, and nothing that was safe before."""
    EVERYTHING = 2
    """The damage and all that follows, as Kafka does it with any log."""


class LogParts(NamedTuple):
    """What a log consists of, as it was found on disk or as recovery has left it."""

    segments: list[Segment]
    """Oldest first; none if the directory holds none."""
    log_end: int
    leader_epochs: LeaderEpochs
    stored_epochs: tuple[tuple[int, int], ...]
    """What the checkpoint file of leader epochs says."""
    snapshots: ProducerSnapshots
    producers: ProducerState | None = None
    """None if it is still to be read from the snapshots and the log."""


class LargeRecovery(Exception):
    """More would have to be checked than the caller had in mind; nothing was changed."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


def recover_log(
    services: LogServices,
    directory: str,
    names: list[str],
    config: LogConfig,
    *,
    recovery_point: int,
    log_start: int,
    may_cut: Cut = Cut.EVERYTHING,
    size_max: int | None = None,
    note_checked: NoteChecked = lambda _: None,
    now_ms: int,
) -> LogParts:
    """Check every batch from the segment that holds ``recovery_point`` on, and rebuild what depends on it.

    ``names`` are those of the files in the directory.  At the first damaged batch the log is cut, and later
    segments are removed; ``report`` says so.  What lies in older segments is trusted, as long as they have
    their indexes: it was fsynced.  Where one of these is damaged all the same, it loses its end, but what
    follows stays, as in Kafka.  ``note_checked`` is told of bytes as they are checked.

    The producers have up to five batches each, of which the files remember one: so one that had five
    requests under way can go on.

    What is rebuilt of the last segment stays in memory, as with a log that is being written; see
    ``complete``.  Another crash only repeats the work.

    Raises LargeRecovery if more than ``size_max`` bytes would have to be checked, UnsupportedFormat for
    records from before Kafka 0.11, and CorruptFile where more would have to be cut than ``may_cut`` allows;
    the records are left alone then.
    """
    segments = list_segments(services, directory, names, config, now_ms)
    epochs_path = os.path.join(directory, paths.LEADER_EPOCHS)
    stored_epochs: tuple[tuple[int, int], ...] | None = None  # damaged: to be replaced in any case
    flushed_to = recovery_point
    try:
        epochs = LeaderEpochs(
            read_epochs(services.file_system, epochs_path) if paths.LEADER_EPOCHS in names else ()
        )
        stored_epochs = epochs.entries
    except CorruptFile as damage:
        services.report(f"{damage}; it is rebuilt from the records")
        epochs = LeaderEpochs()
        recovery_point = 0
    snapshots = ProducerSnapshots(services.file_system, directory, names, services.report)
    if not segments:
        return LogParts([], log_start, epochs, stored_epochs or (), snapshots)
    # The checkpoint need not know: a log may have been emptied, or have lost its head, since it was written.
    log_start = max(log_start, segments[0].base_offset)
    first = trusted = first_untrusted(segments, recovery_point)
    for number in range(first):
        if (loss := find_index_damage(services, segments[number], names)) is not None:
            services.report(f"{loss}; it is rebuilt")
            first = number
            break
    size = sum([segment.size_bytes for segment in segments[first:]])
    if size_max is not None and size > size_max:
        raise LargeRecovery(size)
    snapshots.remove_strays([segment.base_offset for segment in segments])
    # What is known of later batches may be of some that are gone.
    epochs.truncate_from_end(segments[first].base_offset)
    snapshots.remove_above(segments[first].base_offset)
    producers = ProducerState(expiration_ms=services.producer_expiration_ms)
    load_producers(producers, snapshots, segments[:first], log_start, segments[first].base_offset, now_ms)
    end_offset = segments[first].base_offset
    for number in range(first, len(segments)):
        segment = segments[number]
        size = segment.size_bytes
        if segment.base_offset >= end_offset:
            if segment.base_offset > end_offset and not config.compacts:
                services.report(
                    f"{segment.file.path}: offsets {end_offset} to {segment.base_offset - 1} before it are "
                    "missing; they had not been flushed, or were compacted once"
                )
            _take_snapshot(snapshots, segment.base_offset, producers)
            later = segments[number + 1 :]
            end_offset = recover_segment(
                services, segment, names, epochs, producers, log_start, may_cut, later, note_checked
            )
            if segment.size_bytes == size or (later and later[0].base_offset <= flushed_to):
                if later:
                    segment.seal()
                    if number < trusted:  # and will be again
                        for file in segment.open_indexes():
                            file.sync()
                        services.file_system.sync_directory(directory)
                    segment.close()
                continue
            number += 1
        # Cut here, or reaching into the next segment, which must be older than this: what follows goes.
        for later_segment in segments[number:]:
            services.report(f"{later_segment.file.path} does not follow what comes before it; it is removed")
            later_segment.mark_deleted(services.removals, now_ms + config.file_delete_delay_ms)
            snapshots.remove(later_segment.base_offset)
        del segments[number:]
        services.file_system.sync_directory(directory)
        break
    epochs.truncate_from_end(end_offset)
    if stored_epochs is None:
        services.file_system.replace_file(epochs_path, format_epochs(epochs.entries), sync=True)
        stored_epochs = epochs.entries
    producers.end_offset = end_offset
    producers.expire(now_ms)
    return LogParts(segments, end_offset, epochs, stored_epochs, snapshots, producers)


def complete(services: LogServices, directory: str, parts: LogParts) -> None:
    """Leave files from which ``loading`` opens the log as if it had been closed; nothing is fsynced."""
    if parts.segments:
        parts.segments[-1].seal()
    if parts.producers is not None:
        _take_snapshot(parts.snapshots, parts.log_end, parts.producers)
    for segment in parts.segments:
        segment.close()
    if parts.leader_epochs.entries != parts.stored_epochs:
        services.file_system.replace_file(
            os.path.join(directory, paths.LEADER_EPOCHS),
            format_epochs(parts.leader_epochs.entries),
            sync=True,
        )


def recover_segment(
    services: LogServices,
    segment: Segment,
    names: Collection[str],
    epochs: LeaderEpochs,
    producers: ProducerState,
    log_start: int,
    may_cut: Cut,
    later: Sequence[Segment],
    note_checked: NoteChecked,
) -> int:
    """Rebuild the indexes from the batches, cut the file behind the last good one; return the next offset.

    ``later`` are the segments that follow, which tell a torn tail from damage inside the log.
    """
    size = segment.size_bytes
    segment.reset_indexes(names)
    next_offset = segment.base_offset
    if not size:
        return next_offset
    file = segment.file.open()
    check = _Check(segment, file, size, epochs, producers, log_start, may_cut, note_checked)
    damage: str | None = None
    try:
        check.run()
    except CorruptLog as error:
        damage = error.reason
    except CorruptRecords as error:
        damage = f"at byte {segment.size_bytes}: {error}"
    except UnsupportedFormat as error:
        if _is_old_message(file, segment.size_bytes):
            raise
        damage = error.reason
    next_offset = check.next_offset
    for position in check.unknown_formats:
        if position < segment.size_bytes:
            services.report(
                f"{file.path}: the batch at byte {position} is of an unknown format, and cannot be read; "
                "its CRC is right, so it is kept"
            )
    if damage is not None:
        if (loss := _find_loss(segment, size, next_offset, may_cut, later)) is not None:
            raise CorruptFile(
                file.path,
                f"{damage}, {loss}; nothing was cut off: restore the file from a copy, or, to give up all "
                f"that follows, cut it to {segment.size_bytes} bytes and remove later segments",
            )
        services.report(
            f"{file.path}: {damage}; {size - segment.size_bytes} bytes are cut off, "
            f"the log continues at offset {next_offset}"
        )
        segment.cut()
        file.sync()  # or else what was cut may come back under what is written over it
    segment.store_indexes_if_large()
    return next_offset


_HEADER = Struct(">qiibIHi8xqq")
"""What of a batch's header recovery looks at: all but the first timestamp and what is the producer's."""


class _Check:
    """The walk over a segment's batches.

    There may be millions of them, so it reads of each no more than it needs.
    """

    def __init__(
        self,
        segment: Segment,
        file: File,
        size_bytes: int,
        epochs: LeaderEpochs,
        producers: ProducerState,
        log_start: int,
        may_cut: Cut,
        note_checked: NoteChecked,
    ) -> None:
        self.next_offset = segment.base_offset
        """Behind the last batch that was counted in."""
        self.unknown_formats: list[int] = []
        """Positions of batches in a format that nobody knows; a CRC of the present one may still be right."""
        self._segment = segment
        self._file = file
        self._size_bytes = size_bytes
        self._epochs = epochs
        self._producers = producers
        self._log_start = log_start
        self._keeps_unknown = may_cut is Cut.EVERYTHING
        self._note_checked = note_checked

    def run(self) -> None:
        """Count every batch in, up to the first damaged one, and take note of producers and epochs.

        Raises CorruptRecords, CorruptLog or UnsupportedFormat at damage.
        """
        segment, file, size, producers = self._segment, self._file, self._size_bytes, self._producers
        next_offset = self.next_offset
        latest_epoch = self._epochs.latest
        window = b""
        view = memoryview(window)
        window_position = position = noted = 0
        unknown = self.unknown_formats
        log_start = self._log_start
        try:
            while position < size:
                at = position - window_position
                if at + RECORD_BATCH_OVERHEAD > len(window):
                    if position - noted >= NOTED_BYTES:
                        self._note_checked(position - noted)
                        noted = position
                    window = file.pread(min(BATCHES_WINDOW, size - position), position)
                    view = memoryview(window)
                    window_position = position
                    at = 0
                    check_header(file, window, at, position, size)
                base_offset, length, epoch, magic, crc, _, last_delta, timestamp, producer_id = (
                    _HEADER.unpack_from(window, at)
                )
                size_bytes = length + LOG_OVERHEAD
                if magic != MAGIC or size_bytes < RECORD_BATCH_OVERHEAD or position + size_bytes > size:
                    is_unknown = magic > MAGIC and RECORD_BATCH_OVERHEAD <= size_bytes <= size - position
                    if not (is_unknown and self._keeps_unknown):
                        check_header(file, window, at, position, size)
                    unknown.append(position)  # as in Kafka, all that counts is the CRC
                if at + size_bytes > len(window):
                    window = file.pread(min(max(BATCHES_WINDOW, size_bytes), size - position), position)
                    view = memoryview(window)
                    window_position = position
                    at = 0
                if crc32c(view[at + ATTRIBUTES_POSITION : at + size_bytes]) != crc:
                    RecordBatch(window, at).check_crc()
                # The CRC does not cover the offset, so a damaged one must show in the order.
                if base_offset < next_offset or last_delta < 0:
                    raise CorruptRecords(f"offset {base_offset} where {next_offset} or more must be")
                last_offset = base_offset + last_delta
                if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
                    raise CorruptRecords(f"offset {last_offset} is too far from the segment's base")
                ended = None
                if producer_id >= 0:
                    ended = apply_stored_batch(producers, RecordBatch(window, at), log_start)
                segment.note(last_offset, timestamp, position, size_bytes)
                if ended is not None and not ended.is_commit:
                    segment.note_aborted(ended, producers.last_stable_after(ended))
                next_offset = last_offset + 1
                if epoch > latest_epoch:
                    self._epochs.assign(epoch, base_offset)
                    latest_epoch = self._epochs.latest
                position += size_bytes
        finally:
            self.next_offset = next_offset
            self._note_checked(position - noted)


def _find_loss(
    segment: Segment, size: int, next_offset: int, may_cut: Cut, later: Sequence[Segment]
) -> str | None:
    """Why the bytes behind those that were counted in must not be cut; None if they may be."""
    if may_cut is Cut.EVERYTHING:
        return None
    if may_cut is Cut.NOTHING:
        return "although the log was closed properly"
    position = segment.size_bytes
    file = segment.file.open()
    found = _find_good_batch(segment, position, size, next_offset)
    if found is not None and not has_hole(file, position, found, next_offset):
        return f"although a good batch follows at byte {found}"
    for other in later:
        if _find_good_batch(other, 0, other.size_bytes, next_offset) is not None:
            return f"although {other.file.path} follows"
    return None


def _find_good_batch(segment: Segment, position: int, size: int, next_offset: int) -> int | None:
    """Where one follows; so many places may look like one that it is better to believe it."""
    lowest = max(segment.base_offset, next_offset)
    highest = segment.base_offset + RELATIVE_OFFSET_MAX
    return find_next_batch(
        segment.file.open(), position, size, lowest, highest, size - position, trusts_unseen=True
    )


SECTOR = 512


def has_hole(file: File, position: int, end: int, next_offset: int) -> bool:
    """Whether a part of what lies before the good batch at ``end`` was never written.

    A power cut may keep a write and lose one before it, if no fsync came between them.  Of the sectors that
    were lost, what the file did not reach into before reads as zeros then.  The sector of the good batch is
    there.  A batch that was written has no such zeros: at its start stands its offset.
    """
    offset = next_offset.to_bytes(8)
    while (sector_end := position - position % SECTOR + SECTOR) <= end:
        piece = file.pread(sector_end - position, position)
        if not any(piece) and (len(piece) > len(offset) or any(offset[: len(piece)])):
            return True
        position = sector_end
    return False


def _take_snapshot(snapshots: ProducerSnapshots, offset: int, producers: ProducerState) -> None:
    if offset > (snapshots.newest or 0):
        snapshots.write(offset, producers.entries.values())


_OLD_HEADER = Struct(">qiI")


def _is_old_message(file: File, position: int) -> bool:
    """Whether a message in format 0 or 1 stands there, judged by its CRC; else the bytes are damaged."""
    header = file.pread(_OLD_HEADER.size, position)
    if len(header) < _OLD_HEADER.size:
        return False
    _, length, crc = _OLD_HEADER.unpack(header)
    rest = file.pread(min(length - 4, file.size()), position + _OLD_HEADER.size)
    return len(rest) == length - 4 and zlib.crc32(rest) == int(crc)
