"""The walk says exactly what a plain reader says, whatever way it takes."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records import walk
from protocol.records.builder import append_record
from protocol.records.errors import CorruptRecords
from protocol.records.record import Record, read_records
from protocol.records.runs import RUN_MIN
from protocol.records.varint import append_varint, read_varint, read_varlong
from protocol.records.walk import Walked, walk_records

Shape = tuple[int, int, bytes | None, bytes | None, int]
"""Timestamp delta, offset delta, key, value, number of headers."""


def section_of(shapes: Iterable[Shape]) -> bytes:
    section = bytearray()
    for timestamp, offset, key, value, headers in shapes:
        append_record(section, offset, timestamp, key, value, [(b"name", None)] * headers)
    return bytes(section)


def alike(
    count: int, *, first: int = 0, timestamps: Iterable[int] = (), size: int = 20, key: bytes | None = None
) -> list[Shape]:
    times = list(timestamps) or [0] * count
    return [(times[n % len(times)], first + n, key, bytes(size), 0) for n in range(count)]


def plain_walk(section: bytes, record_count: int) -> Walked:
    """What walk_records must give, taken from the reader of whole records."""
    records = list(read_records(section, record_count, 0, 0))
    deltas = [record.timestamp for record in records]
    return Walked(
        max(deltas),
        deltas.index(max(deltas)),
        min(deltas),
        any(record.key is None for record in records),
        [record.offset for record in records] == list(range(record_count)),
    )


def check(section: bytes, record_count: int) -> Walked | None:
    """Both walks over bytes and a view give the same, or all refuse."""
    try:
        expected = plain_walk(section, record_count)
    except CorruptRecords:
        for data in (section, memoryview(section)):
            with pytest.raises(CorruptRecords):
                walk_records(data, record_count)
        return None
    assert walk_records(section, record_count) == expected
    assert walk_records(memoryview(section), record_count) == expected
    return expected


small = st.integers(-70, 200)
shapes = st.tuples(
    small | st.integers(-(2**62), 2**62),
    small | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70),
    st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=130),
    st.integers(0, 2),
)


@given(st.lists(shapes, min_size=1, max_size=30))
def test_records_of_many_shapes(given_shapes: list[Shape]) -> None:
    assert check(section_of(given_shapes), len(given_shapes)) is not None


runs = st.lists(
    st.tuples(
        st.integers(1, 90),  # how many
        st.sampled_from([(0,), (1, 2, 3), (63, 0), (-1, 5), (64, 65), (200, 130, 9000), (5, 70), (1 << 40,)]),
        st.sampled_from([0, 3, 20, 58, 63, 64, 100, 8300]),
        st.sampled_from([None, b"", b"k", bytes(64)]),
        st.sampled_from([0, 0, 0, 1]),
    ),
    min_size=1,
    max_size=5,
)


@given(runs, st.sampled_from([0, 0, 0, 1, 63, 8190]))
def test_runs_of_records_of_one_shape(
    parts: list[tuple[int, tuple[int, ...], int, bytes | None, int]], first_offset: int
) -> None:
    made: list[Shape] = []
    for count, timestamps, size, key, headers in parts:
        for n in range(count):
            timestamp = timestamps[n % len(timestamps)]
            made.append((timestamp, first_offset + len(made), key, bytes(size), headers))
    walked = check(section_of(made), len(made))
    assert walked is not None
    assert walked.is_in_order == (first_offset == 0)


@given(runs, st.data())
def test_a_changed_byte_in_a_run_is_seen(
    parts: list[tuple[int, tuple[int, ...], int, bytes | None, int]], data: st.DataObject
) -> None:
    made: list[Shape] = []
    for count, timestamps, _, key, headers in parts:
        made += [(timestamps[n % len(timestamps)], 0, key, b"v" * 5, headers) for n in range(count)]
    made = [(shape[0], n, *shape[2:]) for n, shape in enumerate(made)]
    section = bytearray(section_of(made))
    for _ in range(data.draw(st.integers(1, 3))):
        section[data.draw(st.integers(0, len(section) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(section), len(made))


def test_every_single_byte_of_a_run() -> None:
    section = section_of(alike(RUN_MIN + 2, timestamps=(1, 2), size=4, key=b"k"))
    for position in range(len(section)):
        for value in (0, 1, 2, 5, 0x7F, 0x80, 0xFF):
            changed = bytearray(section)
            changed[position] = value
            check(bytes(changed), RUN_MIN + 2)


def test_every_byte_changed_in_all_records_of_a_run() -> None:
    """Records that are wrong in the same way are as wrong as one."""
    for key in (b"k", None):
        for timestamps in ((1,), (70,)):
            section = section_of(alike(RUN_MIN + 2, timestamps=timestamps, size=4, key=key))
            step = len(section) // (RUN_MIN + 2)
            for position in range(step):
                for value in (0, 1, 2, 3, 4, 6, 8, 10, 0x7F, 0x80, 0x81, 0xFF):
                    changed = bytearray(section)
                    changed[position::step] = bytes((value,)) * (RUN_MIN + 2)
                    check(bytes(changed), RUN_MIN + 2)


@pytest.mark.parametrize("count", [RUN_MIN, 200, 8300])
@pytest.mark.parametrize("timestamps", [(5, 0, 63), (64, 8191)])
@pytest.mark.parametrize("key", [None, b"", bytes(70)], ids=["null", "empty", "long"])
@pytest.mark.parametrize("size", [0, 100, 9000])
def test_records_of_one_shape_are_walked_as_columns(
    count: int, timestamps: tuple[int, ...], key: bytes | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result would be the same without; the time would not."""
    if count * size > 1 << 20:
        count = 200
    section = section_of(alike(count, timestamps=timestamps, size=size, key=key))
    expected = plain_walk(section, count)

    def refuse(section: bytes, position: int, first: int, stop: int, walked: Walked) -> tuple[int, Walked]:
        # What is left where the offsets get wider may be too little for another run.
        assert stop - first < RUN_MIN
        return walk_one_by_one(section, position, first, stop, walked)

    walk_one_by_one = walk._walk_one_by_one
    monkeypatch.setattr(walk, "_walk_one_by_one", refuse)
    assert walk_records(section, count) == expected


