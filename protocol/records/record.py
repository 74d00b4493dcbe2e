"""One record inside a batch, and how a decompressed records section is read.

This is the reader for whoever needs keys and values.  Checking what producers sent does not need
them and has its own, tighter walk in ``validation``.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from protocol.records.errors import CorruptRecords
from protocol.records.varint import read_varint, read_varlong

Header = tuple[bytes, bytes | None]


class Record(NamedTuple):
    """One record with its place and time made absolute."""

    offset: int
    timestamp: int
    """Milliseconds since the epoch; -1 if the producer gave none."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    """Header keys are UTF-8 as bytes; they may repeat, and their order counts."""


def read_records(
    payload: bytes,
    record_count: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None = None,
) -> Iterator[Record]:
    """Yield ``record_count`` records of a decompressed records section.

    ``append_timestamp`` replaces every record's own timestamp (a batch of type LogAppendTime).
    Raises CorruptRecords when the payload does not hold exactly that many well-formed records.
    """
    position = 0
    make = tuple.__new__  # what Record(…) does, at a third of the time
    try:
        for _ in range(record_count):
            # Most integers take one byte or two, which are decoded in place.
            number = payload[position]
            if number < 0x80:
                position += 1
                size = (number >> 1) ^ -(number & 1)
            elif (high := payload[position + 1]) < 0x80:
                position += 2
                size = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                size, position = read_varint(payload, position)
            end = position + size
            position += 1  # attributes: a record has none that mean anything

            number = payload[position]
            if number < 0x80:
                position += 1
                timestamp = (number >> 1) ^ -(number & 1)
            else:
                timestamp, position = read_varlong(payload, position)
            if append_timestamp is None:
                timestamp += base_timestamp
            else:
                timestamp = append_timestamp

            number = payload[position]
            if number < 0x80:
                position += 1
                offset = (number >> 1) ^ -(number & 1)
            elif (high := payload[position + 1]) < 0x80:
                position += 2
                offset = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                offset, position = read_varint(payload, position)

            number = payload[position]
            if number < 0x80:
                position += 1
                size = (number >> 1) ^ -(number & 1)
            elif (high := payload[position + 1]) < 0x80:
                position += 2
                size = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                size, position = read_varint(payload, position)
            key = None
            if size >= 0:
                key = payload[position : position + size]
                position += size

            number = payload[position]
            if number < 0x80:
                position += 1
                size = (number >> 1) ^ -(number & 1)
            elif (high := payload[position + 1]) < 0x80:
                position += 2
                size = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                size, position = read_varint(payload, position)
            value = None
            if size >= 0:
                value = payload[position : position + size]
                position += size

            headers: Sequence[Header] = ()
            if payload[position] == 0:
                position += 1
            else:
                headers, position = _read_headers(payload, position)
            if position != end:
                raise CorruptRecords(f"a record's size and its contents differ by {position - end} bytes")
            yield make(Record, (base_offset + offset, timestamp, key, value, headers))
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if position != len(payload):
        raise CorruptRecords(f"{len(payload) - position} bytes lie between the last record and the end")


def _read_headers(payload: bytes, position: int) -> tuple[list[Header], int]:
    count, position = read_varint(payload, position)
    if not 0 <= count <= len(payload) - position:
        raise CorruptRecords(f"{count} record headers in {len(payload) - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        key_size, position = read_varint(payload, position)
        if key_size < 0:
            raise CorruptRecords(f"a header key of {key_size} bytes")
        key = payload[position : position + key_size]
        position += key_size
        value_size, position = read_varint(payload, position)
        value = None
        if value_size >= 0:
            value = payload[position : position + value_size]
            position += value_size
        headers.append((key, value))
    return headers, position
