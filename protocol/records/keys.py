"""What compaction wants of records: their keys, and where they are.  The hot loops of the cleaner.

They look at as few bytes of each record as they can: neither values nor headers are touched.  Integers
of one byte or two, which most are, are decoded in place: a call for each would double the time.
"""

from collections.abc import Sequence
from typing import NamedTuple

from protocol.records.errors import CorruptRecords
from protocol.records.varint import read_varint, read_varlong

SHORT_KEY_MAX = 63
"""A key of up to so many bytes has a size that takes one byte."""

_NEVER = -1 << 40
"""A size that leads out of every section."""

_SIZES = [number >> 1 if not number & 1 else _NEVER for number in range(128)]
"""The size that a varint of one byte stands for; records have no negative ones."""

_LOW_SIZES = [size & 0x3F if size >= 0 else size for size in _SIZES] * 2
"""What the first byte of a varint of two adds to the size."""

_KEY_SIZES = [number >> 1 if number < 0x80 and not number & 1 else -1 for number in range(256)]
"""The same for keys; -1 where more must be looked at."""


class Keys(NamedTuple):
    """Of each record in a section, in their order."""

    keys: list[bytes | None]
    offset_deltas: Sequence[int]
    tombstones: list[int]
    """Which of the records have no value."""
    has_null: bool
    has_long: bool
    """Whether there is a key of more than SHORT_KEY_MAX bytes."""


def read_keys(section: bytes, position: int, end: int, record_count: int) -> Keys:
    """The keys of the records in ``section`` from ``position`` to ``end``, exactly ``record_count``.

    Raises CorruptRecords if sizes of records and keys do not agree with that.
    """
    keys: list[bytes | None] = []
    raw_deltas: list[int] = []
    tombstones: list[int] = []
    has_null = has_long = False
    add_key = keys.append
    add_delta = raw_deltas.append
    try:
        for index in range(record_count):
            number = section[position]
            if number < 0x80:
                position += 1
                record_end = position + _SIZES[number]
            elif (high := section[position + 1]) < 0x80:
                position += 2
                record_end = position + _LOW_SIZES[number] + (high << 6)
            else:
                size, position = read_varint(section, position)
                record_end = position + size

            # Behind the attributes, the timestamp is passed over.
            if section[position + 1] < 0x80:
                position += 2
            elif section[position + 2] < 0x80:
                position += 3
            else:
                _, position = read_varlong(section, position + 1)

            number = section[position]
            if number < 0x80:
                position += 1
            elif (high := section[position + 1]) < 0x80:
                position += 2
                number = number & 0x7F | high << 7
            else:
                delta, position = read_varint(section, position)
                number = delta << 1 ^ delta >> 31
            add_delta(number)

            size = _KEY_SIZES[section[position]]
            if size >= 0:
                position += 1
                key_end = position + size
                add_key(section[position:key_end])
            else:
                size, position = read_varint(section, position)
                if size < 0:
                    has_null = True
                    key_end = position
                    add_key(None)
                else:
                    has_long = True
                    key_end = position + size
                    add_key(section[position:key_end])

            # Only a null value has an odd length in zigzag: a negative one.
            if section[key_end] & 1:
                tombstones.append(index)
            if not key_end < record_end <= end or size < -1:
                raise CorruptRecords("a record's size and that of its key do not agree")
            position = record_end
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if position != end:
        raise CorruptRecords(f"{end - position} bytes lie between the last record and the end")
    deltas: Sequence[int] = range(record_count)
    if raw_deltas != list(range(0, 2 * record_count, 2)):
        deltas = [(raw >> 1) ^ -(raw & 1) for raw in raw_deltas]
    return Keys(keys, deltas, tombstones, has_null, has_long)


def find_records(section: bytes, position: int, end: int, record_count: int) -> list[int]:
    """Where the first ``record_count`` records from ``position`` on begin, and where the last one ends.

    Raises CorruptRecords if that is behind ``end``.
    """
    places: list[int] = []
    add_place = places.append
    try:
        for _ in range(record_count):
            add_place(position)
            number = section[position]
            if number < 0x80:
                position += 1 + _SIZES[number]
            elif (high := section[position + 1]) < 0x80:
                position += 2 + _LOW_SIZES[number] + (high << 6)
            else:
                size, position = read_varint(section, position)
                position += size if size >= 0 else _NEVER
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if not 0 <= position <= end:
        raise CorruptRecords("a record runs past the end of its batch")
    add_place(position)
    return places


def read_timestamps(section: bytes, places: Sequence[int], wanted: Sequence[int]) -> list[tuple[int, int]]:
    """Timestamp delta of each ``wanted`` record, by its number among ``places``, and where it ends."""
    found: list[tuple[int, int]] = []
    add = found.append
    for index in wanted:
        position = places[index]
        if section[position] < 0x80:
            position += 2
        elif section[position + 1] < 0x80:
            position += 3
        else:
            _, position = read_varint(section, position)
            position += 1
        number = section[position]
        if number < 0x80:
            add(((number >> 1) ^ -(number & 1), position + 1))
        elif (high := section[position + 1]) < 0x80:
            add(((number >> 1 & 0x3F | high << 6) ^ -(number & 1), position + 2))
        else:
            add(read_varlong(section, position))
    return found
