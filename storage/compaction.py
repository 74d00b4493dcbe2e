"""What compaction keeps (``cleanup.policy=compact``): the last record of each key, and what readers must see.

Two passes.  The first notes, for as many batches as memory allows, at which offset each key was written
last (``OffsetMap``).  The second goes through the log from its start and says of each batch what is left
of it (``Survivors``).  Offsets never change, and neither do sequence numbers: a batch keeps its range
even when its records go.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Buffer,
    RecordBatch,
)
from protocol.records.builder import assemble_batch
from protocol.records.control import ControlType, read_control_type
from protocol.records.keys import find_records, read_keys, read_timestamps
from protocol.records.varint import append_varint
from storage.offset_map import OffsetMap
from storage.transaction_index import AbortedTransaction


class Transactions:
    """Follows transactions through the batches of a log, in their order, and knows which were aborted."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        """Those that have not begun yet, the next one last."""
        self._aborted: dict[int, _Aborted] = {}
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []
        """Those whose marker stays because some of their batches were there: for the new index."""

    def read_data(self, batch: RecordBatch) -> bool:
        """Whether the batch belongs to an aborted transaction, so that nobody needs its records."""
        if not batch.is_transactional:
            return False
        self._begin(batch.last_offset)
        aborted = self._aborted.get(batch.producer_id)
        if aborted is None:
            self._committed.add(batch.producer_id)
            return False
        aborted.has_batches = True
        return True

    def read_control(self, batch: RecordBatch) -> bool:
        """Whether the batch is a marker whose transaction has no batch left, so that nobody needs it soon."""
        self._begin(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            return True  # emptied by an earlier cleaning
        control_type = read_control_type(record)
        if control_type is ControlType.ABORT:
            aborted = self._aborted.pop(batch.producer_id, None)
            if aborted is None or not aborted.has_batches:
                return True
            self.kept.append(aborted.transaction)
            return False
        if control_type is ControlType.COMMIT:
            if batch.producer_id not in self._committed:
                return True
            self._committed.remove(batch.producer_id)
        return False

    def _begin(self, offset: int) -> None:
        waiting = self._waiting
        while waiting and waiting[-1].first_offset <= offset:
            transaction = waiting.pop()
            self._aborted.setdefault(transaction.producer_id, _Aborted(transaction))


class _Aborted:
    __slots__ = ("has_batches", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.has_batches = False


def note_keys(offsets: OffsetMap, transactions: Transactions, batch: RecordBatch) -> bool:
    """The first pass over one batch.  False if the map is full.  Raises CorruptRecords."""
    if batch.is_control:
        transactions.read_control(batch)
    elif not transactions.read_data(batch):
        section, position, end = _section(batch)
        return offsets.put_all(batch, read_keys(section, position, end, batch.record_count))
    if batch.last_offset >= offsets.first_offset:
        offsets.advance(batch.last_offset)
    return True


_Section = tuple[bytes, int, int]
"""Bytes, and where among them a batch's records begin and end."""


def _section(batch: RecordBatch) -> _Section:
    """The records of a batch; if nothing has to be decompressed, its buffer is not copied either."""
    if not batch.codec_number and isinstance(batch.buffer, bytes):
        return batch.buffer, batch.position + RECORD_BATCH_OVERHEAD, batch.position + batch.size_bytes
    section = bytes(batch.payload())
    return section, 0, len(section)


class LastRecord(NamedTuple):
    """What is known of a producer that may go on: where its last batch ends, which must not get lost."""

    last_offset: int
    """-1 if only its markers are known."""
    producer_epoch: int


