"""One transactional id: what is known of it, and how that is stored."""

from typing import Any, Final, NamedTuple

from broker.transactions.states import AT_REST, NEXT, TransactionState
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from protocol.stored.transaction_records import PartitionsSchema, TransactionLogValue

TransactionPartition = tuple[str, int]
"""Topic and partition."""

EPOCH_MAX: Final = 32_767
"""No client ever gets it: so a coordinator can always fence a producer."""

LAST_CLIENT_EPOCH: Final = EPOCH_MAX - 1

NO_TIME: Final = -1

NO_TIMEOUT_MS: Final = 2_147_483_647
"""Of a transaction that takes part in a two-phase commit (KIP-939): only its participants end it."""

EPOCH_BUMP_VERSION: Final = 2
"""From this transaction.version on every end of a transaction gives its producer a new epoch (KIP-890)."""


class Transaction(NamedTuple):
    """Everything that a record says of one transactional id.  Times are wall clock, in ms."""

    transactional_id: str
    producer_id: int
    previous_producer_id: int
    """The one before this state; -1 if unknown."""
    next_producer_id: int
    """Takes over when the transaction has ended, because the epochs are used up; -1 if none does."""
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: dict[TransactionPartition, None]
    """An ordered set.  Never changed: the next state has another one."""
    start_ms: int
    """When the transaction was opened; -1 if none was."""
    updated_ms: int
    version: int
    """The transaction.version by which the producer works, as far as the last request told."""

    @property
    def is_exhausted(self) -> bool:
        """Whether there is no further epoch that a client could get."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def following_epoch(self) -> int:
        """The one in which the transaction ends if ends give epochs, and in which others are fenced."""
        return min(self.producer_epoch + 1, EPOCH_MAX)

    @property
    def next_identity(self) -> tuple[int, int]:
        """Producer id and epoch after the end that is under way."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    @property
    def is_at_rest(self) -> bool:
        return self.state in AT_REST

    def become(self, state: TransactionState, updated_ms: int, **changes: Any) -> "Transaction":
        """The next state of the id, with what else changes.  The identity before it is remembered."""
        if state not in NEXT[self.state]:
            raise ValueError(f"{self.transactional_id}: {self.state.title} cannot become {state.title}")
        changed: dict[str, Any] = {"previous_producer_id": self.producer_id, **changes}
        return self._replace(state=state, updated_ms=updated_ms, **changed)

    def has_timed_out(self, wall_ms: int) -> bool:
        return (
            self.state is TransactionState.ONGOING
            and self.timeout_ms != NO_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < wall_ms
        )


def created(
    transactional_id: str, producer_id: int, producer_epoch: int, timeout_ms: int, updated_ms: int
) -> Transaction:
    """An id that was not known before."""
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        previous_producer_id=producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions={},
        start_ms=NO_TIME,
        updated_ms=updated_ms,
        version=0,
    )


def is_exhausted(producer_epoch: int) -> bool:
    return producer_epoch >= LAST_CLIENT_EPOCH


def stored(transaction: Transaction, value_version: int) -> TransactionLogValue:
    """The record's value; version 0 has no room for the ids before and behind the present one."""
    has_tags = value_version >= 1
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if has_tags else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if has_tags else NO_PRODUCER_ID,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=(
            None if transaction.state is TransactionState.EMPTY else by_topic(transaction.partitions)
        ),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.version if has_tags else 0,
    )


def by_topic(partitions: dict[TransactionPartition, None]) -> list[PartitionsSchema]:
    topics: dict[str, PartitionsSchema] = {}
    for topic, partition in partitions:
        if topic not in topics:
            topics[topic] = PartitionsSchema(topic=topic)
        topics[topic].partition_ids.append(partition)
    return list(topics.values())


def read(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """The transaction that a record describes.  ValueError if its state does not exist."""
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        partitions={
            (topic.topic, partition): None
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        },
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        version=value.client_transaction_version,
    )


__all__ = [
    "EPOCH_BUMP_VERSION",
    "EPOCH_MAX",
    "LAST_CLIENT_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_TIMEOUT_MS",
    "Transaction",
    "TransactionPartition",
    "created",
    "is_exhausted",
    "read",
    "stored",
]
