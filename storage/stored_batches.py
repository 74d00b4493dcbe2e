"""Walks over the batches of a ``.log`` file: by header only, or whole.

The walks check no CRC.  CorruptLog is raised where the bytes are no batch, or not all of one (after
a crash that is the torn tail: TornBatch), UnsupportedFormat at an entry in the format of an old Kafka.
"""

from collections.abc import Iterator
from struct import Struct

from protocol.records.batch import LOG_OVERHEAD, MAGIC, RECORD_BATCH_OVERHEAD, RecordBatch
from protocol.records.errors import CorruptRecords
from storage.errors import CorruptLog, TornBatch, UnsupportedFormat
from storage.filesystem import File

# Base offset, length, magic and last offset delta: all that finding an offset needs.
_PLACE = Struct(">qi4xb6xi")
_MAGIC_POSITION = 16

_HEADERS_WINDOW = 4096
BATCHES_WINDOW = 1 << 20


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


def find_valid_batch(file: File, position: int, end: int, lowest_offset: int) -> int | None:
    """Where the first whole, undamaged batch starts in bytes ``position`` to ``end``; None if none does.

    For bytes behind a damage, where nothing says how long the damaged batch was.  Its offsets must be at
    least ``lowest_offset``.
    """
    start = position
    while position < end:
        window = file.pread(min(BATCHES_WINDOW, end - position), position)
        at = -1
        while (at := window.find(MAGIC, at + 1)) >= 0:
            found = position + at - _MAGIC_POSITION
            if found >= start and _is_valid_batch(file, found, end, lowest_offset):
                return found
        position += len(window)
    return None


def _is_valid_batch(file: File, position: int, end: int, lowest_offset: int) -> bool:
    header = file.pread(_PLACE.size, position)
    if len(header) < _PLACE.size:
        return False
    base_offset, length, magic, last_offset_delta = _PLACE.unpack(header)
    if magic != MAGIC or base_offset < lowest_offset or last_offset_delta < 0:
        return False
    if length < RECORD_BATCH_OVERHEAD - LOG_OVERHEAD or position + LOG_OVERHEAD + length > end:
        return False
    try:
        RecordBatch(file.pread(LOG_OVERHEAD + length, position)).check_crc()
    except CorruptRecords:
        return False
    return True


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
