"""What compaction wants of records: their keys, and where they are.  The hot loops of the cleaner.

They look at as few bytes of each record as they can: neither values nor headers are touched.  Integers
of one byte or two, which most are, are decoded in place: a call for each would double the time.
"""

from collections.abc import Sequence
from itertools import chain
from struct import iter_unpack

from protocol.records.errors import CorruptRecords
from protocol.records.runs import FIRST_BYTES, LAST_BYTES, PAUSE_MAX, RUN_MIN, find_run
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


_SIZE_BYTES = bytes(range(0, 256, 2))
"""Bytes that begin a size, and not the -1 of what is null."""


class Keys:
    """Of each record in a section, in their order."""

    __slots__ = ("_raw_deltas", "has_long", "has_null", "keys", "offset_deltas", "tombstones")

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []
        self.offset_deltas: Sequence[int] = ()
        self.tombstones: list[int] = []
        """Which of the records have no value."""
        self.has_null = False
        self.has_long = False
        """Whether there is a key of more than SHORT_KEY_MAX bytes."""
        self._raw_deltas: list[int] = []
        """As they are written: zigzag."""


def read_keys(section: bytes, position: int, end: int, record_count: int) -> Keys:
    """The keys of the records in ``section`` from ``position`` to ``end``, exactly ``record_count``.

    Raises CorruptRecords if sizes of records and keys do not agree with that.
    """
    found = Keys()
    index = 0
    pause = RUN_MIN
    try:
        while index < record_count:
            if record_count - index >= RUN_MIN:
                run = _read_run(section, position, end, index, record_count, found)
                if run is not None:
                    position, index = run
                    pause = RUN_MIN
                    continue
            stop = min(index + pause, record_count)
            position = _read_one_by_one(section, position, end, index, stop, found)
            index = stop
            pause = min(2 * pause, PAUSE_MAX)
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if position != end:
        raise CorruptRecords(f"{end - position} bytes lie between the last record and the end")
    raw_deltas = found._raw_deltas
    if raw_deltas == list(range(0, 2 * record_count, 2)):
        found.offset_deltas = range(record_count)
    else:
        found.offset_deltas = [(raw >> 1) ^ -(raw & 1) for raw in raw_deltas]
    raw_deltas.clear()
    return found


def _read_run(
    section: bytes, position: int, end: int, first: int, record_count: int, found: Keys
) -> tuple[int, int] | None:
    """Read the records from ``first`` on that have its shape, and a value; None if they are too few.

    One shape means: one size of records and keys, and as many bytes for each integer.
    """
    run = find_run(section, position, end, record_count - first)
    if run is None:
        return None
    at = run.size_width + 1  # behind the attributes
    if section[position + at] >= 0x80:
        run.keep_while_in(at, FIRST_BYTES)
        at += 1
    run.keep_while_in(at, LAST_BYTES)
    behind = run.pass_offsets(at + 1, first)
    if behind is None or run.count < RUN_MIN:
        return None  # what is behind longer times is no size of a key
    key_size, key_position = read_varint(section, position + behind)
    key_at = key_position - position
    run.keep_while_same(behind, key_at)
    if not 0 <= key_size < run.step - key_at:
        return None
    run.keep_while_in(key_at + key_size, _SIZE_BYTES)
    if run.count < RUN_MIN:
        return None
    stop = position + run.count * run.step
    shape = f"{key_at}x{key_size}s{run.step - key_at - key_size}x"
    with memoryview(section) as view:
        found.keys += chain.from_iterable(iter_unpack(shape, view[position:stop]))
    index = first + run.count
    found._raw_deltas += range(2 * first, 2 * index, 2)
    found.has_long = found.has_long or key_size > SHORT_KEY_MAX
    return stop, index


def _read_one_by_one(section: bytes, position: int, end: int, first: int, stop: int, found: Keys) -> int:
    """Read the records ``first`` to ``stop``; IndexError means that one runs past all bytes."""
    add_key = found.keys.append
    add_delta = found._raw_deltas.append
    for index in range(first, stop):
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
                found.has_null = True
                key_end = position
                add_key(None)
            else:
                found.has_long = True
                key_end = position + size
                add_key(section[position:key_end])

        # Only a null value has an odd length in zigzag: a negative one.
        if section[key_end] & 1:
            found.tombstones.append(index)
        if not key_end < record_end <= end or size < -1:
            raise CorruptRecords("a record's size and that of its key do not agree")
        position = record_end
    return position


def find_records(section: bytes, position: int, end: int, record_count: int) -> list[int]:
    """Where the first ``record_count`` records from ``position`` on begin, and where the last one ends.

    Raises CorruptRecords if that is behind ``end``.
    """
    places: list[int] = []
    pause = RUN_MIN
    try:
        while len(places) < record_count:
            missing = record_count - len(places)
            run = find_run(section, position, end, missing) if missing >= RUN_MIN else None
            if run is not None:
                stop = position + run.count * run.step
                places += range(position, stop, run.step)
                position = stop
                pause = RUN_MIN
                continue
            position = _find_one_by_one(section, position, min(pause, missing), places)
            pause = min(2 * pause, PAUSE_MAX)
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if not 0 <= position <= end:
        raise CorruptRecords("a record runs past the end of its batch")
    places.append(position)
    return places


def _find_one_by_one(section: bytes, position: int, record_count: int, places: list[int]) -> int:
    add_place = places.append
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
    return position


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
