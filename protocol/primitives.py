"""The types that fields have on the wire, and the variable-length integers between them.

Numbers are big-endian.  In flexible versions (KIP-482) lengths and counts are unsigned varints,
one larger than the value, so that zero can stand for null.
"""

from typing import Final, NamedTuple

from protocol.errors import DecodeError

Buffer = bytes | bytearray | memoryview


class Fixed(NamedTuple):
    """A type of fixed size; ``code`` is its letter in the ``struct`` module."""

    name: str
    code: str
    zero: object


class Sized(NamedTuple):
    """A type whose length stands before it."""

    name: str
    length_code: str  # of the classic, not flexible, encoding
    zero: object


class Array(NamedTuple):
    """A counted sequence of a scalar type or of a struct class."""

    of: "Fixed | Sized | type"


BOOL: Final = Fixed("bool", "?", False)
INT8: Final = Fixed("int8", "b", 0)
INT16: Final = Fixed("int16", "h", 0)
UINT16: Final = Fixed("uint16", "H", 0)
INT32: Final = Fixed("int32", "i", 0)
UINT32: Final = Fixed("uint32", "I", 0)
INT64: Final = Fixed("int64", "q", 0)
FLOAT64: Final = Fixed("float64", "d", 0.0)
UUID: Final = Fixed("uuid", "16s", bytes(16))
STRING: Final = Sized("string", "h", "")
BYTES: Final = Sized("bytes", "i", b"")
RECORDS: Final = Sized("records", "i", None)

WireType = Fixed | Sized | Array | type


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The value at ``position`` and the position behind it; at most five bytes, as in Kafka."""
    value = shift = 0
    try:
        while shift < 35:
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF, position
            shift += 7
    except IndexError:
        raise DecodeError("bytes end inside a varint") from None
    raise DecodeError("a varint has more than five bytes")


def write_unsigned_varint(value: int) -> bytes:
    """The one to five bytes of ``value``."""
    if value < 0x80:
        return SMALL_VARINTS[value]
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


SMALL_VARINTS: Final = tuple(bytes((value,)) for value in range(0x80))
