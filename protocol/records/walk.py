"""The walk over a batch's records that checks their framing: the hot loop of produce.

A broker must look at every record that a producer sends, but needs neither keys nor values.  So the
walk jumps from length to length, and where many records in a row have the same shape, it checks all
of them at once, column by column.  It is exact: the shortcuts decide how fast the answer comes, never
what it is.
"""

from typing import NamedTuple

from protocol.records.errors import CorruptRecords
from protocol.records.runs import LAST_BYTES, PAUSE_MAX, RUN_MIN, find_run
from protocol.records.varint import read_varint, read_varlong


class Walked(NamedTuple):
    """What the walk saw."""

    max_timestamp_delta: int
    max_timestamp_index: int
    """The first record that has it."""
    min_timestamp_delta: int
    has_null_key: bool
    is_in_order: bool
    """Whether the offset deltas count 0, 1, 2, …"""


_NOTHING_YET = Walked(-1 << 63, 0, (1 << 63) - 1, False, True)


def walk_records(section: bytes | memoryview, record_count: int) -> Walked:
    """Check that ``section`` is exactly ``record_count`` well-formed records.

    Raises CorruptRecords if it is not.  Bytes are walked faster than a memoryview.
    """
    position = index = 0
    walked = _NOTHING_YET
    pause = RUN_MIN
    try:
        if record_count < RUN_MIN:
            position, walked = _walk_one_by_one(section, 0, 0, record_count, walked)
            index = record_count
        while index < record_count:
            if record_count - index >= RUN_MIN:
                run = _walk_run(section, position, index, record_count, walked)
                if run is not None:
                    position, index, walked = run
                    pause = RUN_MIN
                    continue
            # Records of many shapes: look for a run less and less often.
            stop = min(index + pause, record_count)
            position, walked = _walk_one_by_one(section, position, index, stop, walked)
            index = stop
            pause = min(2 * pause, PAUSE_MAX)
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if position != len(section):
        raise CorruptRecords(
            f"{len(section) - position} bytes lie between the last record and its batch's end"
        )
    return walked


def _walk_one_by_one(
    section: bytes | memoryview, position: int, first: int, stop: int, walked: Walked
) -> tuple[int, Walked]:
    """Walk the records ``first`` to ``stop``; IndexError means that one runs past the end.

    Integers of one and two bytes are decoded in place: a call for each would double the time.
    """
    max_delta, max_index, min_delta, has_null_key, is_in_order = walked
    for index in range(first, stop):
        size = section[position]
        if size < 0x80:
            position += 1
            size = (size >> 1) ^ -(size & 1)
        elif (high := section[position + 1]) < 0x80:
            position += 2
            size = (size >> 1 & 0x3F | high << 6) ^ -(size & 1)
        else:
            size, position = read_varint(section, position)
        end = position + size
        position += 1  # attributes: a record has none that mean anything

        delta = section[position]
        if delta < 0x80:
            position += 1
            delta = _ZIGZAG[delta]
        elif (high := section[position + 1]) < 0x80:
            position += 2
            delta = (delta >> 1 & 0x3F | high << 6) ^ -(delta & 1)
        else:
            delta, position = read_varlong(section, position)
        if delta > max_delta:
            max_delta = delta
            max_index = index
        if delta < min_delta:
            min_delta = delta

        offset = section[position]
        if offset < 0x80:
            position += 1
            if offset != index << 1:
                is_in_order = False
        elif (high := section[position + 1]) < 0x80:
            position += 2
            if offset & 0x7F | high << 7 != index << 1:
                is_in_order = False
        else:
            offset, position = read_varint(section, position)
            if offset != index:
                is_in_order = False

        size = section[position]
        if size < 0x80:
            position += 1
            size = _ZIGZAG[size]
        else:
            size, position = read_varint(section, position)
        if size >= 0:
            position += size
        else:
            has_null_key = True

        size = section[position]
        if size < 0x80:
            position += 1
            size = _ZIGZAG[size]
        elif (high := section[position + 1]) < 0x80:
            position += 2
            size = (size >> 1 & 0x3F | high << 6) ^ -(size & 1)
        else:
            size, position = read_varint(section, position)
        if size > 0:
            position += size

        if section[position] == 0:
            position += 1
        else:
            position = _skip_headers(section, position)
        if position != end:
            raise CorruptRecords(f"a record's size and its contents differ by {position - end} bytes")
    return position, Walked(max_delta, max_index, min_delta, has_null_key, is_in_order)


def _skip_headers(section: bytes | memoryview, position: int) -> int:
    count, position = read_varint(section, position)
    if count < 0:
        raise CorruptRecords(f"a record has {count} headers")
    for _ in range(count):
        size, position = read_varint(section, position)
        if size < 0:
            raise CorruptRecords(f"a header key of {size} bytes")
        size, position = read_varint(section, position + size)
        if size > 0:
            position += size
    return position


def _walk_run(
    section: bytes | memoryview, position: int, first: int, record_count: int, walked: Walked
) -> tuple[int, int, Walked] | None:
    """Walk the records from ``first`` on that have its shape; None if they are too few.

    One shape means: the same sizes of record, key and value; as many bytes for each integer; no
    headers.  Byte ``n`` of every record is then a slice of the section with the record's size as its
    step, and a check of that slice, made in C, is a check of all these records.
    """
    run = find_run(section, position, len(section), record_count - first)
    if run is None:
        return None
    step = run.step
    timestamp_at = at = run.size_width + 1  # behind the attributes
    is_wide = section[position + at] >= 0x80
    if is_wide:
        run.keep_while_in(at, _EVEN_FIRST_BYTES)
        at += 1
    run.keep_while_in(at, LAST_BYTES)
    at += 1

    behind = run.pass_offsets(at, first)
    if behind is None or run.count < RUN_MIN:
        return None
    at = behind
    key_size, end = read_varint(section, position + at)
    run.keep_while_same(at, end - position)
    at = end - position + max(key_size, 0)
    value_size, end = read_varint(section, position + at)
    run.keep_while_same(at, end - position)
    at = end - position + max(value_size, 0)
    if at != step - 1 or section[position + at] != 0:
        return None  # headers, or an error for the walk one by one to name
    run.keep_while_same(at, step)
    if run.count < RUN_MIN:
        return None

    if is_wide:
        highest_first = list(zip(run.column(timestamp_at + 1), run.column(timestamp_at), strict=True))
        highest, lowest = max(highest_first), min(highest_first)
        index = first + highest_first.index(highest)
        max_delta = highest[0] << 6 | highest[1] >> 1 & 0x3F
        min_delta = lowest[0] << 6 | lowest[1] >> 1 & 0x3F
    else:
        column = run.column(timestamp_at).translate(_BIASED_ZIGZAG)
        index = first + column.index(max(column))
        max_delta = max(column) - _BIAS
        min_delta = min(column) - _BIAS
    if max_delta <= walked.max_timestamp_delta:
        max_delta, index = walked.max_timestamp_delta, walked.max_timestamp_index
    return (
        position + run.count * step,
        first + run.count,
        Walked(
            max_delta,
            index,
            min(min_delta, walked.min_timestamp_delta),
            walked.has_null_key or key_size < 0,
            walked.is_in_order,
        ),
    )


_ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
"""The number that a varint of one byte stands for."""

_BIAS = 64
_BIASED_ZIGZAG = bytes(number + _BIAS for number in _ZIGZAG) + bytes(128)
"""The same plus a bias that leaves none negative: so the order of bytes is that of the numbers."""

_EVEN_FIRST_BYTES = bytes(range(128, 256, 2))
"""Bytes that begin a longer varint of a number that is not negative."""
