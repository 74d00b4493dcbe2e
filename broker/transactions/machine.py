"""Everything that one partition of ``__transaction_state`` keeps: its transactional ids."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from broker.coordination.decision import Decision, Moment, StoredRecord, in_batches
from broker.coordination.record_codec import RecordCodec
from broker.coordination.tickets import Ticket
from broker.transactions.requests import (
    Described,
    Ending,
    Identified,
    Identity,
    Initializing,
    Listed,
    MarkersDue,
    Verified,
)
from broker.transactions.settings import TransactionSettings
from broker.transactions.states import ENDING, TransactionState
from broker.transactions.transaction import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    Transaction,
    TransactionPartition,
    created,
    is_exhausted,
    read,
    stored,
)
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.stored.transaction_records import TransactionLogKey, TransactionLogValue

CODEC: Final = RecordCodec(
    keys={TransactionLogKey.api_key: TransactionLogKey},
    values={TransactionLogValue.api_key: TransactionLogValue},
)

TOMBSTONES_PER_BATCH: Final = 100
"""What expires at once: far below the smallest ``max.message.bytes``, whatever the ids' length."""


class TransactionMachine:
    """The machine of one shard.

    Stored: every ``Transaction``.  Soft: ``_earlier_epochs``, as in Kafka, which is why a producer that
    repeats an InitProducerId across a restart is fenced.

    ``take_producer_id`` gives ids that nobody ever had, or None while there is none at hand; whoever calls a
    command that may need one sees to it that there is one.  ``feature_level`` is the cluster's
    transaction.version.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        *,
        coordinator_epoch: int,
        take_producer_id: Callable[[], int | None],
        feature_level: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.transactions: dict[str, Transaction] = {}
        self._coordinator_epoch = coordinator_epoch
        self._take_producer_id = take_producer_id
        self._feature_level = feature_level
        self._earlier_epochs: dict[str, int] = {}
        """The epoch from which a producer came to its present one, if it may still go on from there: -1 or
        nothing if another producer took over (KIP-360)."""
        self._ongoing: dict[str, None] = {}
        self._timed_out: deque[str] = deque()
        self._next_timeout_check_ms: int | None = None
        self._next_expiration_check_ms: int | None = None

    # What a shard wants of a machine

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        transactional_id = key.transactional_id
        self._ongoing.pop(transactional_id, None)
        if value is None:
            self.transactions.pop(transactional_id, None)
            self._earlier_epochs.pop(transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        try:
            transaction = read(transactional_id, value)
        except ValueError as error:
            raise DecodeError(f"the state of transactional id {transactional_id}: {error}") from error
        self.transactions[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self._ongoing[transactional_id] = None

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Nothing in this topic belongs to a transaction itself."""

    def loaded(self, now: Moment) -> Decision:
        """What was decided before goes on."""
        self._next_timeout_check_ms = now.steady_ms + self.settings.timeout_check_interval_ms
        self._next_expiration_check_ms = now.steady_ms + self.settings.expiration_check_interval_ms
        decision = Decision()
        for transaction in self.transactions.values():
            if transaction.state in ENDING:
                decision.effects.append(self._markers_due(transaction))
        return decision

    def deadline_ms(self) -> int | None:
        if self._timed_out:
            return 0
        deadlines = []
        if self._ongoing and self._next_timeout_check_ms is not None:
            deadlines.append(self._next_timeout_check_ms)
        if self.transactions and self._next_expiration_check_ms is not None:
            deadlines.append(self._next_expiration_check_ms)
        return min(deadlines, default=None)

    def advance(self, now: Moment) -> Decision:
        if self._timed_out:
            return self._abort_timed_out(self._timed_out.popleft(), now)
        if self._next_timeout_check_ms is not None and self._next_timeout_check_ms <= now.steady_ms:
            interval_ms = self.settings.timeout_check_interval_ms
            self._next_timeout_check_ms = now.steady_ms + interval_ms
            self._timed_out.extend(
                transactional_id
                for transactional_id in self._ongoing
                if self.transactions[transactional_id].has_timed_out(now.wall_ms)
            )
            return Decision()
        if self._next_expiration_check_ms is not None and self._next_expiration_check_ms <= now.steady_ms:
            self._next_expiration_check_ms = now.steady_ms + self.settings.expiration_check_interval_ms
            return self._expire(now)
        return Decision()

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        return ()  # every command is decided at once

    # Identities

    def initialize(
        self, transactional_id: str, asked: Initializing, ticket: Ticket[Identified], now: Moment
    ) -> Decision:
        """InitProducerId.  May take a producer id.

        What a producer of the same transactional id has left open is aborted first; this one has to come
        again.
        """
        decision = Decision(tentative=True)
        known = self.transactions.get(transactional_id)
        if known is None:
            # Whatever identity the producer had: it may go on after the id has expired.
            new = created(transactional_id, self._new_producer_id(), 0, asked.timeout_ms, now.wall_ms)
            return self._give_identity(decision, ticket, new, NO_PRODUCER_EPOCH)
        if known.state in ENDING:
            return _refuse(decision, ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        if asked.known is not None and not _may_go_on(known, asked.known):
            return _refuse(decision, ticket, ErrorCode.PRODUCER_FENCED)
        if known.state is TransactionState.ONGOING:
            self._fence(decision, known, now)
            return _refuse(decision, ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        producer_id, producer_epoch = known.producer_id, known.producer_epoch + 1
        earlier_epoch = NO_PRODUCER_EPOCH
        if asked.known is None:
            pass
        elif asked.known.producer_epoch == known.producer_epoch:
            earlier_epoch = known.producer_epoch
        elif asked.known.producer_epoch == self._earlier_epochs.get(transactional_id):
            # The same request again, whose answer was lost: the same answer.
            producer_epoch = known.producer_epoch
            earlier_epoch = asked.known.producer_epoch
        else:
            return _refuse(decision, ticket, ErrorCode.PRODUCER_FENCED)
        if producer_epoch != known.producer_epoch and known.is_exhausted:
            producer_id, producer_epoch = self._new_producer_id(), 0
        new = known.become(
            TransactionState.EMPTY,
            now.wall_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timeout_ms=asked.timeout_ms,
            partitions={},
            start_ms=NO_TIME,
        )
        return self._give_identity(decision, ticket, new, earlier_epoch)

    def _new_producer_id(self) -> int:
        taken = self._take_producer_id()
        if taken is None:
            raise RuntimeError("no producer id at hand: whoever asks the machine has to see to it")
        return taken

    def _give_identity(
        self, decision: Decision, ticket: Ticket[Identified], new: Transaction, earlier_epoch: int
    ) -> Decision:
        self._write(decision, new)
        decision.reply(ticket, Identified(ErrorCode.NONE, new.producer_id, new.producer_epoch))
        self._note_earlier_epoch(decision, new, earlier_epoch)
        return decision

    def _note_earlier_epoch(self, decision: Decision, new: Transaction, earlier_epoch: int) -> None:
        """The epoch from which the producer comes to its new one, once that is written."""

        def note(_: Moment) -> Decision:
            self._earlier_epochs[new.transactional_id] = earlier_epoch
            return Decision()

        decision.then = note

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: Collection[TransactionPartition],
        version: int,
        ticket: Ticket[ErrorCode],
        now: Moment,
    ) -> Decision:
        """AddPartitionsToTxn and what adds partitions on the way; opens the transaction if none is open."""
        decision = Decision(tentative=True)
        known = self.transactions.get(transactional_id)
        if known is None:
            decision.reply(ticket, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return decision
        # Before the identity is looked at: the producer may know its next one already (KIP-890).
        error = (
            ErrorCode.CONCURRENT_TRANSACTIONS if known.state in ENDING else _check_identity(known, identity)
        )
        if error is not ErrorCode.NONE:
            decision.reply(ticket, error)
            return decision
        decision.reply(ticket, ErrorCode.NONE)
        is_open = known.state is TransactionState.ONGOING
        if is_open and all(partition in known.partitions for partition in partitions):
            return decision
        new = known.become(
            TransactionState.ONGOING,
            now.wall_ms,
            partitions={**known.partitions, **dict.fromkeys(partitions)},
            start_ms=known.start_ms if is_open else now.wall_ms,
            version=version,
        )
        self._write(decision, new)
        return decision

    def verify_partitions(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: Collection[TransactionPartition],
        ticket: Ticket[Verified],
    ) -> Decision:
        """Whether partitions are in the open transaction (KIP-890)."""
        decision = Decision()
        known = self.transactions.get(transactional_id)
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING if known is None else _check_identity(known, identity)
        if known is not None and error is ErrorCode.NONE and known.state in ENDING:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if known is None or error is not ErrorCode.NONE:
            decision.reply(ticket, Verified(error))
            return decision
        decision.reply(
            ticket,
            Verified(
                codes=tuple(
                    ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
                    for partition in partitions
                )
            ),
        )
        return decision

    # The end of transactions

    def end(self, transactional_id: str, ending: Ending, ticket: Ticket[Identified], now: Moment) -> Decision:
        """EndTxn.  May take a producer id.  The answer does not wait for the markers."""
        decision = Decision(tentative=True)
        known = self.transactions.get(transactional_id)
        if known is None:
            return _refuse(decision, ticket, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        decide = _end_with_epoch if ending.bumps_epoch else _end_without_epoch
        outcome = decide(known, ending)
        if outcome is _ENDS:
            return self._prepare(decision, known, ending, ticket, now)
        if outcome is not ErrorCode.NONE:
            return _refuse(decision, ticket, outcome)
        decision.reply(ticket, Identified(ErrorCode.NONE, known.producer_id, known.producer_epoch))
        return decision

    def _prepare(
        self, decision: Decision, known: Transaction, ending: Ending, ticket: Ticket[Identified], now: Moment
    ) -> Decision:
        next_producer_id = NO_PRODUCER_ID
        producer_epoch = known.producer_epoch
        if ending.bumps_epoch:
            if known.producer_epoch == EPOCH_MAX and ending.is_commit:
                return _refuse(decision, ticket, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
            if known.is_exhausted:
                next_producer_id = self._new_producer_id()
            producer_epoch = known.following_epoch
        new = known.become(
            TransactionState.PREPARE_COMMIT if ending.is_commit else TransactionState.PREPARE_ABORT,
            now.wall_ms,
            producer_epoch=producer_epoch,
            next_producer_id=next_producer_id,
            # An abort of nothing begins and ends now.
            start_ms=known.start_ms if known.state is TransactionState.ONGOING else now.wall_ms,
            version=EPOCH_BUMP_VERSION if ending.bumps_epoch else 0,
        )
        self._write(decision, new)
        if ending.bumps_epoch:
            self._note_earlier_epoch(decision, new, known.producer_epoch)
        decision.reply(ticket, Identified(ErrorCode.NONE, *new.next_identity))
        decision.effects.append(self._markers_due(new))
        return decision

    def _fence(self, decision: Decision, known: Transaction, now: Moment) -> None:
        """Abort what is open, whoever opened it; the epoch moves on, so that it cannot go on writing.

        Nothing happens while the id that has to follow is not at hand: whoever wants this comes again.
        """
        bumps_epoch = self._feature_level() >= EPOCH_BUMP_VERSION
        next_producer_id = NO_PRODUCER_ID
        if bumps_epoch and known.is_exhausted:
            taken = self._take_producer_id()
            if taken is None:
                return
            next_producer_id = taken
        new = known.become(
            TransactionState.PREPARE_ABORT,
            now.wall_ms,
            producer_epoch=known.following_epoch,
            next_producer_id=next_producer_id,
            version=EPOCH_BUMP_VERSION if bumps_epoch else 0,
        )
        self._write(decision, new)
        self._note_earlier_epoch(decision, new, known.producer_epoch if bumps_epoch else NO_PRODUCER_EPOCH)
        decision.effects.append(self._markers_due(new))

    def _markers_due(self, transaction: Transaction) -> MarkersDue:
        return MarkersDue(
            transaction.transactional_id,
            Identity(transaction.producer_id, transaction.producer_epoch),
            self._coordinator_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.version,
            tuple(transaction.partitions),
        )

    def markers_written(self, due: MarkersDue, ticket: Ticket[ErrorCode], now: Moment) -> Decision:
        """Every partition has its marker: the transaction is over."""
        decision = Decision(tentative=True)
        known = self.transactions.get(due.transactional_id)
        if known is None or known.state not in ENDING or self._markers_due(known) != due:
            decision.reply(ticket, ErrorCode.INVALID_TXN_STATE)
            return decision
        producer_id, producer_epoch = known.next_identity
        is_commit = known.state is TransactionState.PREPARE_COMMIT
        self._write(
            decision,
            known.become(
                TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
                now.wall_ms,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                next_producer_id=NO_PRODUCER_ID,
                partitions={},
            ),
        )
        decision.reply(ticket, ErrorCode.NONE)
        return decision

    # Time

    def _abort_timed_out(self, transactional_id: str, now: Moment) -> Decision:
        decision = Decision(tentative=True)
        known = self.transactions.get(transactional_id)
        if known is not None and known.has_timed_out(now.wall_ms):
            self._fence(decision, known, now)
        return decision

    def _expire(self, now: Moment) -> Decision:
        oldest_ms = now.wall_ms - self.settings.expiration_ms
        expired: Iterable[StoredRecord] = (
            StoredRecord(TransactionLogKey(transactional_id=transaction.transactional_id), None)
            for transaction in self.transactions.values()
            if transaction.is_at_rest and transaction.updated_ms <= oldest_ms
        )
        return in_batches(list(expired), TOMBSTONES_PER_BATCH, Decision(tentative=True))

    # Operators

    def describe(
        self,
        transactional_id: str,
        unmarked: tuple[TransactionPartition, ...] | None,
        ticket: Ticket[Described],
    ) -> Decision:
        """DescribeTransactions, one of them.

        ``unmarked`` are the partitions that still wait for a marker, if that is known: while a transaction
        ends, they are what operators look for.
        """
        decision = Decision()
        known = self.transactions.get(transactional_id)
        if known is None:
            decision.reply(ticket, Described(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
        elif known.state in ENDING and unmarked is not None:
            decision.reply(ticket, _described(known)._replace(partitions=unmarked))
        else:
            decision.reply(ticket, _described(known))
        return decision

    def list_transactions(self, ticket: Ticket[Listed]) -> Decision:
        """Everything that is known here; what is asked for is for others to pick."""
        decision = Decision()
        decision.reply(ticket, Listed(transactions=tuple(map(_described, self.transactions.values()))))
        return decision

    def _write(self, decision: Decision, new: Transaction) -> None:
        # What a producer of transactions v2 does must not be forgotten, whatever the cluster's level.
        version = 1 if self._feature_level() >= 1 or new.version > 0 else 0
        decision.write(
            TransactionLogKey(transactional_id=new.transactional_id), stored(new, version), version
        )


_ENDS: Final = None
"""In the place of an error code: the transaction ends now."""


def _end_without_epoch(known: Transaction, ending: Ending) -> ErrorCode | None:
    """What EndTxn does before transactions v2: a repeated one is known by its outcome."""
    if known.producer_id != ending.identity.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != ending.identity.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if known.state is TransactionState.ONGOING:
        return _ENDS
    if known.state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is _outcome(ending, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        return ErrorCode.NONE
    return ErrorCode.INVALID_TXN_STATE


def _end_with_epoch(known: Transaction, ending: Ending) -> ErrorCode | None:
    """What EndTxn does in transactions v2: a repeated one is known by its epoch, the one before."""
    if known.state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    identity = ending.identity
    overflowed = (
        known.previous_producer_id == identity.producer_id
        and is_exhausted(identity.producer_epoch)
        and known.producer_epoch == 0
        and known.producer_id != identity.producer_id
    )
    if known.producer_id != identity.producer_id and not overflowed:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_repeated = overflowed or known.producer_epoch == identity.producer_epoch + 1
    if known.state in (TransactionState.EMPTY, TransactionState.ONGOING):
        is_repeated = False
    if not is_repeated and known.producer_epoch != identity.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if known.state is TransactionState.ONGOING:
        return _ENDS
    if is_repeated:
        same = _outcome(ending, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        return ErrorCode.NONE if known.state is same else ErrorCode.INVALID_TXN_STATE
    # Nothing is open: an abort gives the next epoch all the same.
    return ErrorCode.INVALID_TXN_STATE if ending.is_commit else _ENDS


def _outcome(ending: Ending, committed: TransactionState, aborted: TransactionState) -> TransactionState:
    return committed if ending.is_commit else aborted


def _may_go_on(known: Transaction, identity: Identity) -> bool:
    """Whether this may be the present producer, or a retry of the one whose epochs were used up."""
    return identity.producer_id == known.producer_id or (
        identity.producer_id == known.previous_producer_id and is_exhausted(identity.producer_epoch)
    )


def _check_identity(known: Transaction, identity: Identity) -> ErrorCode:
    if known.producer_id != identity.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if known.producer_epoch == identity.producer_epoch else ErrorCode.PRODUCER_FENCED


def _refuse(decision: Decision, ticket: Ticket[Identified], error: ErrorCode) -> Decision:
    decision.reply(ticket, Identified(error))
    return decision


def _described(transaction: Transaction) -> Described:
    return Described(
        transaction.transactional_id,
        ErrorCode.NONE,
        transaction.state,
        transaction.timeout_ms,
        transaction.start_ms,
        transaction.producer_id,
        transaction.producer_epoch,
        tuple(transaction.partitions),
    )
