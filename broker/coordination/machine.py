"""What a shard wants of the machine that it runs."""

from collections.abc import Sequence
from typing import Any, Protocol

from broker.coordination.decision import Decision, Moment, StoredRecord
from broker.coordination.tickets import Ticket


class Machine(Protocol):
    """The state of one partition, and the rules by which it moves.

    Neither socket, task, clock nor random source inside.  Commands read the state and return a
    ``Decision``; what is stored changes in ``apply`` and ``end_transaction`` alone, live and on loading.
    """

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        """Take over a record that is in the log at ``offset``.

        ``producer_id`` is not -1 if it belongs to a transaction, which is still open then.
        """

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """The transaction of ``producer_id`` has ended in this partition."""

    def loaded(self, now: Moment) -> Decision:
        """The whole log is applied.  Soft state, such as session deadlines, starts afresh here."""

    def deadline_ms(self) -> int | None:
        """The steady time at which ``advance`` wants to be called."""

    def advance(self, now: Moment) -> Decision:
        """Do one thing that is due at or before ``now``; ``deadline_ms`` has passed."""

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        """Those whose outcome the machine holds back: they must hear that it is gone."""
