"""Recovery of one log after the process or the machine went down.

It leaves files from which ``loading`` opens the log as if it had been closed, so it may run anywhere:
on the spot, in a thread, in another process.  Little of what it writes is fsynced: the recovery point
stays where it was until the log's first flush, so that another crash only repeats the work.
"""

import os
import zlib
from collections.abc import Sequence
from enum import IntEnum
from struct import Struct

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
from storage.stored_batches import find_valid_batch, read_stored_batches
from storage.swaps import finish_swaps


class Cut(IntEnum):
    """How much recovery may cut off where a log is damaged."""

    NOTHING = 0
    """The log was closed properly: it has no business to be damaged."""
    TORN_TAIL = 1
    """What an unclean stop leaves of the last writes, and nothing that was safe before."""
    EVERYTHING = 2
    """The damage and all that follows, as Kafka does it with any log."""


def recover_log(
    services: LogServices,
    directory: str,
    config: LogConfig,
    *,
    recovery_point: int,
    log_start: int,
    may_cut: Cut = Cut.EVERYTHING,
    now_ms: int,
) -> ProducerState | None:
    """Check every batch from the segment that holds ``recovery_point`` on, and rebuild what depends on it.

    At the first damaged batch the log is cut, and later segments are removed; ``report`` says so.
    What lies in older segments is trusted, as long as they have their indexes: it was fsynced.

    The answer is the state of all producers, each with up to five batches, of which the files remember
    one: so a producer that had five requests under way can go on.  None if there is no segment.

    Raises UnsupportedFormat for records from before Kafka 0.11, and CorruptFile where more would have to be
    cut than ``may_cut`` allows; the records are left alone then.
    """
    names = finish_swaps(services, directory)
    segments = list_segments(services, directory, names, config, now_ms)
    if not segments:
        return None
    epochs_path = os.path.join(directory, paths.LEADER_EPOCHS)
    stored_epochs: tuple[tuple[int, int], ...] | None = None  # damaged: to be replaced in any case
    try:
        epochs = LeaderEpochs(read_epochs(services.file_system, epochs_path))
        stored_epochs = epochs.entries
    except CorruptFile as damage:
        services.report(f"{damage}; it is rebuilt from the records")
        epochs = LeaderEpochs()
        recovery_point = 0
    snapshots = ProducerSnapshots(services.file_system, directory, names, services.report)
    snapshots.remove_strays([segment.base_offset for segment in segments])
    first = first_untrusted(segments, recovery_point)
    for number in range(first):
        if (loss := find_index_damage(services, segments[number], names)) is not None:
            services.report(f"{loss}; it is rebuilt")
            first = number
            break
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
            _take_snapshot(snapshots, segment.base_offset, producers)
            end_offset = recover_segment(
                services, segment, epochs, producers, may_cut=may_cut, later=segments[number + 1 :]
            )
            if segment.size_bytes == size:
                continue
            number += 1
        # Cut here, or reaching into the next segment, which must be older than this: what follows goes.
        for later in segments[number:]:
            services.report(f"{later.file.path} does not follow what comes before it; it is removed")
            later.mark_deleted(services.removals, now_ms + config.file_delete_delay_ms)
            snapshots.remove(later.base_offset)
        services.file_system.sync_directory(directory)
        break
    epochs.truncate_from_end(end_offset)
    _take_snapshot(snapshots, end_offset, producers)
    for segment in segments:
        segment.close()
    if epochs.entries != stored_epochs:
        # Synced if it takes the place of a file that may be on the device.
        services.file_system.replace_file(
            epochs_path, format_epochs(epochs.entries), sync=bool(stored_epochs)
        )
    producers.end_offset = end_offset
    return producers


def recover_segment(
    services: LogServices,
    segment: Segment,
    epochs: LeaderEpochs,
    producers: ProducerState,
    *,
    may_cut: Cut = Cut.EVERYTHING,
    later: Sequence[Segment] = (),
) -> int:
    """Rebuild the indexes from the batches, cut the file behind the last good one; return the next offset.

    ``later`` are the segments that follow, which tell a torn tail from damage inside the log.
    """
    size = segment.size_bytes
    file = segment.file.open()
    next_offset = segment.base_offset
    segment.reset_indexes()
    damage: str | None = None
    try:
        for position, batch in read_stored_batches(file, 0, size):
            batch.check_crc()
            # The CRC does not cover the offset, so a damaged one must show in the order.
            if batch.base_offset < next_offset or batch.last_offset_delta < 0:
                raise CorruptRecords(f"offset {batch.base_offset} where {next_offset} or more must be")
            if batch.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
                raise CorruptRecords(f"offset {batch.last_offset} is too far from the segment's base")
            ended = apply_stored_batch(producers, batch)
            segment.note(batch, position)
            if ended is not None and not ended.is_commit:
                segment.note_aborted(ended, producers.last_stable_after(ended))
            next_offset = batch.next_offset
            if batch.partition_leader_epoch > epochs.latest:
                epochs.assign(batch.partition_leader_epoch, batch.base_offset)
    except CorruptLog as error:
        damage = error.reason
    except CorruptRecords as error:
        damage = f"at byte {segment.size_bytes}: {error}"
    except UnsupportedFormat as error:
        if _is_old_message(file, segment.size_bytes):
            raise
        damage = error.reason
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
    segment.seal()
    return next_offset


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
    found = find_valid_batch(file, position, size, next_offset)
    if found is not None and not _has_hole(file, position, found, next_offset):
        return f"although a good batch follows at byte {found}"
    for other in later:
        if find_valid_batch(other.file.open(), 0, other.size_bytes, next_offset) is not None:
            return f"although {other.file.path} follows"
    return None


_SECTOR = 512


def _has_hole(file: File, position: int, end: int, next_offset: int) -> bool:
    """Whether a part of what lies before the good batch at ``end`` was never written.

    A power cut may keep a write and lose one before it, if no fsync came between them.  Of the sectors that
    were lost, what the file did not reach into before reads as zeros then.  The sector of the good batch is
    there.  A batch that was written has no such zeros: at its start stands its offset.
    """
    offset = next_offset.to_bytes(8)
    while (sector_end := position - position % _SECTOR + _SECTOR) <= end:
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