class Survivors:
    """The second pass: what is left of each batch."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: Transactions,
        last_records: Mapping[int, LastRecord],
        *,
        high_watermark: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        self._high_watermark = high_watermark
        self._now_ms = now_ms
        self._new_horizon = now_ms + delete_retention_ms

    def filter(self, batch: RecordBatch) -> Buffer | None:
        """The batch as it was, a smaller one in its place, or None.  Raises CorruptRecords."""
        horizon = batch.delete_horizon
        kept: Sequence[int] = ()
        section: _Section | None = None
        needs_horizon = False
        if batch.is_control:
            is_needless = self._transactions.read_control(batch)
            is_due = is_needless and horizon is not None and horizon <= self._now_ms
            if not is_due:
                kept = range(batch.record_count)
            # Readers that are not far behind still want to see the marker (KIP-534).
            needs_horizon = is_needless and horizon is None
        elif not self._transactions.read_data(batch):
            keeps_tombstones = horizon is None or self._now_ms < horizon
            if self._offsets.knows_all_of(batch):
                kept, has_tombstone = self._offsets.latest_of(batch, with_tombstones=keeps_tombstones)
            else:
                section = _section(batch)
                kept, has_tombstone = self._keep(batch, section, keeps_tombstones)
            needs_horizon = has_tombstone and horizon is None
        if not kept:
            return _empty(batch) if self._must_stay(batch) else None
        if needs_horizon:
            horizon = self._new_horizon
        elif len(kept) == batch.record_count:
            return batch.data
        return _rebuild(batch, section or _section(batch), kept, horizon)

    def _keep(
        self, batch: RecordBatch, section: _Section, keeps_tombstones: bool
    ) -> tuple[Sequence[int], bool]:
        """The numbers of the records that stay, and whether tombstones are among them."""
        keys = read_keys(*section, batch.record_count)
        known_to = self._offsets.latest_offset
        if not keys.has_null and not keys.tombstones and self._offsets.has_none_of(keys):
            return range(batch.record_count), False
        tombstones = set(keys.tombstones)
        kept = []
        base_offset = batch.base_offset
        find = self._offsets.get
        for index, (key, delta) in enumerate(zip(keys.keys, keys.offset_deltas, strict=True)):
            offset = base_offset + delta
            if offset > known_to or (
                key is not None and offset >= find(key) and (keeps_tombstones or index not in tombstones)
            ):
                kept.append(index)
        return kept, not tombstones.isdisjoint(kept)

    def _must_stay(self, batch: RecordBatch) -> bool:
        """Whether the batch's header says what nothing else does."""
        if batch.next_offset == self._high_watermark:
            return True  # nothing behind it would say how far consumers have got
        last = self._last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return batch.last_offset == last.last_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch


_KEPT_BITS = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


def _rebuild(batch: RecordBatch, section: _Section, kept: Sequence[int], horizon: int | None) -> bytearray:
    """The same batch with the records ``kept`` only, and with a delete horizon if there is one."""
    data, position, end = section
    places = find_records(data, position, end, kept[-1] + 1)
    times = read_timestamps(data, places, kept)
    old_base = batch.base_timestamp
    append_timestamp = batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_BIT else None
    if append_timestamp is not None:
        base = max_timestamp = append_timestamp
    else:
        base = old_base + times[0][0]
        max_timestamp = old_base + max(times)[0]
    if horizon is not None:
        base = horizon
    pieces: list[bytes] = []
    if base == old_base and append_timestamp is None:
        pieces += [data[places[index] : places[index + 1]] for index in kept]
    else:
        for index, (timestamp_delta, after_timestamp) in zip(kept, times, strict=True):
            timestamp = old_base + timestamp_delta if append_timestamp is None else append_timestamp
            start = _record_start(timestamp - base)
            record_end = places[index + 1]
            pieces += (
                _varint(len(start) + record_end - after_timestamp),
                start,
                data[after_timestamp:record_end],
            )
    rebuilt = b"".join(pieces)
    return assemble_batch(
        rebuilt,
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        attributes=batch.attributes & (_KEPT_BITS | COMPRESSION_MASK)
        | (DELETE_HORIZON_BIT if horizon is not None else 0),
        level=None,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=base,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=len(kept),
    )


def _empty(batch: RecordBatch) -> bytearray:
    """The batch without any record: its header still says which offsets and sequences there were."""
    return assemble_batch(
        b"",
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        attributes=batch.attributes & _KEPT_BITS,
        level=None,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=0,
    )


@lru_cache(1 << 13)
def _varint(number: int) -> bytes:
    encoded = bytearray()
    append_varint(encoded, number)
    return bytes(encoded)


@lru_cache(1 << 13)
def _record_start(timestamp_delta: int) -> bytes:
    """What stands between the size of a record and its offset: attributes, of which it has none, and time."""
    return b"\0" + _varint(timestamp_delta)
