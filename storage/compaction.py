"""What compaction keeps (``cleanup.policy=compact``): the last record of each key, and what readers must see.

Two passes.  The first notes, for as many batches as memory allows, at which offset each key was written
last (``OffsetMap``).  The second goes through the log from its start and says of each batch what is left
of it (``Survivors``).  Offsets never change, and neither do sequence numbers: a batch keeps its range
even when its records go.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Buffer,
    RecordBatch,
)
from protocol.records.builder import assemble_batch
from protocol.records.control import ControlType, read_control_type
from protocol.records.errors import CorruptRecords
from protocol.records.varint import append_varint, read_varint, read_varlong
from storage.transaction_index import AbortedTransaction

_KEPT_AS_IT_IS = 16
_DIGEST_SIZE = 20

NOT_FOUND = -1


class OffsetMap:
    """Key -> offset of its last record, for at most ``entries_max`` keys.

    Long keys are told apart by a digest, as in Kafka, so that memory does not depend on their length.
    """

    __slots__ = ("_offsets", "entries_max", "latest_offset")

    def __init__(self, entries_max: int) -> None:
        self.entries_max = entries_max
        self.latest_offset = NOT_FOUND
        """Up to here the map knows everything; records behind are kept whatever their key."""
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note where ``key`` was written last so far; False if the map is full, which ends the pass."""
        if len(self._offsets) >= self.entries_max:
            return False
        self._offsets[_short(key)] = offset
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """-1 if the key was not seen."""
        return self._offsets.get(_short(key), NOT_FOUND)

    def advance(self, offset: int) -> None:
        """Everything up to ``offset``, inclusive, has been noted."""
        self.latest_offset = max(self.latest_offset, offset)


def _short(key: bytes) -> bytes:
    # Digests are longer than what is kept as it is, so the two cannot be mistaken for each other.
    return key if len(key) <= _KEPT_AS_IT_IS else blake2b(key, digest_size=_DIGEST_SIZE).digest()


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


def note_keys(offsets: OffsetMap, transactions: Transactions, batch: RecordBatch, start: int) -> bool:
    """The first pass over one batch; records below ``start`` do not count.  False if the map is full."""
    if batch.is_control:
        transactions.read_control(batch)
    elif not transactions.read_data(batch):
        base_offset = batch.base_offset
        for record in _walk(bytes(batch.payload()), batch.record_count):
            offset = base_offset + record[4]
            key = record[5]
            if key is not None and offset >= start and not offsets.put(key, offset):
                return False
    if batch.last_offset >= start:
        offsets.advance(batch.last_offset)
    return True


_Slice = tuple[int, int, int, int, int, bytes | None, bool]
"""Start, end of the timestamp, end; timestamp delta, offset delta, key, and whether there is a value.

The section's bytes are not copied: a record that stays is mostly a slice of them.
"""


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
        section = b""
        kept: list[_Slice] = []
        needs_horizon = False
        if batch.is_control:
            is_needless = self._transactions.read_control(batch)
            is_due = is_needless and horizon is not None and horizon <= self._now_ms
            if not is_due:
                section = bytes(batch.payload())
                kept += _walk(section, batch.record_count)
            # Readers that are not far behind still want to see the marker (KIP-534).
            needs_horizon = is_needless and horizon is None
        elif not self._transactions.read_data(batch):
            section = bytes(batch.payload())
            kept, has_tombstone = self._keep(batch, section, horizon)
            needs_horizon = has_tombstone and horizon is None
        if not kept:
            return _empty(batch) if self._must_stay(batch) else None
        if needs_horizon:
            horizon = self._new_horizon
        elif len(kept) == batch.record_count:
            return batch.data
        return _rebuild(batch, section, kept, horizon)

    def _keep(self, batch: RecordBatch, section: bytes, horizon: int | None) -> tuple[list[_Slice], bool]:
        kept = []
        has_tombstone = False
        keeps_tombstones = horizon is None or self._now_ms < horizon
        base_offset = batch.base_offset
        known_to = self._offsets.latest_offset
        find = self._offsets.get
        for record in _walk(section, batch.record_count):
            offset = base_offset + record[4]
            key = record[5]
            has_value = record[6]
            if offset > known_to or (
                key is not None and offset >= find(key) and (has_value or keeps_tombstones)
            ):
                kept.append(record)
                if not has_value:
                    has_tombstone = True
        return kept, has_tombstone

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


def _walk(section: bytes, record_count: int) -> Iterator[_Slice]:
    """Every record of a section.  Integers of one byte or two, which most are, are decoded in place."""
    position = 0
    try:
        for _ in range(record_count):
            start = position
            number = section[position]
            if number < 0x80:
                position += 1
                size = (number >> 1) ^ -(number & 1)
            elif (high := section[position + 1]) < 0x80:
                position += 2
                size = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                size, position = read_varint(section, position)
            end = position + size
            position += 1  # attributes

            number = section[position]
            if number < 0x80:
                position += 1
                timestamp_delta = (number >> 1) ^ -(number & 1)
            else:
                timestamp_delta, position = read_varlong(section, position)
            after_timestamp = position

            number = section[position]
            if number < 0x80:
                position += 1
                offset_delta = (number >> 1) ^ -(number & 1)
            elif (high := section[position + 1]) < 0x80:
                position += 2
                offset_delta = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                offset_delta, position = read_varint(section, position)

            number = section[position]
            if number < 0x80:
                position += 1
                size = (number >> 1) ^ -(number & 1)
            elif (high := section[position + 1]) < 0x80:
                position += 2
                size = (number >> 1 & 0x3F | high << 6) ^ -(number & 1)
            else:
                size, position = read_varint(section, position)
            key = None
            if size >= 0:
                key = section[position : position + size]
                position += size
            # Only a null value has an odd length, -1, in zigzag.
            has_value = not section[position] & 1
            if size < -1 or not position < end <= len(section):
                raise CorruptRecords(f"a record's key and its size of {end - start} bytes do not agree")
            yield start, after_timestamp, end, timestamp_delta, offset_delta, key, has_value
            position = end
    except IndexError:
        raise CorruptRecords("a record runs past the end of its batch") from None
    if position != len(section):
        raise CorruptRecords(f"{len(section) - position} bytes lie between the last record and the end")


_KEPT_BITS = TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


def _rebuild(batch: RecordBatch, section: bytes, kept: list[_Slice], horizon: int | None) -> bytearray:
    """The same batch with the records ``kept`` only, and with a delete horizon if there is one."""
    old_base = batch.base_timestamp
    append_timestamp = batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_BIT else None
    if append_timestamp is not None:
        base = max_timestamp = append_timestamp
    else:
        base = old_base + kept[0][3]
        max_timestamp = old_base + max([record[3] for record in kept])
    if horizon is not None:
        base = horizon
    rebuilt = bytearray()
    if base == old_base and append_timestamp is None:
        for record in kept:
            rebuilt += section[record[0] : record[2]]
    else:
        for _, after_timestamp, end, timestamp_delta, _, _, _ in kept:
            timestamp = old_base + timestamp_delta if append_timestamp is None else append_timestamp
            record_start = bytearray(1)
            append_varint(record_start, timestamp - base)
            append_varint(rebuilt, len(record_start) + end - after_timestamp)
            rebuilt += record_start
            rebuilt += section[after_timestamp:end]
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
