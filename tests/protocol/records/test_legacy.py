"""Entries of formats 0 and 1 are recognised, and those of no format named as Kafka names them."""

import struct

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from protocol.records.builder import build_batch
from protocol.records.errors import CorruptRecords
from protocol.records.legacy import Entry, read_entry


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_message_sets(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    builder.append(0, 1_700_000_000_000, b"key", b"value", ())
    message_set = bytes(builder.build())
    entry = read_entry(b"xyz" + message_set, 3)
    assert entry == Entry(len(message_set), magic)
    assert entry is not None
    assert entry.is_legacy


def test_a_batch() -> None:
    batch = build_batch([(0, None, None, ())])
    entry = read_entry(batch)
    assert entry == Entry(len(batch), 2)
    assert entry is not None
    assert not entry.is_legacy


def test_incomplete() -> None:
    batch = build_batch([(0, None, None, ())])
    for size in range(len(batch)):
        assert read_entry(batch[:size]) is None
    assert read_entry(batch, len(batch)) is None


@pytest.mark.parametrize("size", [-(2**31), -2, -1, 0, 13])
def test_sizes_that_no_format_has(size: int) -> None:
    with pytest.raises(CorruptRecords) as caught:
        read_entry(struct.pack(">qi", 0, size) + bytes(40))
    assert str(caught.value) == f"Record size {size} is less than the minimum record overhead (14)"


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_a_magic_that_no_format_has(magic: int) -> None:
    batch = build_batch([(0, None, None, ())])
    struct.pack_into(">b", batch, 16, magic)
    with pytest.raises(CorruptRecords) as caught:
        read_entry(batch)
    assert str(caught.value) == f"Invalid magic found in record: {magic}"
