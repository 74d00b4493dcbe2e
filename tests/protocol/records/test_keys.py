"""What compaction reads of records is what a plain reader finds, whatever way it takes."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.builder import append_record
from protocol.records.errors import CorruptRecords
from protocol.records.keys import SHORT_KEY_MAX, find_records, read_keys, read_timestamps
from protocol.records.record import read_records
from protocol.records.runs import RUN_MIN
from protocol.records.varint import read_varint, read_varlong

Shape = tuple[int, int, bytes | None, bytes | None, int]
"""Timestamp delta, offset delta, key, value, number of headers."""

BEFORE = b"\x81\x02before"
BEHIND = b"\x02\x80behind"


def encoded(shape: Shape) -> bytes:
    timestamp, offset, key, value, headers = shape
    record = bytearray()
    append_record(record, offset, timestamp, key, value, [(b"name", None)] * headers)
    return bytes(record)


def check(records: Iterable[bytes]) -> None:
    """A section among other bytes, as a batch is in a file."""
    pieces = list(records)
    section = BEFORE + b"".join(pieces) + BEHIND
    end = len(section) - len(BEHIND)
    plain = list(read_records(b"".join(pieces), len(pieces), 0, 0))

    keys = read_keys(section, len(BEFORE), end, len(pieces))
    assert keys.keys == [record.key for record in plain]
    assert list(keys.offset_deltas) == [record.offset for record in plain]
    assert keys.tombstones == [index for index, record in enumerate(plain) if record.value is None]
    assert keys.has_null == any(record.key is None for record in plain)
    assert keys.has_long == any(len(record.key or b"") > SHORT_KEY_MAX for record in plain)

    for count in (len(pieces), len(pieces) // 2):
        places = find_records(section, len(BEFORE), end, count)
        assert [section[a:b] for a, b in pairwise(places)] == pieces[:count]
        wanted = list(range(count))[::2]
        times = read_timestamps(section, places, wanted)
        assert [time for time, _ in times] == [plain[index].timestamp for index in wanted]
        for (_, position), index in zip(times, wanted, strict=True):
            assert position - places[index] == behind_timestamp(pieces[index])


def behind_timestamp(record: bytes) -> int:
    _, attributes = read_varint(record, 0)
    return read_varlong(record, attributes + 1)[1]


small = st.integers(-70, 200)
shapes = st.tuples(
    small | st.integers(-(2**62), 2**62),
    small | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70),
    st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=130) | st.just(bytes(9000)),
    st.integers(0, 2),
)


@given(st.lists(shapes, max_size=30))
def test_records_of_many_shapes(given_shapes: list[Shape]) -> None:
    check(map(encoded, given_shapes))


@given(st.lists(shapes, min_size=1, max_size=10), st.data())
def test_a_changed_byte_leads_nowhere_else(given_shapes: list[Shape], data: st.DataObject) -> None:
    """What a plain reader takes is read alike, and nothing but CorruptRecords is raised."""
    section = bytearray(b"".join(map(encoded, given_shapes)))
    section[data.draw(st.integers(0, len(section) - 1))] = data.draw(st.integers(0, 255))
    check_damaged(bytes(section), len(given_shapes))


def check_damaged(section: bytes, record_count: int) -> None:
    plain = None
    try:
        plain = list(read_records(section, record_count, 0, 0))
    except CorruptRecords:
        pass
    try:
        keys = read_keys(section, 0, len(section), record_count)
        places = find_records(section, 0, len(section), record_count)
    except CorruptRecords:
        # A key of -2 bytes is none for others; here it is more likely a damage.
        assert plain is None or any(record.key is None for record in plain)
        return
    assert len(keys.keys) == len(keys.offset_deltas) == len(places) - 1 == record_count
    if plain is not None:
        assert keys.keys == [record.key for record in plain]
        assert list(keys.offset_deltas) == [record.offset for record in plain]
        assert keys.tombstones == [index for index, record in enumerate(plain) if record.value is None]


runs = st.lists(
    st.tuples(
        st.integers(1, 90),  # how many
        st.sampled_from(
            [
                (0,),
                (1, 2, 3),
                (63, 0),
                (-1, 5),
                (64, 65),
                (200, 130, 9000),
                (5, 70),
                (1 << 40,),
                (-(1 << 62),),
            ]
        ),
        st.sampled_from([None, b"", b"k", bytes(63), bytes(64)]),
        st.sampled_from([None, b"", bytes(3), bytes(58), bytes(63), bytes(64), bytes(8300)]),
        st.sampled_from([0, 0, 0, 1]),
    ),
    min_size=1,
    max_size=5,
)
Parts = list[tuple[int, tuple[int, ...], bytes | None, bytes | None, int]]


def shapes_of(parts: Parts, first_offset: int) -> list[Shape]:
    made: list[Shape] = []
    for count, timestamps, key, value, headers in parts:
        for n in range(count):
            timestamp = timestamps[n % len(timestamps)]
            made.append((timestamp, first_offset + len(made), key, value, headers))
    return made


@given(runs, st.sampled_from([0, 0, 0, 1, 63, 8190]))
def test_runs_of_records_of_one_shape(parts: Parts, first_offset: int) -> None:
    check(map(encoded, shapes_of(parts, first_offset)))


def test_times_of_which_nothing_fits_where_others_have_sizes() -> None:
    """Nanoseconds behind a first record at 0: nine bytes each, the first eight of which go on."""
    check(encoded((-(1 << 61) if n else 0, n, b"key", b"value", 0)) for n in range(200))


def test_every_byte_of_a_run() -> None:
    """Changed in one record, or in all alike."""
    count = RUN_MIN + 2
    for timestamp in (1, 70):
        section = b"".join(encoded((timestamp, n, b"key", b"v", 0)) for n in range(count))
        step = len(section) // count
        for position in range(len(section)):
            for value in (0, 1, 2, 3, 4, 6, 0x7F, 0x80, 0xFF):
                changed = bytearray(section)
                changed[position] = value
                check_damaged(bytes(changed), count)
        for position in range(step):
            for value in (*range(13), 0x7F, 0x80, 0x81, 0xFF):
                changed = bytearray(section)
                changed[position::step] = bytes((value,)) * count
                check_damaged(bytes(changed), count)


def test_offsets_in_a_row_take_no_memory() -> None:
    section = b"".join(encoded((0, delta, b"k", b"", 0)) for delta in range(9000))
    assert read_keys(section, 0, len(section), 9000).offset_deltas == range(9000)


@pytest.mark.parametrize("end", [-1, 1])
def test_the_section_must_end_with_its_last_record(end: int) -> None:
    section = encoded((0, 0, b"key", b"value", 0)) + bytes(5)
    whole = len(section) - 5
    assert read_keys(section, 0, whole, 1).keys == [b"key"]
    with pytest.raises(CorruptRecords):
        read_keys(section, 0, whole + end, 1)
    with pytest.raises(CorruptRecords):
        read_keys(section, 0, whole, 1 + end)


def test_records_are_not_looked_for_behind_the_section() -> None:
    section = encoded((0, 0, b"key", b"value", 0)) * 3
    assert len(find_records(section, 0, len(section), 3)) == 4
    for end, count in ((len(section) - 1, 3), (len(section), 4)):
        with pytest.raises(CorruptRecords):
            find_records(section, 0, end, count)
