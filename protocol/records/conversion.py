"""From a batch as a producer sent it to the batch that is stored.

In most cases these are the same bytes, patched in place.  Only ``compression.type`` makes another
batch necessary.
"""

from protocol.error_codes import ErrorCode
from protocol.records.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    RecordBatch,
    TimestampType,
)
from protocol.records.builder import append_record, assemble_batch
from protocol.records.record import read_records
from protocol.records.validation import CheckedBatch, ProducePolicy, RefusedBatch, refuse_size, wrap_int64


def convert_produced(checked: CheckedBatch, policy: ProducePolicy, *, now_ms: int) -> RecordBatch:
    """The batch to append: the checked one, changed in its own buffer, or a new one.

    ``now_ms`` becomes the batch's time if the topic's timestamp type is LOG_APPEND_TIME; otherwise
    the header gets the latest timestamp of its records.  Recompression can take long: see
    ``needs_new_batch``.  Raises RefusedBatch if the new batch is larger than the topic allows.
    """
    batch = checked.batch
    is_append_time = policy.timestamp_type is TimestampType.LOG_APPEND_TIME
    max_timestamp = now_ms if is_append_time else checked.max_timestamp
    if not needs_new_batch(batch, policy):
        batch.set_max_timestamp(policy.timestamp_type, max_timestamp)
        return batch
    assert policy.compression is not None
    section, base_timestamp = _rebased_section(checked)
    converted = assemble_batch(
        section,
        base_offset=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        attributes=policy.compression
        | (TIMESTAMP_TYPE_BIT if is_append_time else 0)
        | (batch.attributes & TRANSACTIONAL_BIT),
        level=policy.compression_level,
        last_offset_delta=batch.record_count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.record_count,
    )
    if len(converted) > policy.max_message_bytes:
        raise refuse_size(len(converted), policy)
    return RecordBatch(converted)


def needs_new_batch(batch: RecordBatch, policy: ProducePolicy) -> bool:
    """Whether ``convert_produced`` compresses the records anew."""
    compression = policy.compression
    return compression is not None and compression != batch.codec_number


def _rebased_section(checked: CheckedBatch) -> tuple[bytes | bytearray | memoryview, int]:
    """The records with consecutive offset deltas, and the base timestamp that is the first one's.

    Most producers send them so; then these are the bytes that the batch has.
    """
    batch = checked.batch
    if checked.min_timestamp < NO_TIMESTAMP:
        # Kafka stores such times, but cannot write them into a batch of its own.
        raise RefusedBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"timestamp {checked.min_timestamp} is negative")
    append_timestamp = None
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        append_timestamp = batch.max_timestamp
    records = read_records(
        bytes(checked.section), batch.record_count, 0, batch.base_timestamp, append_timestamp
    )
    base_timestamp: int | None = None
    section = bytearray()
    for index, record in enumerate(records):
        timestamp = wrap_int64(record.timestamp)
        if base_timestamp is None:
            base_timestamp = timestamp
            if base_timestamp == batch.base_timestamp and append_timestamp is None and checked.is_in_order:
                return checked.section, base_timestamp
        append_record(section, index, timestamp - base_timestamp, record.key, record.value, record.headers)
    assert base_timestamp is not None
    return section, base_timestamp
