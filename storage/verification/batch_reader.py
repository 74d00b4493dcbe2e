"""Reads the batches of a file whatever has happened to it: what cannot be read is passed over, and named."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from protocol.limits import RECORDS_SIZE_MAX
from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    MAGIC,
    RECORD_BATCH_OVERHEAD,
    RecordBatch,
)
from protocol.records.checksum import crc32c
from storage.errors import CorruptFile, CorruptLog, TornBatch, UnsupportedFormat
from storage.filesystem import File
from storage.recovery import SECTOR, has_hole
from storage.stored_batches import check_header, find_next_batch

WINDOW = 1 << 20

WHOLE_MAX = RECORDS_SIZE_MAX + RECORD_BATCH_OVERHEAD
"""Bytes of the largest batch that is held in memory; of a larger one only header and CRC are checked."""


class Unreadable(NamedTuple):
    """A part of the file that is no sound batch."""

    position: int
    end: int
    """Where the next good batch begins, or the file ends."""
    reason: str
    is_torn: bool
    """The file ends inside a batch, or in zeros: what a crash leaves of the last write."""
    has_hole: bool = False
    """Some of it was never written: a power cut has kept what was written later."""
    header: RecordBatch | None = None
    """Of the batch that it begins with, if just the CRC is wrong."""
    next_offset: int | None = None
    """Where a batch ends of which only the format is unknown: its CRC is right, and no start cuts it."""


class ReadBatch(NamedTuple):
    """A batch with the right CRC."""

    position: int
    batch: RecordBatch
    is_whole: bool
    """Whether the records are there, too, and not only the header."""


def read_leniently(file: File, size: int, base_offset: int) -> Iterator[ReadBatch | Unreadable]:
    """Every sound batch in the first ``size`` bytes of a segment, and what lies between them.

    Raises OSError.
    """
    window = b""
    window_position = position = 0
    next_offset = base_offset
    while position < size:
        at = position - window_position
        if at + RECORD_BATCH_OVERHEAD > len(window):
            window = file.pread(min(WINDOW, size - position), position)
            window_position = position
            at = 0
        header = None
        try:
            batch = check_header(file, window, at, position, size)
            is_whole = batch.size_bytes <= WHOLE_MAX
            if is_whole and at + batch.size_bytes > len(window):
                window = file.pread(min(max(WINDOW, batch.size_bytes), size - position), position)
                window_position = position
                batch = check_header(file, window, 0, position, position + len(window))
            crc = crc32c(batch.data[ATTRIBUTES_POSITION:]) if is_whole else _crc_of(file, position, batch)
            if crc != batch.crc:
                header = batch
                raise CorruptLog(file.path, position, f"the CRC is {batch.crc}, that of the bytes is {crc}")
        except (CorruptLog, UnsupportedFormat) as error:
            found = _unknown_format(file, window, at, position, size) or _find_behind(
                file, error, position, size, next_offset, base_offset, header
            )
            yield found
            next_offset = max(next_offset, found.next_offset or 0)
            position = found.end
            window = b""
            continue
        yield ReadBatch(position, batch, is_whole)
        position += batch.size_bytes
        next_offset = max(next_offset, batch.next_offset)


def _find_behind(
    file: File,
    error: CorruptFile,
    position: int,
    size: int,
    next_offset: int,
    base_offset: int,
    header: RecordBatch | None,
) -> Unreadable:
    found = find_next_batch(file, position + 1, size, next_offset, base_offset + (1 << 31), WHOLE_MAX)
    reason = error.reason
    is_torn = isinstance(error, TornBatch) and found is None
    if found is None and _is_zero(file, position, size):
        reason = f"at byte {position}: nothing but zeros"
        is_torn = True
    end = size if found is None else found
    last_sector = max(position, size - size % SECTOR)
    ends_in_hole = found is None and last_sector < size and _is_zero(file, last_sector, size)
    hole = ends_in_hole or has_hole(file, position, end, next_offset)
    return Unreadable(position, end, _without_position(reason), is_torn, hole, header)


def _unknown_format(file: File, window: bytes, at: int, position: int, size: int) -> Unreadable | None:
    if len(window) - at < RECORD_BATCH_OVERHEAD:
        return None
    batch = RecordBatch(window, at)
    if batch.magic <= MAGIC or not RECORD_BATCH_OVERHEAD <= batch.size_bytes <= size - position:
        return None
    if _crc_of(file, position, batch) != batch.crc:
        return None
    reason = f"a batch of format {batch.magic}, which nobody can read, although its CRC is right"
    end = position + batch.size_bytes
    return Unreadable(position, end, reason, is_torn=False, next_offset=batch.next_offset)


def _without_position(reason: str) -> str:
    """Who reports the reason names the position as well."""
    return re.sub(r"^at byte \d+: ", "", reason)


def _crc_of(file: File, position: int, batch: RecordBatch) -> int:
    crc = 0
    at = position + ATTRIBUTES_POSITION
    end = position + batch.size_bytes
    while at < end:
        piece = file.pread(min(WINDOW, end - at), at)
        if not piece:
            raise TornBatch(file.path, position, "the file became shorter while it was read")
        crc = crc32c(piece, crc)
        at += len(piece)
    return crc


def _is_zero(file: File, position: int, size: int) -> bool:
    while position < size:
        piece = file.pread(min(WINDOW, size - position), position)
        if not piece or piece.count(0) != len(piece):
            return False
        position += len(piece)
    return True
