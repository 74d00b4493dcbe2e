"""Varints: Kafka's values, ranges, and what is not one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import decode_varint, encode_varint

from protocol.records.errors import CorruptRecords
from protocol.records.varint import append_varint, read_varint, read_varlong


def varint(value: int) -> bytes:
    data = bytearray()
    append_varint(data, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_known_values(value: int, data: str) -> None:
    assert varint(value).hex() == data
    assert read_varint(bytes.fromhex(data), 0) == (value, len(data) // 2)
    assert read_varlong(bytes.fromhex(data), 0) == (value, len(data) // 2)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_the_longest_take_ten_bytes(value: int) -> None:
    assert len(varint(value)) == 10
    assert read_varlong(varint(value), 0) == (value, 10)


@given(st.integers(-(2**63), 2**63 - 1))
def test_all_int64_as_another_library_has_them(value: int) -> None:
    theirs = bytearray()
    encode_varint(value, theirs.append)
    assert varint(value) == bytes(theirs)
    assert read_varlong(b"\xff" + varint(value), 1) == (value, len(theirs) + 1)
    assert decode_varint(varint(value), 0) == (value, len(theirs))


@given(st.integers(-(2**31), 2**31 - 1))
def test_all_int32(value: int) -> None:
    assert read_varint(varint(value), 0) == (value, len(varint(value)))


def test_bits_above_the_type_are_dropped() -> None:
    assert read_varint(b"\x92\x80\x80\x80\x70", 0) == (9, 5)
    assert read_varlong(b"\x80" * 9 + b"\x7e", 0) == (0, 10)


def test_too_long() -> None:
    with pytest.raises(CorruptRecords):
        read_varint(b"\x80\x80\x80\x80\x80\x00", 0)
    with pytest.raises(CorruptRecords):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_cut_off(data: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(data, 0)
    with pytest.raises(IndexError):
        read_varlong(data, 0)
