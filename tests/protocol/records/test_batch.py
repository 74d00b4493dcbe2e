"""Record batches: what real clients and brokers wrote, patching, and every way to be cut off or wrong."""

import struct

import pytest

from protocol.records.batch import (
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TimestampType,
    read_batch,
    read_batches,
)
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.errors import BadCompression, CorruptRecords, RecordsTooLarge, UnsupportedMagic
from protocol.records.record import Header, Record
from tests.protocol.records.golden import golden_bytes

CLIENT_BATCHES = golden_bytes("client_batches.txt")
CODECS = list(Compression)
THEN = 1_700_000_000_000

SENT: list[tuple[bytes | None, bytes | None, list[Header]]] = [
    (b"key-0", b"value-0 " * 4, []),
    (None, b"value-1 " * 4, [(b"first", b"1"), (b"second", None), (b"first", b"")]),
    (b"", None, []),
    (b"key-3", b"", [("\u00fc".encode(), b"\xff")]),
]
SENT_BY_CONSOLE: list[tuple[bytes | None, bytes | None, list[Header]]] = [
    (b"key-0", b"value-0 value-0", [(b"first", b"1"), (b"second", b"2")]),
    (None, b"value-1", [(b"first", b"1"), (b"second", None)]),
    (b"", b"value-2", [(b"a", b"")]),
    (b"key-3", None, [(b"a", b"1")]),
]


def contents(records: list[Record]) -> list[tuple[bytes | None, bytes | None, list[Header]]]:
    return [(record.key, record.value, list(record.headers)) for record in records]


def sample(**options: object) -> bytearray:
    records = [(THEN + n, b"key-%d" % n, b"value" * n, [(b"h", b"x")] * (n % 2)) for n in range(5)]
    return build_batch(records, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CLIENT_BATCHES)
def test_batches_of_real_clients_are_read(name: str) -> None:
    client, _, codec = name.partition(" ")
    batches = list(read_batches(CLIENT_BATCHES[name]))
    for batch in batches:
        batch.check_crc()
    if codec == "transactions":
        return  # see test_control
    (batch,) = batches
    assert batch.size_bytes == len(CLIENT_BATCHES[name])
    assert batch.compression.name == ("NONE" if codec == "idempotent" else codec.upper())
    records = list(batch.records())
    assert [record.offset for record in records] == [0, 1, 2, 3]
    assert max(record.timestamp for record in records) == batch.max_timestamp
    if client == "java":
        assert contents(records) == SENT_BY_CONSOLE
    elif client == "kafka-python":
        without_null = [
            (key, value, [header for header in headers if header[1] is not None])
            for key, value, headers in SENT
        ]
        assert contents(records) == without_null
    else:
        assert contents(records) == SENT
        assert all(THEN <= record.timestamp < THEN + 10 for record in records)


@pytest.mark.parametrize("name", [name for name in CLIENT_BATCHES if not name.endswith("transactions")])
def test_building_what_a_client_sent_gives_its_bytes(name: str) -> None:
    batch = read_batch(CLIENT_BATCHES[name])
    built = read_batch(
        build_batch(
            [(record.timestamp, record.key, record.value, record.headers) for record in batch.records()],
            partition_leader_epoch=batch.partition_leader_epoch,
            compression=batch.compression,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
    )
    assert bytes(built.payload()) == bytes(batch.payload())
    if batch.compression is Compression.NONE:
        assert built.data == batch.data
    else:
        # Compressors differ: all but length, CRC and payload must be the same.
        for start, end in ((0, 8), (12, 17), (21, RECORD_BATCH_OVERHEAD)):
            assert built.data[start:end] == batch.data[start:end]


def test_header_fields() -> None:
    batch = read_batch(
        sample(
            base_offset=1 << 40,
            partition_leader_epoch=7,
            compression=Compression.LZ4,
            producer_id=1 << 33,
            producer_epoch=3,
            base_sequence=2**31 - 3,
            is_transactional=True,
        )
    )
    assert batch.base_offset == 1 << 40
    assert batch.last_offset == (1 << 40) + 4
    assert batch.next_offset == (1 << 40) + 5
    assert batch.partition_leader_epoch == 7
    assert batch.compression is Compression.LZ4
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert (batch.base_timestamp, batch.max_timestamp) == (THEN, THEN + 4)
    assert (batch.producer_id, batch.producer_epoch) == (1 << 33, 3)
    assert batch.last_sequence == 1, "sequences wrap behind 2**31 - 1"
    assert batch.is_transactional
    assert not batch.is_control
    assert batch.delete_horizon is None
    assert batch.record_count == 5
    assert "offsets 1099511627776..1099511627780" in repr(batch)


def test_a_batch_without_sequence_has_no_last_sequence() -> None:
    batch = read_batch(sample())
    assert not batch.has_sequence
    assert batch.last_sequence == -1


def test_a_delete_horizon_stands_in_the_base_timestamp() -> None:
    batch = read_batch(sample(delete_horizon=THEN - 500))
    assert batch.has_delete_horizon
    assert batch.delete_horizon == batch.base_timestamp == THEN - 500
    assert [record.timestamp for record in batch.records()] == [THEN + n for n in range(5)]


def test_append_time_is_the_time_of_every_record() -> None:
    batch = read_batch(sample(timestamp_type=TimestampType.LOG_APPEND_TIME, append_timestamp=THEN + 99))
    assert {record.timestamp for record in batch.records()} == {THEN + 99}


def test_batches_are_read_one_after_the_other_up_to_an_incomplete_one() -> None:
    first, second = sample(), sample(base_offset=5, compression=Compression.ZSTD)
    both = bytes(13) + first + second
    assert [batch.base_offset for batch in read_batches(both, 13)] == [0, 5]
    for missing in range(1, len(second) + 1):
        assert [batch.base_offset for batch in read_batches(both[:-missing], 13)] == [0]
    assert [batch.base_offset for batch in read_batches(both, 13, 13 + len(first))] == [0]
    assert list(read_batches(b"")) == []


@pytest.mark.parametrize("compression", CODECS)
def test_every_truncation_is_refused(compression: Compression) -> None:
    whole = bytes(sample(compression=compression))
    for size in range(len(whole)):
        with pytest.raises(CorruptRecords):
            read_batch(whole[:size])


@pytest.mark.parametrize("compression", CODECS)
@pytest.mark.parametrize("seal", [False, True], ids=["as flipped", "with a CRC that fits"])
def test_a_flipped_byte_is_refused_or_read_but_never_anything_else(
    compression: Compression, seal: bool
) -> None:
    whole = bytes(sample(compression=compression))
    for position in range(len(whole)):
        for mask in (0x01, 0x40, 0x80, 0xFF):
            flipped = bytearray(whole)
            flipped[position] ^= mask
            try:
                batch = read_batch(flipped)
            except CorruptRecords:
                continue
            if seal:
                batch.update_crc()
            elif position >= 17:
                with pytest.raises(CorruptRecords):
                    batch.check_crc()
            batch.check_crc() if seal else None
            try:
                for record in batch.records():
                    assert isinstance(record, Record)
            except CorruptRecords:
                pass


@pytest.mark.parametrize("length", [-(2**31), -2, -1, 0, 48, 2**31 - 13, 2**31 - 1])
def test_lengths_that_cannot_be(length: int) -> None:
    batch = sample()
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptRecords):
        read_batch(batch)


