"""Entries of any record format, as far as they must be known to name the one that is not supported.

Before format v2 an entry was one message, or a compressed set of messages, with a header of its own.
All formats agree on the first bytes: base offset, size, and, at the 17th byte, the magic number.
"""

from struct import Struct
from typing import NamedTuple

from protocol.records.batch import LOG_OVERHEAD, MAGIC, Buffer
from protocol.records.errors import CorruptRecords

MAGIC_POSITION = 16
LEGACY_RECORD_OVERHEAD = 14
"""What an entry of format 0 takes behind its size field at least; Kafka checks no more than that."""

_SIZE = Struct(">i")
_SIZE_POSITION = 8


class Entry(NamedTuple):
    """An entry's extent and format."""

    size_bytes: int
    magic: int

    @property
    def is_legacy(self) -> bool:
        """Whether this is a message or a message set of Kafka before 0.11."""
        return self.magic < MAGIC


def read_entry(buffer: Buffer, position: int = 0) -> Entry | None:
    """Size and format of the entry at ``position``; None if not all of its bytes are there.

    Raises CorruptRecords, in Kafka's words, for a size or a magic that no format has.
    """
    available = len(buffer) - position
    if available < LOG_OVERHEAD:
        return None
    (size,) = _SIZE.unpack_from(buffer, position + _SIZE_POSITION)
    if size < LEGACY_RECORD_OVERHEAD:
        raise CorruptRecords(
            f"Record size {size} is less than the minimum record overhead ({LEGACY_RECORD_OVERHEAD})"
        )
    if available <= MAGIC_POSITION:
        return None
    magic = buffer[position + MAGIC_POSITION]
    if magic > MAGIC:
        raise CorruptRecords(f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}")
    if size + LOG_OVERHEAD > available:
        return None
    return Entry(size + LOG_OVERHEAD, magic)
