"""Walks over the batches of a ``.log`` file: by header only, or whole.

The walks check no CRC.  CorruptLog is raised where the bytes are no batch, or not all of one (after
a crash that is the torn tail: TornBatch), UnsupportedFormat at an entry in the format of an old Kafka.
"""

import re
from collections.abc import Iterator
from struct import Struct

from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    RECORD_BATCH_OVERHEAD,
    RecordBatch,
)
from protocol.records.checksum import crc32c
from storage.errors import CorruptLog, TornBatch, UnsupportedFormat
from storage.filesystem import File

# Base offset, length, magic and last offset delta: all that finding an offset needs.
_PLACE = Struct(">qi4xb6xi")
_MAGIC_POSITION = 16
_SUPPOSED = Struct(">qi4xb6xi30xi")
"""The same, and the record count."""

_HEADERS_WINDOW = 4096
BATCHES_WINDOW = 1 << 20

SEARCH_BYTES_MAX = 1 << 30
"""Bytes of supposed batches whose CRC is tried at most to find the next good one behind a damage."""


def find_batch(file: File, offset: int, position: int, end: int) -> int | None:
    """Where the first batch from ``position`` on starts that ends at ``offset`` or later.

    None if there is none before byte ``end``.  ``position`` is what an index says of ``offset``.  Raises
    TornBatch if ``end`` lies inside a batch that is looked at, CorruptLog if there is none at ``position``,
    or one that lies behind the offset.
    """
    window = b""
    window_position = start = position
    if not 0 <= position <= end:
        raise CorruptLog(file.path, position, f"no position in {end} bytes")
    while position < end:
        at = position - window_position
        if at + _PLACE.size > len(window):
            window = file.pread(min(_HEADERS_WINDOW, end - position), position)
            window_position = position
            at = 0
            if len(window) < _PLACE.size:
                raise TornBatch(file.path, position, "the file ends inside a batch")
        base_offset, length, magic, last_offset_delta = _PLACE.unpack_from(window, at)
        if magic != MAGIC or length < RECORD_BATCH_OVERHEAD - LOG_OVERHEAD:
            raise _bad_header(file.path, position, magic, length)
        batch_end = position + length + LOG_OVERHEAD
        if batch_end > end:
            raise TornBatch(file.path, position, "the file ends inside a batch")
        if position == start and start and base_offset > offset:
            raise CorruptLog(file.path, position, f"offset {base_offset} where {offset} or less must be")
        if base_offset + last_offset_delta >= offset:
            return position
        position = batch_end
    return None


def read_batch_size(file: File, position: int) -> int:
    """The size of the batch at ``position``, in bytes."""
    header = file.pread(_PLACE.size, position)
    if len(header) < _PLACE.size:
        raise TornBatch(file.path, position, "the file ends inside a batch")
    _, length, magic, _ = _PLACE.unpack(header)
    if magic != MAGIC or length < RECORD_BATCH_OVERHEAD - LOG_OVERHEAD:
        raise _bad_header(file.path, position, magic, length)
    return int(length) + LOG_OVERHEAD


def read_headers(file: File, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """The header of every batch from ``position`` to byte ``end``, with its position in the file.

    Of such a batch nothing but the header's fields may be used.
    """
    window = b""
    window_position = position
    while position < end:
        at = position - window_position
        if at + RECORD_BATCH_OVERHEAD > len(window):
            window = file.pread(min(_HEADERS_WINDOW, end - position), position)
            window_position = position
            at = 0
        batch = check_header(file, window, at, position, end)
        yield position, batch
        position += batch.size_bytes


def read_stored_batches(
    file: File, position: int, end: int, *, window_size: int = BATCHES_WINDOW
) -> Iterator[tuple[int, RecordBatch]]:
    """Every batch from ``position`` to byte ``end``, whole, with its position in the file."""
    window = b""
    window_position = position
    while position < end:
        at = position - window_position
        if at + RECORD_BATCH_OVERHEAD > len(window):
            window = file.pread(min(window_size, end - position), position)
            window_position = position
            at = 0
        batch = check_header(file, window, at, position, end)
        if at + batch.size_bytes > len(window):
            window = file.pread(min(max(window_size, batch.size_bytes), end - position), position)
            window_position = position
            batch = RecordBatch(window)
        yield position, batch
        position += batch.size_bytes


def find_next_batch(
    file: File,
    position: int,
    end: int,
    lowest: int,
    highest: int,
    size_max: int,
    *,
    trusts_unseen: bool = False,
) -> int | None:
    """Where the first sound batch with offsets from ``lowest`` to ``highest`` begins, from a byte on.

    For bytes behind a damage, where nothing says how long the damaged batch was.  Bytes that cannot be the
    beginning of one are passed over at the speed of a regular expression: files may be large, and hold
    anything.  Where very many places look like the beginning of one, not all are tried: whether the next
    of them counts as sound then is ``trusts_unseen``.
    """
    high_halves = {re.escape((offset >> 32).to_bytes(4)) for offset in (lowest, highest)}
    # It begins with one byte, for which the search is fast: the format's number.
    header = re.compile(
        b"\\x02(?=.{4}\\x00)(?<=(?:%s).{12}\\x02)" % b"|".join(sorted(high_halves)), re.DOTALL
    )
    budget = SEARCH_BYTES_MAX
    while position < end:
        window = file.pread(min(BATCHES_WINDOW, end - position), position)
        if len(window) < RECORD_BATCH_OVERHEAD:
            return None
        for match in header.finditer(window):
            at = match.start() - _MAGIC_POSITION
            if at + RECORD_BATCH_OVERHEAD > len(window):
                break
            base_offset, length, magic, last_delta, count = _SUPPOSED.unpack_from(window, at)
            size = length + LOG_OVERHEAD
            if (
                magic == MAGIC
                and lowest <= base_offset <= highest
                and RECORD_BATCH_OVERHEAD <= size <= min(end - position - at, size_max)
                and last_delta >= 0
                and 0 <= count <= last_delta + 1
            ):
                budget -= size
                if budget < 0:
                    return position + at if trusts_unseen else None
                batch = RecordBatch(file.pread(size, position + at))
                if crc32c(batch.data[ATTRIBUTES_POSITION:]) == batch.crc:
                    return position + at
        position += len(window) - RECORD_BATCH_OVERHEAD + 1
    return None


def check_header(file: File, window: bytes, at: int, position: int, end: int) -> RecordBatch:
    """The batch whose header stands at byte ``at`` of a window, which is byte ``position`` of the file.

    Raises CorruptLog, TornBatch or UnsupportedFormat unless a whole one can stand there, before ``end``.
    """
    if len(window) - at < RECORD_BATCH_OVERHEAD:
        raise TornBatch(file.path, position, f"{end - position} bytes hold no whole batch")
    batch = RecordBatch(window, at)
    if batch.magic != MAGIC or batch.size_bytes < RECORD_BATCH_OVERHEAD:
        raise _bad_header(file.path, position, batch.magic, batch.size_bytes - LOG_OVERHEAD)
    if position + batch.size_bytes > end:
        raise TornBatch(
            file.path, position, f"a batch of {batch.size_bytes} bytes, of which {end - position} are there"
        )
    return batch


def _bad_header(path: str, position: int, magic: int, length: int) -> CorruptLog | UnsupportedFormat:
    if magic in (0, 1) and length > 0:
        return UnsupportedFormat(path, f"at byte {position}: record format {magic}, from before Kafka 0.11")
    return CorruptLog(path, position, f"no record batch: format {magic}, length {length}")
