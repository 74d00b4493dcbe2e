"""What the transaction coordinator is asked and what it answers, without the versions of the wire."""

from typing import NamedTuple

from broker.transactions.states import TransactionState
from broker.transactions.transaction import NO_TIME, TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


class Identity(NamedTuple):
    """Who writes: a producer id in one of its epochs."""

    producer_id: int
    producer_epoch: int


class Initializing(NamedTuple):
    """One InitProducerId request with a transactional id."""

    timeout_ms: int
    known: Identity | None
    """What the producer had before and wants to go on from (KIP-360)."""
    two_phase_commit: bool = False
    """No timeout: somebody else sees to it that the transaction ends (KIP-939)."""
    keeps_prepared: bool = False
    """The producer wants to find its open transaction again instead of having it aborted (KIP-939)."""


class Identified(NamedTuple):
    """The answer to InitProducerId, and to EndTxn."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class Ending(NamedTuple):
    """One EndTxn request."""

    identity: Identity
    is_commit: bool
    bumps_epoch: bool
    """The producer expects a new epoch with each end (transactions v2)."""


class Verified(NamedTuple):
    """Which partitions are in a transaction: one code for each, unless ``error`` refuses them all."""

    error: ErrorCode = ErrorCode.NONE
    codes: tuple[ErrorCode, ...] = ()


class Described(NamedTuple):
    """One transactional id for DescribeTransactions and ListTransactions."""

    transactional_id: str
    error: ErrorCode = ErrorCode.NONE
    state: TransactionState | None = None
    timeout_ms: int = 0
    start_ms: int = NO_TIME
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: tuple[TransactionPartition, ...] = ()


class Listed(NamedTuple):
    """The answer of ListTransactions from one partition."""

    error: ErrorCode = ErrorCode.NONE
    transactions: tuple[Described, ...] = ()


class MarkersDue(NamedTuple):
    """A transaction has been decided: each of its partitions must get a marker that says how."""

    transactional_id: str
    identity: Identity
    """As the markers carry it."""
    coordinator_epoch: int
    is_commit: bool
    version: int
    """The transaction.version by which the transaction ends."""
    partitions: tuple[TransactionPartition, ...]