def test_every_truncation_and_a_byte_too_many() -> None:
    section = section_of(alike(RUN_MIN + 4, size=9))
    for size in range(len(section)):
        with pytest.raises(CorruptRecords):
            walk_records(section[:size], RUN_MIN + 4)
    with pytest.raises(CorruptRecords):
        walk_records(section + b"\0", RUN_MIN + 4)


@pytest.mark.parametrize("count", [RUN_MIN - 1, RUN_MIN, 64, 65, 8191, 8192, 8193, 8300, 17_000])
@pytest.mark.parametrize("size", [0, 100])
def test_offsets_of_every_width(count: int, size: int) -> None:
    walked = check(section_of(alike(count, size=size, timestamps=range(10))), count)
    assert walked == Walked(min(9, count - 1), min(9, count - 1), 0, True, True)


def test_the_first_of_equal_timestamps_counts() -> None:
    times = [3, 7, 7, 2] * 10 + [150, 9] * 20 + [150] * 20
    walked = check(section_of(alike(len(times), timestamps=times)), len(times))
    assert walked is not None
    assert (walked.max_timestamp_delta, walked.max_timestamp_index) == (150, 40)
    assert walked.min_timestamp_delta == 2


def test_timestamps_that_go_back() -> None:
    times = list(range(40, -64, -1))
    walked = check(section_of(alike(len(times), timestamps=times)), len(times))
    assert walked is not None
    assert (walked.max_timestamp_delta, walked.min_timestamp_delta) == (40, -63)


@pytest.mark.parametrize("place", [0, 5, 40, 79])
def test_one_null_key_among_many(place: int) -> None:
    made = alike(80, key=b"k")
    made[place] = (0, place, None, bytes(20), 0)
    walked = check(section_of(made), 80)
    assert walked is not None
    assert walked.has_null_key


@pytest.mark.parametrize("place", [0, 5, 40, 79])
@pytest.mark.parametrize("offset", [-1, 80, 1 << 20])
def test_one_offset_out_of_order(place: int, offset: int) -> None:
    made = alike(80)
    made[place] = (0, offset, *made[place][2:])
    walked = check(section_of(made), 80)
    assert walked is not None
    assert not walked.is_in_order


