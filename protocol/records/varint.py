"""Variable-length integers as records use them: zigzag, seven bits a byte, least significant first.

Reading past the end raises IndexError; whoever reads records turns that into ``CorruptRecords``.
"""

from protocol.records.errors import CorruptRecords


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag int32 and the position behind it."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    raw = byte & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFF_FFFF  # like Kafka: bits above 32 in the last byte are dropped
            return (raw >> 1) ^ -(raw & 1), position
    raise CorruptRecords("a varint is longer than 5 bytes")


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag int64 and the position behind it."""
    raw = shift = 0
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFF_FFFF_FFFF_FFFF
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
        if shift > 63:
            raise CorruptRecords("a varlong is longer than 10 bytes")


def append_varint(data: bytearray, value: int) -> None:
    """Append ``value``, an int32 or an int64: the two differ only in their range."""
    raw = (value << 1) ^ (value >> 63)
    while raw >= 0x80:
        data.append(raw & 0x7F | 0x80)
        raw >>= 7
    data.append(raw)
