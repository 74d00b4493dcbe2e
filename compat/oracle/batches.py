"""Record batches for conversations: good ones, and ones in which something is wrong."""

import struct
import zlib
from typing import Final

from crc32c import crc32c

from compat.oracle.preparing import LONG_AGO_MS
from protocol.records.builder import build_batch
from protocol.records.compression import Compression

BASE_OFFSET: Final = 0, "q"
LENGTH: Final = 8, "i"
MAGIC: Final = 16, "b"
CRC: Final = 17, "I"
ATTRIBUTES: Final = 21, "H"
LAST_OFFSET_DELTA: Final = 23, "i"
MAX_TIMESTAMP: Final = 35, "q"
RECORD_COUNT: Final = 57, "i"
"""Where in a batch a field stands, and how it is written."""

CONTROL: Final = 0x20
TRANSACTIONAL: Final = 0x10
LOG_APPEND_TIME: Final = 0x08


def batch(
    *values: str | None,
    key: str | None = "k",
    compression: Compression = Compression.NONE,
    timestamp_ms: int = LONG_AGO_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    """A good batch; ``producer`` is its id, epoch and first sequence."""
    records = [
        (
            timestamp_ms + n,
            None if key is None else key.encode(),
            None if value is None else value.encode(),
            (),
        )
        for n, value in enumerate(values)
    ]
    return bytes(
        build_batch(
            records,
            compression=compression,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            is_transactional=transactional,
        )
    )


def with_field(good: bytes, field: tuple[int, str], value: int) -> bytes:
    """A batch with one field changed, and with the checksum that it then has."""
    changed = without_seal(good, field, value)
    return without_seal(changed, CRC, crc32c(changed[21:]))


def without_seal(good: bytes, field: tuple[int, str], value: int) -> bytes:
    """A batch with one field changed, and nothing else put right."""
    position, layout = field
    changed = bytearray(good)
    struct.pack_into(f">{layout}", changed, position, value)
    return bytes(changed)


def old_message_set(magic: int) -> bytes:
    """One message in the format of Kafka before 0.11: ``magic`` is 0 or 1."""
    rest = bytes((magic, 0)) + bytes(8 if magic else 0) + struct.pack(">i1si1s", 1, b"k", 1, b"v")
    message = struct.pack(">I", zlib.crc32(rest)) + rest
    return struct.pack(">qi", 0, len(message)) + message