@pytest.mark.parametrize("magic", [-128, -1, 0, 1, 3, 127])
def test_other_formats_are_named(magic: int) -> None:
    batch = sample()
    struct.pack_into(">b", batch, 16, magic)
    with pytest.raises(UnsupportedMagic) as caught:
        read_batch(batch)
    assert caught.value.magic == magic


@pytest.mark.parametrize("count", [-1, 0, 4, 6, 2**31 - 1])
def test_a_record_count_that_is_not_the_payload_s(count: int) -> None:
    batch = sample()
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(CorruptRecords):
        list(read_batch(batch).records())


def test_an_emptied_batch_has_no_records() -> None:
    batch = sample()[:RECORD_BATCH_OVERHEAD]
    struct.pack_into(">i", batch, 8, RECORD_BATCH_OVERHEAD - LOG_OVERHEAD)
    struct.pack_into(">i", batch, 57, 0)
    assert list(read_batch(batch).records()) == []


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs(codec: int) -> None:
    batch = sample()
    struct.pack_into(">H", batch, 21, codec)
    opened = read_batch(batch)
    assert opened.codec_number == codec
    with pytest.raises(CorruptRecords):
        opened.compression  # noqa: B018
    with pytest.raises(CorruptRecords):
        opened.records()


def test_a_payload_that_is_not_what_the_codec_makes() -> None:
    batch = sample()
    struct.pack_into(">H", batch, 21, Compression.GZIP)
    with pytest.raises(BadCompression):
        read_batch(batch).payload()


def test_a_payload_beyond_the_limit() -> None:
    batch = read_batch(build_batch([(THEN, None, bytes(100_000), ())], compression=Compression.ZSTD))
    assert batch.size_bytes < 1000
    assert len(batch.payload(limit=100_020)) > 100_000
    with pytest.raises(RecordsTooLarge):
        batch.payload(limit=100_000)


def test_offset_and_leader_epoch_are_patched_outside_the_crc() -> None:
    buffer = memoryview(bytearray(b"before" + sample()))
    batch = read_batch(buffer, 6)
    before = bytes(batch.data)
    batch.set_place(1 << 50, 12)
    reread = read_batch(buffer, 6)
    reread.check_crc()
    assert reread.crc == struct.unpack_from(">I", before, 17)[0]
    for seen in (batch, reread):
        assert (seen.base_offset, seen.partition_leader_epoch, seen.size_bytes) == (1 << 50, 12, len(before))
    batch.set_base_offset(3)
    batch.set_partition_leader_epoch(4)
    reread = read_batch(buffer, 6)
    assert (reread.base_offset, reread.partition_leader_epoch) == (3, 4)
    assert bytes(reread.data[16:]) == before[16:]


def test_timestamps_are_patched_with_a_new_crc() -> None:
    buffer = sample(is_transactional=True)
    batch = read_batch(buffer)
    old_crc = batch.crc
    batch.set_max_timestamp(TimestampType.LOG_APPEND_TIME, THEN + 1000)
    reread = read_batch(buffer)
    reread.check_crc()
    assert reread.crc == batch.crc != old_crc
    assert reread.timestamp_type is batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert reread.max_timestamp == batch.max_timestamp == THEN + 1000
    assert reread.is_transactional
    batch.set_max_timestamp(TimestampType.CREATE_TIME, THEN + 4)
    assert read_batch(buffer).crc == old_crc


def test_nothing_is_written_when_nothing_changes() -> None:
    batch = read_batch(bytes(sample()))  # bytes: a write would raise
    batch.set_max_timestamp(TimestampType.CREATE_TIME, THEN + 4)
