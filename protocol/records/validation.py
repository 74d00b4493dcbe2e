"""What a leader checks in the records that a producer sent, with Kafka's errors and in Kafka's order.

Pure functions: the topic's settings and the time are handed in.  A refusal is raised as RefusedBatch,
which holds all that a Produce answer says about it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.limits import RECORD_ERRORS_MAX, RECORDS_SIZE_MAX
from protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    MAGIC,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    Buffer,
    RecordBatch,
    TimestampType,
)
from protocol.records.compression import Compression
from protocol.records.errors import BadCompression, CorruptRecords, RecordsTooLarge
from protocol.records.legacy import read_entry
from protocol.records.record import Record, read_records
from protocol.records.walk import walk_records

INT64_MIN = -1 << 63
INT64_MAX = (1 << 63) - 1

_COPIED_RECORD_SIZE = 2048
"""Records that are smaller on average are copied once, as bytes are walked faster than a view."""


class RecordError(NamedTuple):
    """Why one record was refused: an entry of RecordErrors in a Produce answer (KIP-467)."""

    batch_index: int
    message: str


class RefusedBatch(KafkaError):
    """A producer's records are not appended.

    ``message`` is the ErrorMessage that clients see, mostly None; ``reason`` says for the log what
    was wrong.  ``reached_log`` tells whether Kafka notices this inside the log: then its answer
    holds the log start offset, and -1 otherwise.
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str,
        *,
        message: str | None = None,
        record_errors: Iterable[RecordError] = (),
        reached_log: bool = True,
    ) -> None:
        super().__init__(code, message)
        self.reason = reason
        self.record_errors = tuple(record_errors)
        self.reached_log = reached_log


class MalformedBatch(RefusedBatch):
    """The first entry has a size or a magic that cannot be, or in older requests such a codec.

    Kafka stumbles over it before anything is appended, so it refuses every partition of the request, with
    this error and message.
    """


class ProducePolicy(NamedTuple):
    """The settings of a topic that decide which records its partitions accept, and what is stored."""

    partition_name: str
    """Topic, ``-`` and partition, for messages."""
    is_compacted: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    max_message_bytes: int = 1_048_588
    compression: Compression | None = None
    """The codec to store with (``compression.type``); None for the producer's."""
    compression_level: int | None = None
    records_size_max: int = RECORDS_SIZE_MAX

    def keeps_compressed(self, batch: RecordBatch) -> bool:
        """Whether ``batch`` is compressed and its payload stored as it is.

        Kafka then skips over keys and values instead of reading them, which shows in few places.
        """
        codec = batch.codec_number
        return codec != Compression.NONE and self.compression in (None, codec)


class CheckedBatch(NamedTuple):
    """A batch that may be appended, and what looking at its records told."""

    batch: RecordBatch
    max_timestamp: int
    """Latest timestamp of its records, at least -1; the one in the header may be wrong."""
    max_timestamp_index: int
    """The first record that has it, counted from 0."""
    min_timestamp: int
    is_in_order: bool
    """Whether offset deltas count 0, 1, 2, …; Kafka stores others as they are, if not compressed."""
    section: bytes | memoryview
    """The records, decompressed; a view of the batch's own bytes or a copy if it is not compressed."""


