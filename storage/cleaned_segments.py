"""The making of compacted segments, in files of their own beside those they are made from."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise

from protocol.records.batch import RecordBatch
from protocol.records.errors import CorruptRecords
from storage import paths
from storage.cleaner import Cleaned, CleaningJob
from storage.compaction import LastRecord, Survivors, Transactions, note_keys
from storage.config import LogConfig
from storage.errors import CorruptLog, StorageError
from storage.log_services import LogServices
from storage.offset_index import RELATIVE_OFFSET_MAX
from storage.offset_map import OffsetMap
from storage.segment import Segment
from storage.stored_batches import read_stored_batches
from storage.swaps import discard_all_cleaned, discard_cleaned
from storage.transaction_index import AbortedTransaction

WRITTEN_AT_ONCE = 1 << 20

Ready = Callable[[list[int]], None]
"""Takes the bases of segments for which one cleaned segment, named after the first, is complete on disk."""

Moved = Callable[[int], None]
"""Told how many bytes were read or written, and free to take its time."""


def clean(services: LogServices, job: CleaningJob, ready: Ready, moved: Moved) -> Cleaned:
    """Do a job.  Raises CorruptLog, OSError."""
    config = LogConfig(
        segment_bytes=job.segment_bytes,
        segment_index_bytes=job.segment_index_bytes,
        index_interval_bytes=job.index_interval_bytes,
    )
    segments = [Segment(job.directory, base, config, services.descriptors, now_ms=0) for base in job.bases]
    for segment in segments:
        segment.size_bytes = segment.file.open().size()
    aborted = [AbortedTransaction(*fields) for fields in job.aborted]
    offsets = OffsetMap(job.keys_max, job.first_dirty)
    _note_all_keys(offsets, segments, job, aborted, moved)

    discard_all_cleaned(services, job.directory)
    end_offset = offsets.latest_offset + 1
    transactions = Transactions(aborted)
    survivors = Survivors(
        offsets,
        transactions,
        {producer_id: LastRecord(last, epoch) for producer_id, last, epoch in job.last_records},
        high_watermark=job.high_watermark,
        now_ms=job.now_ms,
        delete_retention_ms=job.delete_retention_ms,
    )
    before = after = 0
    touched = [segment for segment in segments if segment.base_offset < end_offset]
    for group in group_segments(touched, config, job.upper):
        before += sum(segment.size_bytes for segment in group)
        after += _clean_group(services, job, config, group, survivors, transactions, moved)
        ready([segment.base_offset for segment in group])
    return Cleaned(end_offset, before, after)


def _note_all_keys(
    offsets: OffsetMap,
    segments: list[Segment],
    job: CleaningJob,
    aborted: list[AbortedTransaction],
    moved: Moved,
) -> None:
    transactions = Transactions(each for each in aborted if each.last_offset >= job.first_dirty)
    ends = [after.base_offset for _, after in pairwise(segments)] + [job.upper]
    for segment, end in zip(segments, ends, strict=False):  # there may be no segment any more
        if end <= job.first_dirty:
            continue
        for place, batch in _read(segment, segment.offset_index.lookup(job.first_dirty), moved):
            try:
                fits = note_keys(offsets, transactions, batch)
            except CorruptRecords as error:
                raise CorruptLog(segment.file.path, place, str(error)) from error
            if not fits:
                return
        # Offsets at the end of a segment may have been compacted away.
        offsets.advance(end - 1)


def group_segments(segments: list[Segment], config: LogConfig, upper: int) -> Iterator[list[Segment]]:
    """Neighbours that fit one segment together, whatever of them stays; the last one ends at ``upper``."""
    group: list[Segment] = []
    size = offset_entries = time_entries = 0
    for number, segment in enumerate(segments):
        segment.load()
        end = segments[number + 1].base_offset if number + 1 < len(segments) else upper
        fits = group and (
            size + segment.size_bytes <= config.segment_bytes
            and offset_entries + segment.offset_index.count <= segment.offset_index.count_max
            and time_entries + segment.time_index.count <= segment.time_index.count_max
            and (not segment.size_bytes or end - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if group and not fits:
            yield group
            group = []
            size = offset_entries = time_entries = 0
        group.append(segment)
        size += segment.size_bytes
        offset_entries += segment.offset_index.count
        time_entries += segment.time_index.count
    if group:
        yield group


def _clean_group(
    services: LogServices,
    job: CleaningJob,
    config: LogConfig,
    group: list[Segment],
    survivors: Survivors,
    transactions: Transactions,
    moved: Moved,
) -> int:
    """Write one segment for all of ``group``, to the device; return its size."""
    target = Segment(
        job.directory, group[0].base_offset, config, services.descriptors, now_ms=0, suffix=paths.CLEANED
    )
    try:
        _write_cleaned(target, group, survivors, transactions, moved)
        # Where no record has a timestamp, retention goes by the file's.
        services.file_system.set_modified_ms(target.file.path, group[-1].file.modified_ms())
        target.close()
    except (OSError, StorageError):
        # On a full disk the part that did fit would be in everybody's way until the next attempt.
        target.close()
        with suppress(OSError):
            discard_cleaned(services, job.directory, target.base_offset)
        raise
    # Before they become swap files: a start takes an index that alone is one for that of a finished swap.
    services.file_system.sync_directory(job.directory)
    for source in group:
        source.close()
    return target.size_bytes


def _write_cleaned(
    target: Segment, group: list[Segment], survivors: Survivors, transactions: Transactions, moved: Moved
) -> None:
    target.create()
    waiting = bytearray()

    def write() -> None:
        target.file.open().pwrite(waiting, target.size_bytes - len(waiting))
        moved(len(waiting))
        waiting.clear()

    for source in group:
        for place, batch in _read(source, 0, moved):
            try:
                left = survivors.filter(batch)
            except CorruptRecords as error:
                raise CorruptLog(source.file.path, place, str(error)) from error
            if left is not None:
                waiting += left
                made = RecordBatch(left)
                target.note(made.last_offset, made.max_timestamp, target.size_bytes, made.size_bytes)
                for aborted in transactions.kept:
                    target.transaction_index.append(aborted)
                transactions.kept.clear()
                if len(waiting) >= WRITTEN_AT_ONCE:
                    write()
    write()
    target.seal()
    for file in (target.file.open(), *target.open_indexes()):
        file.sync()


def _read(segment: Segment, position: int, moved: Moved) -> Iterator[tuple[int, RecordBatch]]:
    """Every batch with its place, checked: what is damaged must not get a new CRC."""
    for place, batch in read_stored_batches(segment.file.open(), position, segment.size_bytes):
        try:
            batch.check_crc()
        except CorruptRecords as error:
            raise CorruptLog(segment.file.path, place, str(error)) from error
        moved(batch.size_bytes)
        yield place, batch