def test_random_batches_of_mixed_sizes(chance: random.Random) -> None:
    for _ in range(20):
        made: list[Shape] = []
        while len(made) < 600:
            size = chance.choice([0, 10, 100, chance.randrange(200)])
            for _ in range(chance.choice([1, 2, 30, 100])):
                made.append((len(made) // 3, len(made), None, chance.randbytes(size), 0))
        assert check(section_of(made), len(made)) is not None


@pytest.mark.parametrize("number", [63, 64, 127, 128, 8191, 8192, 8193, 8256, 1 << 20])
def test_integers_of_every_width(number: int) -> None:
    """As varints their bytes pass through 0x7e, 0x80 and 0xff in each place."""
    for shape in (
        (number, 0, b"k", b"v", 0),
        (-number, 0, b"k", b"v", 0),
        (-number - 1, 0, b"k", b"v", 0),
        (0, number, b"k", b"v", 0),
        (0, -number - 1, b"k", b"v", 0),
        (0, 0, bytes(number), b"v", 0),
        (0, 0, b"k", bytes(number), 0),
        *((0, 0, None, bytes(max(0, number - overhead)), 0) for overhead in range(5, 10)),
    ):
        assert check(section_of([shape]), 1) is not None
        assert check(section_of([shape, (0, 1, None, None, 0)]), 2) is not None


@pytest.mark.parametrize("size", [-(2**31), -2, -1, 2**31 - 1])
@pytest.mark.parametrize("part", ["record", "key", "value", "headers", "header key", "header value"])
def test_sizes_that_cannot_be(part: str, size: int) -> None:
    """Kafka takes any negative size of a key, a value or a header's value for null."""
    fields = {"record": 9, "key": 1, "value": 1, "headers": 1, "header key": 1, "header value": 1}
    fields[part] = size
    section = bytearray()
    body = bytearray(b"\0\0\0")
    for name in ("key", "value"):
        append_varint(body, fields[name])
        body += b"k" * (fields[name] > 0)
    append_varint(body, fields["headers"])
    for name in ("header key", "header value"):
        append_varint(body, fields[name])
        body += b"h" * (fields[name] > 0)
    append_varint(section, size if part == "record" else len(body))
    walked = check(bytes(section + body), 1)
    is_null = part in ("key", "value", "header value") and size < 0
    assert (walked is not None) == is_null


def test_varints_longer_than_needed_are_read_like_others() -> None:
    timestamp, offset, key, value, header_count = b"\x80\0", b"\x80\x80\0", b"\x82\0k", b"\x80\0", b"\x80\0"
    body = b"\0" + timestamp + offset + key + value + header_count
    record = bytes((len(body) << 1 | 0x80, 0)) + body
    assert check(record, 1) == Walked(0, 0, 0, False, True)
    assert check(record * 40, 40) == Walked(0, 0, 0, False, False)


def test_reads_beyond_the_end_are_named_as_such() -> None:
    with pytest.raises(CorruptRecords, match="past the end"):
        walk_records(b"\x10\0\0\0", 1)
    with pytest.raises(CorruptRecords, match="3 bytes lie between"):
        walk_records(section_of(alike(2)) + bytes(3), 2)


def test_the_plain_reader_agrees_with_a_naive_one() -> None:
    """The walk is measured by read_records; this measures read_records by the simplest reader."""
    section = section_of([(n * 37 - 9, n, b"k" * n, b"v" * (n * 11), n % 3) for n in range(40)])
    records: list[Record] = []
    position = 0
    while position < len(section):
        size, body = read_varint(section, position)
        timestamp, position = read_varlong(section, body + 1)
        offset, position = read_varint(section, position)
        parts: list[bytes] = []
        for _ in range(2):
            length, position = read_varint(section, position)
            parts.append(section[position : position + length])
            position += length
        count, _ = read_varint(section, position)
        headers = [(b"name", None)] * count
        records.append(Record(offset, timestamp, parts[0], parts[1], headers))
        position = body + size
    assert [record._replace(headers=list(record.headers)) for record in read_records(section, 40, 0, 0)] == (
        records
    )
