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
    try:
        for _ in range(record_count):
            # Each integer is first tried as one byte: nearly all of them are.
            size = payload[position]
            if size < 0x80:
                size = (size >> 1) ^ -(size & 1)
                position += 1
            else:
                size, position = read_varint(payload, position)
            end = position + size
            position += 1  # attributes: no bit of a record's own is in use
            timestamp, position = read_varlong(payload, position)
            offset, position = read_varint(payload, position)
            key_size, position = read_varint(payload, position)
            key = None
            if key_size >= 0:
                key = payload[position : position + key_size]
                position += key_size
            value_size, position = read_varint(payload, position)
            value = None
            if value_size >= 0:
                value = payload[position : position + value_size]
                position += value_size
            header_count = payload[position]
            headers: Sequence[Header] = ()
            if header_count:
                headers, position = _read_headers(payload, position)
            else:
                position += 1
            if position != end:
                raise CorruptRecords(f"a record of {size} bytes ends {end - position} bytes off")
            yield Record(
                base_offset + offset,
                base_timestamp + timestamp if append_timestamp is None else append_timestamp,
                key,
                value,
                headers,
            )
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if position != len(payload):
        raise CorruptRecords(f"{len(payload) - position} bytes follow the last record")


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
