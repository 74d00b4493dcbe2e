"""Producer state from what lies in a log: the newest snapshot, and the batches after it."""

from bisect import bisect_right

from protocol.records.batch import RecordBatch
from protocol.records.control import EndTransactionMarker, read_end_transaction_marker
from storage.producer_snapshot import ProducerSnapshots
from storage.producer_state import EndedTransaction, ProducerState
from storage.segment import Segment
from storage.stored_batches import read_stored_batches


def load_producers(
    producers: ProducerState,
    snapshots: ProducerSnapshots,
    segments: list[Segment],
    log_start: int,
    log_end: int,
    now_ms: int,
) -> None:
    """Make ``producers`` the state of everything below ``log_end``, where ``segments`` end.

    A snapshot of nothing but deleted records opens no transaction, as those records would not; it may also
    be one of a log that was emptied, and that a power cut has brought back.
    """
    snapshot = snapshots.load_newest(log_end)
    if snapshot is None:
        producers.clear(log_start)
    else:
        entries, end_offset = snapshot
        producers.load(entries, end_offset, now_ms, may_open=end_offset > log_start)
    if producers.end_offset < log_end:
        bases = [segment.base_offset for segment in segments]
        first = max(bisect_right(bases, producers.end_offset) - 1, 0)
        for segment in segments[first:]:
            position = segment.locate(producers.end_offset)
            if position is not None:
                file = segment.file.open()
                for _, batch in read_stored_batches(file, position, segment.size_bytes):
                    apply_stored_batch(producers, batch, log_start)
    producers.end_offset = log_end


def apply_stored_batch(
    producers: ProducerState, batch: RecordBatch, log_start: int
) -> EndedTransaction | None:
    """Take note of a batch that was found in the log; return the transaction that it ends.

    One that lies below the log start opens none: nobody reads its records, and the cleaner, which keeps the
    last batch of each producer, may have removed the marker.

    Raises CorruptRecords for a marker that is none.
    """
    if batch.producer_id >= 0:
        if not batch.is_control:
            producers.apply(batch, may_open=batch.last_offset >= log_start)
        elif (marker := read_marker(batch)) is not None:
            return producers.apply_marker(batch, marker)
    return None


def read_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """How a control batch ends its producer's transaction; None if compaction has emptied it."""
    record = next(batch.records(), None)
    return read_end_transaction_marker(record) if record is not None else None