def read_produced(records: Buffer | None, *, zstd_allowed: bool = True) -> RecordBatch:
    """The one batch that ``records`` of a Produce request must hold.

    ``zstd_allowed`` is whether the request's version knows that codec (7 and later).  An incomplete
    second batch is ignored, as Kafka does.  Raises RefusedBatch, MalformedBatch among them.
    """
    if records is not None and len(records) >= RECORD_BATCH_OVERHEAD:
        batch = RecordBatch(records)
        if (
            batch.magic == MAGIC
            and batch.size_bytes == len(records)
            and (zstd_allowed or batch.codec_number < Compression.ZSTD)
        ):
            return batch  # one batch and nothing else: so producers send it
    try:
        entry = None if records is None else read_entry(records)
    except CorruptRecords as error:
        raise MalformedBatch(
            ErrorCode.CORRUPT_MESSAGE, str(error), message=str(error), reached_log=False
        ) from None
    if records is None or entry is None:
        raise _refuse_unread(ErrorCode.INVALID_RECORD, "there is no whole record batch")
    if entry.is_legacy:
        raise _refuse_unread(ErrorCode.INVALID_RECORD, f"records are in format {entry.magic}, not 2")
    if entry.size_bytes < RECORD_BATCH_OVERHEAD:
        raise _refuse_unread(ErrorCode.CORRUPT_MESSAGE, f"a record batch has {entry.size_bytes} bytes")
    batch = RecordBatch(records)
    if not zstd_allowed and batch.codec_number >= Compression.ZSTD:
        if batch.codec_number > Compression.ZSTD:
            raise MalformedBatch(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"compression type {batch.codec_number}", reached_log=False
            )
        raise _refuse_unread(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs version 7 of the Produce request"
        )
    try:
        second = read_entry(records, entry.size_bytes)
    except CorruptRecords as error:
        raise _refuse_unread(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if second is not None:
        raise _refuse_unread(ErrorCode.INVALID_RECORD, "there is more than one record batch")
    return batch


def _refuse_unread(code: ErrorCode, reason: str) -> RefusedBatch:
    return RefusedBatch(code, reason, reached_log=False)


def check_produced(
    batch: RecordBatch, policy: ProducePolicy, *, now_ms: int, unpacked_max: int = RECORDS_SIZE_MAX
) -> CheckedBatch:
    """Check header and records of a batch that comes from a client.

    Raises RefusedBatch.  The cost is one CRC over the batch, its decompression, and a walk over its
    records; whoever must not be held up runs it in a thread, or sets ``unpacked_max``: then
    RecordsTooLarge is raised, and nothing is decided, as soon as compressed records turn out to take more
    bytes than that.
    """
    _check_header(batch, policy)
    limit = policy.records_size_max
    try:
        section = batch.payload(min(limit, unpacked_max))
        if len(section) < batch.record_count * _COPIED_RECORD_SIZE:
            section = bytes(section)
        walked = walk_records(section, batch.record_count)
    except BadCompression as error:
        raise RefusedBatch(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
    except RecordsTooLarge as error:
        if error.limit < limit:
            raise
        raise RefusedBatch(ErrorCode.MESSAGE_TOO_LARGE, str(error), reached_log=False) from None
    except CorruptRecords as error:
        raise RefusedBatch(ErrorCode.INVALID_RECORD, str(error)) from None

    if batch.attributes & TIMESTAMP_TYPE_BIT:
        # Then the header's time is that of every record.
        highest = lowest = batch.max_timestamp
        highest_index = 0
    else:
        highest = batch.base_timestamp + walked.max_timestamp_delta
        lowest = batch.base_timestamp + walked.min_timestamp_delta
        highest_index = walked.max_timestamp_index
    if highest < NO_TIMESTAMP:
        highest = NO_TIMESTAMP
    checked = CheckedBatch(batch, highest, highest_index, lowest, walked.is_in_order, section)
    if not _is_unobjectionable(checked, walked.has_null_key, policy, now_ms):
        checked = _check_each_record(checked, policy, now_ms)
    if not walked.is_in_order and policy.keeps_compressed(batch):
        # Kafka means to rebuild such a batch, fails, and says so with this code.
        raise RefusedBatch(
            ErrorCode.UNKNOWN_SERVER_ERROR, "offset deltas of compressed records do not count 0, 1, 2, …"
        )
    return checked


def _check_header(batch: RecordBatch, policy: ProducePolicy) -> None:
    if batch.base_offset:
        raise RefusedBatch(ErrorCode.INVALID_RECORD, f"base offset is {batch.base_offset}, not 0")
    if batch.size_bytes > policy.max_message_bytes:
        raise refuse_size(batch.size_bytes, policy)
    try:
        batch.check_crc()
    except CorruptRecords as error:
        raise RefusedBatch(ErrorCode.CORRUPT_MESSAGE, str(error), reached_log=False) from None
    attributes = batch.attributes
    if attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise RefusedBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"compression type {batch.codec_number}")
    if batch.last_offset_delta < 0 or batch.record_count != batch.last_offset_delta + 1:
        raise RefusedBatch(
            ErrorCode.INVALID_RECORD,
            f"record count {batch.record_count} with last offset delta {batch.last_offset_delta}",
        )
    if attributes & CONTROL_BIT:
        raise RefusedBatch(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise RefusedBatch(
            ErrorCode.INVALID_RECORD,
            f"producer id {batch.producer_id} with sequence {batch.base_sequence}",
        )


def refuse_size(size_bytes: int, policy: ProducePolicy) -> RefusedBatch:
    """The refusal of a batch that is larger than the topic allows, as sent or as stored."""
    return RefusedBatch(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"{size_bytes} bytes are more than max.message.bytes, {policy.max_message_bytes}",
        reached_log=False,
    )


def _is_unobjectionable(
    checked: CheckedBatch, has_null_key: bool, policy: ProducePolicy, now_ms: int
) -> bool:
    """Whether the extremes show that no record can be objected to."""
    if checked.min_timestamp < INT64_MIN or checked.max_timestamp > INT64_MAX:
        return False
    if policy.is_compacted and has_null_key:
        return False
    claims_append_time = checked.batch.attributes & TIMESTAMP_TYPE_BIT
    if policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return not claims_append_time
    return (
        now_ms - policy.timestamp_before_max_ms <= checked.min_timestamp
        and checked.max_timestamp <= now_ms + policy.timestamp_after_max_ms
        and not (claims_append_time and checked.min_timestamp == NO_TIMESTAMP)
    )


def _check_each_record(checked: CheckedBatch, policy: ProducePolicy, now_ms: int) -> CheckedBatch:
    """Object to records one by one, or find that they are fine after all, as -1 is for a timestamp.

    Timestamps wrap around here as they do in Kafka: only nonsense reaches so far.
    """
    batch = checked.batch
    claims_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    records = read_records(bytes(checked.section), batch.record_count, 0, batch.base_timestamp)
    errors: list[RecordError] = []
    counts = dict.fromkeys((ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP), 0)
    highest, highest_index, lowest = NO_TIMESTAMP, 0, INT64_MAX
    for index, record in enumerate(records):
        timestamp = batch.max_timestamp if claims_append_time else wrap_int64(record.timestamp)
        objection = _object_to(record, timestamp, batch, policy, now_ms)
        if objection is not None:
            code, message = objection
            counts[code] += 1
            if len(errors) < RECORD_ERRORS_MAX:
                errors.append(RecordError(index, message))
        if timestamp > highest:
            highest, highest_index = timestamp, index
        lowest = min(lowest, timestamp)
    if errors:
        raise _refuse_records(errors, counts)
    return checked._replace(max_timestamp=highest, max_timestamp_index=highest_index, min_timestamp=lowest)


def _object_to(
    record: Record, timestamp: int, batch: RecordBatch, policy: ProducePolicy, now_ms: int
) -> tuple[ErrorCode, str] | None:
    """What is wrong with one record, in Kafka's words."""
    if policy.is_compacted and record.key is None:
        return ErrorCode.INVALID_RECORD, (
            f"Compacted topic cannot accept message without key in topic partition {policy.partition_name}"
        )
    if policy.timestamp_type is TimestampType.CREATE_TIME and timestamp != NO_TIMESTAMP:
        earliest = now_ms - policy.timestamp_before_max_ms
        latest = now_ms + policy.timestamp_after_max_ms
        if earliest <= timestamp <= latest:
            return None
        return ErrorCode.INVALID_TIMESTAMP, (
            f"Timestamp {timestamp} of message with offset {record.offset} is out of range. "
            f"The timestamp should be within [{wrap_int64(earliest)}, {wrap_int64(latest)}]"
        )
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        printed = _print_record(record, timestamp, is_partial=policy.keeps_compressed(batch))
        return ErrorCode.INVALID_TIMESTAMP, (
            f"Invalid timestamp type in message {printed}. "
            "Producer should not set timestamp type to LogAppendTime."
        )
    return None


def _refuse_records(errors: list[RecordError], counts: dict[ErrorCode, int]) -> RefusedBatch:
    """The refusal that names records; one wrong timestamp among them decides the code."""
    if counts[ErrorCode.INVALID_TIMESTAMP]:
        code = ErrorCode.INVALID_TIMESTAMP
        summary = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        examples = ", ".join(
            f"RecordError(batchIndex={error.batch_index}, message='{error.message}')" for error in errors[:3]
        )
        summary = (
            f"One or more records have been rejected due to {counts[code]} record errors in total, "
            f"and only showing the first three errors at most: [{examples}]"
        )
    return RefusedBatch(code, summary, message=summary, record_errors=errors)


def _print_record(record: Record, timestamp: int, *, is_partial: bool) -> str:
    """A record as Kafka prints it: of another class, and with -1 for null, if it only skips over it."""
    name, null_size = ("PartialDefaultRecord", -1) if is_partial else ("DefaultRecord", 0)
    key_size = null_size if record.key is None else len(record.key)
    value_size = null_size if record.value is None else len(record.value)
    return (
        f"{name}(offset={record.offset}, timestamp={timestamp}, "
        f"key={key_size} bytes, value={value_size} bytes)"
    )


def wrap_int64(value: int) -> int:
    """``value`` as it comes out of 64-bit arithmetic."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
