"""What a log knows of the producers that wrote to it: sequences, epochs, open transactions (KIP-98)."""

from collections.abc import Iterable
from typing import NamedTuple

from protocol.records.batch import RecordBatch
from protocol.records.control import EndTransactionMarker
from storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
    UnverifiedTransaction,
)
from storage.transaction_verification import VOUCHED, Verification

BATCHES_REMEMBERED = 5
"""As many requests as a producer may have in flight: a retry of any of them is recognised."""

NO_SEQUENCE = -1
NO_TRANSACTION = -1
NO_EPOCH = -1
EPOCH_MAX = 32_767

_SEQUENCES = 1 << 31


class ProducerBatch(NamedTuple):
    """One batch that a producer wrote."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int
    """The batch's max timestamp."""


class ProducerEntry:
    """One producer: its epoch, its last batches, and its transaction."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "transaction_start",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_EPOCH,
        coordinator_epoch: int = NO_EPOCH,
        last_timestamp: int = -1,
        transaction_start: int = NO_TRANSACTION,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        """Of the last marker; -1 if there was none."""
        self.last_timestamp = last_timestamp
        self.transaction_start = transaction_start
        """Offset of the open transaction's first record; -1 if none is open."""
        self.batches: list[ProducerBatch] = []
        """At most five, oldest first, all of ``producer_epoch``."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class EndedTransaction(NamedTuple):
    """A transaction whose marker was written."""

    producer_id: int
    first_offset: int
    marker_offset: int
    is_commit: bool


class ProducerState:
    """State of all batches below ``end_offset``.

    Two steps: ``check`` before a batch is written, ``apply`` after.  Loading and replication apply
    without checking: what is in the log has been accepted.
    """

    __slots__ = ("_open", "_verifications", "decided", "end_offset", "entries", "expiration_ms")

    def __init__(self, end_offset: int = 0, *, expiration_ms: int = 86_400_000) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = end_offset
        self.expiration_ms = expiration_ms
        self._open: dict[int, int] = {}
        """First offset -> producer id of transactions without a marker, in order of offset."""
        self.decided: dict[int, int] = {}
        """First offset -> marker's offset, where the marker is not below the high watermark yet."""
        self._verifications: dict[int, Verification] = {}
        """By producer id: transactions that the coordinator is being asked about."""

    # Before the write

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, starts_at_zero: bool, now_ms: int
    ) -> Verification | None:
        """What has to be handed over with a transactional batch once the coordinator says that it may be.

        None if a transaction of its producer and epoch is open here: then nobody has to be asked.
        Raises InvalidProducerEpoch if the producer has a newer one.
        """
        entry = self.entries.get(producer_id)
        if entry is not None:
            self._check_epoch(entry, producer_epoch)
        if self._is_open(producer_id, producer_epoch):
            return None
        known = self._verifications.get(producer_id)
        if known is not None:
            known.join(producer_epoch, sequence)
            return known
        begun = Verification(producer_epoch, sequence, starts_at_zero=starts_at_zero, began_ms=now_ms)
        self._verifications[producer_id] = begun
        return begun

    def take_over_verifications(self, other: "ProducerState") -> None:
        """Go on with what the coordinator is being asked on behalf of another copy of the same log."""
        self._verifications = other._verifications

    def _is_open(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.transaction_start != NO_TRANSACTION
            and entry.producer_epoch == producer_epoch
        )

    def check(self, batch: RecordBatch, verification: Verification | None = VOUCHED) -> ProducerBatch | None:
        """Whether a client's batch may follow; the remembered one if it repeats it.

        Raises OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState, UnverifiedTransaction.
        """
        entry = self.entries.get(batch.producer_id)
        if batch.is_transactional and verification is not VOUCHED:
            known = None if entry is None else _repeated(entry, batch)
            if known is not None:
                return known
            self._check_verified(batch, entry, verification)
            self._check_first_sequence(batch, entry, verification)
        if entry is None:
            # A producer that was never seen, or forgotten, may start anywhere.
            if batch.producer_epoch < NO_EPOCH:
                raise InvalidProducerEpoch(batch.producer_id, batch.producer_epoch, NO_EPOCH)
            return None
        sequence = batch.base_sequence
        if batch.producer_epoch != entry.producer_epoch:
            self._check_epoch(entry, batch.producer_epoch)
            if sequence != 0 and entry.producer_epoch != NO_EPOCH:
                raise OutOfOrderSequence(
                    batch.producer_id, batch.producer_epoch, sequence, entry.last_sequence
                )
        elif sequence != (entry.last_sequence + 1) % _SEQUENCES:
            known = _repeated(entry, batch)
            if known is not None:
                return known
            raise OutOfOrderSequence(batch.producer_id, batch.producer_epoch, sequence, entry.last_sequence)
        self._check_transaction(entry, batch)
        return None

    def _check_verified(
        self, batch: RecordBatch, entry: ProducerEntry | None, verification: Verification | None
    ) -> None:
        if self._is_open(batch.producer_id, batch.producer_epoch):
            return
        if entry is not None:
            self._check_epoch(entry, batch.producer_epoch)  # a producer can go on after this error only
        if verification is None or verification is not self._verifications.get(batch.producer_id):
            raise UnverifiedTransaction(batch.producer_id, batch.producer_epoch)

    def _check_first_sequence(
        self, batch: RecordBatch, entry: ProducerEntry | None, verification: Verification | None
    ) -> None:
        """Of a transaction that the coordinator was asked about."""
        if verification is None or self._is_open(batch.producer_id, batch.producer_epoch):
            return
        if batch.base_sequence > verification.lowest_sequence:
            raise OutOfOrderSequence(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, verification.lowest_sequence - 1
            )
        is_new = entry is None or not entry.batches
        if verification.starts_at_zero and is_new and batch.base_sequence != 0:
            raise OutOfOrderSequence(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, NO_SEQUENCE
            )

    def check_internal(self, batch: RecordBatch, verification: Verification | None = VOUCHED) -> None:
        """The same for what a coordinator of ours writes, whose sequences mean nothing."""
        entry = self.entries.get(batch.producer_id)
        if batch.is_transactional and verification is not VOUCHED:
            self._check_verified(batch, entry, verification)
        if entry is not None:
            self._check_epoch(entry, batch.producer_epoch)
            self._check_transaction(entry, batch)

    def check_marker(self, batch: RecordBatch, marker: EndTransactionMarker) -> None:
        """The same for a marker.  Raises InvalidProducerEpoch, TransactionCoordinatorFenced."""
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            return
        self._check_epoch(entry, batch.producer_epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                batch.producer_id, batch.producer_epoch, marker.coordinator_epoch, entry.coordinator_epoch
            )

    def check_marker_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Whether a marker by transactions v2 may end what is open: its epoch is one that no batch has.

        Raises InvalidProducerEpoch.  A repeated marker is no harm, nor is one behind the last epoch.
        """
        entry = self.entries.get(producer_id)
        if (
            entry is not None
            and entry.transaction_start != NO_TRANSACTION
            and producer_epoch <= entry.producer_epoch
            and producer_epoch < EPOCH_MAX
        ):
            raise InvalidProducerEpoch(producer_id, producer_epoch, entry.producer_epoch)

    def _check_epoch(self, entry: ProducerEntry, producer_epoch: int) -> None:
        if producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(entry.producer_id, producer_epoch, entry.producer_epoch)

    def _check_transaction(self, entry: ProducerEntry, batch: RecordBatch) -> None:
        if entry.transaction_start != NO_TRANSACTION and not batch.is_transactional:
            raise InvalidTransactionState(batch.producer_id, batch.producer_epoch, entry.transaction_start)

    # After the write

    def apply(self, batch: RecordBatch, *, may_open: bool = True) -> None:
        """Take note of a data batch that now is in the log, at the offset it says.

        ``may_open`` is whether a transaction can begin with it.
        """
        producer_id = batch.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            self.entries[producer_id] = entry = ProducerEntry(producer_id)
        if entry.producer_epoch != batch.producer_epoch:
            entry.producer_epoch = batch.producer_epoch
            entry.batches.clear()
        base_offset = batch.base_offset
        timestamp = batch.max_timestamp
        batches = entry.batches
        batches.append(
            ProducerBatch(
                batch.base_sequence,
                batch.last_sequence,
                base_offset,
                base_offset + batch.last_offset_delta,
                timestamp,
            )
        )
        if len(batches) > BATCHES_REMEMBERED:
            del batches[0]
        entry.last_timestamp = timestamp
        if batch.is_transactional:
            self._verifications.pop(producer_id, None)
            if entry.transaction_start == NO_TRANSACTION and may_open:
                entry.transaction_start = base_offset
                self._open[base_offset] = producer_id

    def apply_marker(self, batch: RecordBatch, marker: EndTransactionMarker) -> EndedTransaction | None:
        """Take note of a control batch; return the transaction it ended, if one had begun here."""
        verification = self._verifications.get(batch.producer_id)
        if verification is not None and not verification.outlasts(batch.producer_epoch):
            del self._verifications[batch.producer_id]
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            self.entries[batch.producer_id] = entry = ProducerEntry(batch.producer_id)
        if entry.producer_epoch != batch.producer_epoch:
            entry.producer_epoch = batch.producer_epoch
            entry.batches.clear()
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = batch.max_timestamp
        start = entry.transaction_start
        if start == NO_TRANSACTION:
            return None
        entry.transaction_start = NO_TRANSACTION
        self._open.pop(start, None)
        self.decided[start] = batch.base_offset
        return EndedTransaction(batch.producer_id, start, batch.base_offset, marker.is_commit)

    # What readers may see

    @property
    def first_undecided(self) -> int | None:
        """First offset of the oldest transaction without a marker."""
        return next(iter(self._open), None)

    @property
    def first_unstable(self) -> int | None:
        """First offset of the oldest transaction that has no marker below the high watermark."""
        if not self._open and not self.decided:
            return None
        return min([*self._open, *self.decided])

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Forget ended transactions whose markers are replicated now."""
        if self.decided:
            for start in [s for s, marker in self.decided.items() if marker < high_watermark]:
                del self.decided[start]

    def last_stable_after(self, ended: EndedTransaction) -> int:
        """What the last stable offset will be once ``ended`` is replicated: the transaction index has it."""
        for start, producer_id in self._open.items():
            if producer_id != ended.producer_id:
                return start
        return ended.marker_offset + 1

    # Life

    def expire(self, now_ms: int) -> None:
        """Forget producers that wrote nothing for ``producer.id.expiration.ms``, outside transactions."""
        gone = [entry.producer_id for entry in self.entries.values() if self._is_expired(entry, now_ms)]
        for producer_id in gone:
            del self.entries[producer_id]
        for producer_id, verification in list(self._verifications.items()):
            if now_ms - verification.began_ms >= self.expiration_ms:
                del self._verifications[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return (
            entry.transaction_start == NO_TRANSACTION and now_ms - entry.last_timestamp >= self.expiration_ms
        )

    def load(
        self, entries: Iterable[ProducerEntry], end_offset: int, now_ms: int, *, may_open: bool = True
    ) -> None:
        """Start from a snapshot of everything below ``end_offset``, without what has expired since.

        ``may_open`` is whether a transaction can have begun with it.
        """
        self.clear(end_offset)
        for entry in entries:
            if not may_open:
                entry.transaction_start = NO_TRANSACTION
            if not self._is_expired(entry, now_ms):
                self.entries[entry.producer_id] = entry
        starts = [(e.transaction_start, e.producer_id) for e in self.entries.values()]
        self._open = {start: producer for start, producer in sorted(starts) if start != NO_TRANSACTION}

    def clear(self, end_offset: int) -> None:
        self.entries.clear()
        self._open.clear()
        self.decided.clear()
        self._verifications.clear()
        self.end_offset = end_offset


def _repeated(entry: ProducerEntry, batch: RecordBatch) -> ProducerBatch | None:
    """The remembered batch that this one repeats."""
    if batch.producer_epoch != entry.producer_epoch:
        return None
    first_sequence, last_sequence = batch.base_sequence, batch.last_sequence
    for known in entry.batches:
        if known.first_sequence == first_sequence and known.last_sequence == last_sequence:
            return known
    return None
