"""Reads the batches of a file whatever has happened to it: what cannot be read is passed over, and named."""

import re
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from protocol.limits import RECORDS_SIZE_MAX
from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    RECORD_BATCH_OVERHEAD,
    RecordBatch,
)
from protocol.records.checksum import crc32c
from storage.errors import CorruptFile, CorruptLog, TornBatch, UnsupportedFormat
from storage.filesystem import File
from storage.recovery import SECTOR, has_hole
from storage.stored_batches import check_header

WINDOW = 1 << 20

WHOLE_MAX = RECORDS_SIZE_MAX + RECORD_BATCH_OVERHEAD
"""Bytes of the largest batch that is held in memory; of a larger one only header and CRC are checked."""

SEARCH_BYTES_MAX = 1 << 30
"""Bytes of supposed batches whose CRC is tried at most to find the next good one behind a damage."""


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
            found = _find_behind(file, error, position, size, next_offset, base_offset, header)
            yield found
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
    found = find_next_batch(file, position + 1, size, next_offset, base_offset + (1 << 31))
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


_MAGIC_POSITION = 16

_PLACE = Struct(">qi4xbI2xi30xi")
"""Base offset, length, magic, CRC, last offset delta and record count."""


def find_next_batch(file: File, position: int, end: int, lowest: int, highest: int) -> int | None:
    """Where the first sound batch with offsets from ``lowest`` to ``highest`` begins, from a byte on.

    Bytes that cannot be the beginning of one are passed over at the speed of a regular expression: files
    may be large, and hold anything.
    """
    high_halves = {re.escape((offset >> 32).to_bytes(4)) for offset in (lowest, highest)}
    # It begins with one byte, for which the search is fast: the format's number.
    header = re.compile(
        b"\\x02(?=.{4}\\x00)(?<=(?:%s).{12}\\x02)" % b"|".join(sorted(high_halves)), re.DOTALL
    )
    budget = SEARCH_BYTES_MAX
    while position < end:
        window = file.pread(min(WINDOW, end - position), position)
        if len(window) < RECORD_BATCH_OVERHEAD:
            return None
        for match in header.finditer(window):
            at = match.start() - _MAGIC_POSITION
            if at + RECORD_BATCH_OVERHEAD > len(window):
                break
            base_offset, length, magic, _, last_delta, count = _PLACE.unpack_from(window, at)
            size = length + LOG_OVERHEAD
            if (
                magic == MAGIC
                and lowest <= base_offset <= highest
                and RECORD_BATCH_OVERHEAD <= size <= min(end - position - at, WHOLE_MAX)
                and last_delta >= 0
                and 0 <= count <= last_delta + 1
            ):
                budget -= size
                if budget < 0:
                    return None
                batch = RecordBatch(file.pread(size, position + at))
                if crc32c(batch.data[ATTRIBUTES_POSITION:]) == batch.crc:
                    return position + at
        position += len(window) - RECORD_BATCH_OVERHEAD + 1
    return None
