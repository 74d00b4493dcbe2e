"""What a transactional id is doing, and what may follow."""

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The number stands in records; ``title`` is the name that clients see."""

    EMPTY = 0
    """A producer has its identity, and has begun nothing."""
    ONGOING = 1
    """Partitions have been added.  EndTxn may follow, or the time runs out."""
    PREPARE_COMMIT = 2
    """Committed, for good; markers are being written.  Nearly everything: CONCURRENT_TRANSACTIONS."""
    PREPARE_ABORT = 3
    """Aborted, for good; markers are being written.  Nearly everything: CONCURRENT_TRANSACTIONS."""
    COMPLETE_COMMIT = 4
    """Every partition has its marker.  The next transaction may begin."""
    COMPLETE_ABORT = 5
    """The same after an abort."""
    DEAD = 6
    """The id has expired.  Only on its way out of Kafka's memory, and never in ours."""
    PREPARE_EPOCH_FENCE = 7
    """A producer is being fenced.  Kafka's memory has it until PREPARE_ABORT is written; ours never."""

    @property
    def title(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


NEXT: Final = {
    TransactionState.EMPTY: frozenset(
        # An abort of nothing is how a producer of transactions v2 gets its next epoch (KIP-890).
        {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT}
    ),
    TransactionState.ONGOING: frozenset(
        {TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}
    ),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.COMPLETE_COMMIT}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.COMPLETE_ABORT}),
    TransactionState.COMPLETE_COMMIT: frozenset(
        {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT}
    ),
    TransactionState.COMPLETE_ABORT: frozenset(
        {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT}
    ),
    TransactionState.DEAD: frozenset[TransactionState](),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset[TransactionState](),
}
"""The legal transitions.  From the states of rest an id may also go away, which is no state."""

AT_REST: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)
"""No transaction is open and none is ending: the id may expire."""

ENDING: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""Decided, and markers are due."""

BY_TITLE: Final = {state.title: state for state in TransactionState}
