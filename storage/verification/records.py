"""Checks one batch from the inside: whether its records are what its header says."""

from collections.abc import Iterator

from protocol.records.batch import NO_TIMESTAMP, RecordBatch, TimestampType
from protocol.records.control import ControlType, read_control_type, read_end_transaction_marker
from protocol.records.errors import CorruptRecords, RecordsTooLarge
from protocol.records.walk import Walked, walk_records
from storage.wording import counted

Fault = tuple[bool, str]
"""Whether it is damage, and what it is."""


def find_faults(batch: RecordBatch) -> Iterator[Fault]:
    """What is wrong with a whole batch that has the right CRC."""
    if batch.last_offset_delta < 0:
        yield True, f"its last offset delta is {batch.last_offset_delta}"
        return
    if not 0 <= batch.record_count <= batch.last_offset_delta + 1:
        yield (
            True,
            (
                f"it has {counted(batch.record_count, 'record')} for "
                f"{counted(batch.last_offset_delta + 1, 'offset')}"
            ),
        )
        return
    try:
        walked = walk_records(bytes(batch.payload()), batch.record_count)
        if batch.record_count and not walked.is_in_order:
            yield from _find_disorder(batch)
        yield from _find_wrong_times(batch, walked)
        if batch.is_control:
            yield from _find_wrong_notes(batch)
    except RecordsTooLarge as error:
        yield False, f"{error}, which is more than is looked at"
    except CorruptRecords as error:
        yield True, str(error)


def _find_disorder(batch: RecordBatch) -> Iterator[Fault]:
    """Compaction leaves gaps between offsets; and Kafka lets a producer's records be in any order."""
    offsets = [record.offset for record in batch.records()]
    if min(offsets) < batch.base_offset or max(offsets) > batch.last_offset:
        yield True, f"it has records at offsets {min(offsets)} to {max(offsets)}, outside of its own"
    elif len(set(offsets)) != len(offsets):
        yield True, "two of its records have the same offset"
    elif offsets != sorted(offsets):
        yield False, "its records are not in the order of their offsets, as their producer sent them"


def _find_wrong_times(batch: RecordBatch, walked: Walked) -> Iterator[Fault]:
    if not batch.record_count or batch.timestamp_type is not TimestampType.CREATE_TIME:
        return
    # Kafka takes no time before 1970 for the latest of all.
    latest = max(batch.base_timestamp + walked.max_timestamp_delta, NO_TIMESTAMP)
    if latest != batch.max_timestamp:
        # A producer's lie, which Kafka stores: records are not found by their time.
        yield False, f"its latest timestamp is {batch.max_timestamp} by its header, {latest} by its records"


def _find_wrong_notes(batch: RecordBatch) -> Iterator[Fault]:
    for record in batch.records():
        kind = read_control_type(record)
        if kind is None:
            yield False, f"the control record at offset {record.offset} is of an unknown type"
        elif kind in (ControlType.ABORT, ControlType.COMMIT):
            read_end_transaction_marker(record)
            if batch.producer_id < 0 or not batch.is_transactional:
                yield True, f"the marker at offset {record.offset} is no transaction's"
