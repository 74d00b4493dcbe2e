"""Record batches made here: group and transaction records, metadata, markers, and rebuilt batches."""

from collections.abc import Iterable, Sequence
from struct import Struct

from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    TimestampType,
)
from protocol.records.checksum import crc32c
from protocol.records.compression import Compression, compress
from protocol.records.record import Header
from protocol.records.varint import append_varint

NewRecord = tuple[int, bytes | None, bytes | None, Sequence[Header]]
"""Timestamp in ms, key, value and headers of a record whose offset is its place in the batch."""

_BEFORE_CRC = Struct(">qiib")
_FROM_CRC = Struct(">IHiqqqhii")
_CRC = Struct(">I")


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_timestamp: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon: int | None = None,
) -> bytearray:
    """One whole batch holding ``records``, at least one, at consecutive offsets from ``base_offset``.

    ``append_timestamp`` is the batch's max timestamp when ``timestamp_type`` is LOG_APPEND_TIME;
    without it that is the latest of the records' own.
    """
    section = bytearray()
    base_timestamp = delete_horizon
    max_timestamp: int | None = None
    record_count = 0
    for timestamp, key, value, headers in records:
        if base_timestamp is None:
            base_timestamp = timestamp
        if max_timestamp is None or timestamp > max_timestamp:
            max_timestamp = timestamp
        append_record(section, record_count, timestamp - base_timestamp, key, value, headers)
        record_count += 1
    assert base_timestamp is not None, "a batch has at least one record"
    assert max_timestamp is not None
    if timestamp_type is TimestampType.LOG_APPEND_TIME and append_timestamp is not None:
        max_timestamp = append_timestamp
    return assemble_batch(
        section,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=compression
        | (TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
        | (DELETE_HORIZON_BIT if delete_horizon is not None else 0),
        level=level,
        last_offset_delta=record_count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=record_count,
    )


def assemble_batch(
    section: bytes | bytearray | memoryview,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    level: int | None,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytearray:
    """A batch around a records section that is encoded, but not yet compressed.

    The codec is the one that ``attributes`` names.  Compaction and recompression, which keep
    offsets with gaps, start here.
    """
    payload = compress(Compression(attributes & 0x07), section, level)
    batch = bytearray(RECORD_BATCH_OVERHEAD)
    batch += payload
    _BEFORE_CRC.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, partition_leader_epoch, MAGIC)
    _FROM_CRC.pack_into(
        batch,
        CRC_POSITION,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    with memoryview(batch) as view:
        _CRC.pack_into(batch, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))
    return batch


def append_record(
    section: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
) -> None:
    """Append one encoded record to an uncompressed records section."""
    record = bytearray(1)  # attributes: a record has none of its own
    append_varint(record, timestamp_delta)
    append_varint(record, offset_delta)
    _append_bytes(record, key)
    _append_bytes(record, value)
    append_varint(record, len(headers))
    for name, content in headers:
        _append_bytes(record, name)
        _append_bytes(record, content)
    append_varint(section, len(record))
    section += record


def _append_bytes(record: bytearray, data: bytes | None) -> None:
    if data is None:
        record.append(1)  # -1
        return
    append_varint(record, len(data))
    record += data
