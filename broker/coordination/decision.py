"""What a machine decides: records for the log, outcomes for those who asked, and what follows."""

from collections.abc import Callable
from typing import Any, NamedTuple

from broker.coordination.tickets import Ticket
from protocol.error_codes import ErrorCode
from protocol.schema import Message
from storage.transaction_verification import Verification


class Moment(NamedTuple):
    """Now, on both clocks."""

    steady_ms: int
    """Milliseconds since an arbitrary moment; never goes back.  Deadlines are counted in it."""
    wall_ms: int
    """Milliseconds since 1970, as records carry them."""


class StoredRecord(NamedTuple):
    """A record of a coordinator's topic, decoded."""

    key: Message
    value: Message | None
    """None is a tombstone: what the key names is gone."""
    version: int = 0
    """Of the value, when it is written."""


class Writer(NamedTuple):
    """The producer in whose transaction records are written."""

    producer_id: int
    producer_epoch: int
    verification: Verification | None
    """What the log gave when the coordinator was asked about the transaction; None if it need not be."""


class Reply(NamedTuple):
    """An outcome, and who is to be told."""

    ticket: Ticket[Any]
    outcome: Any


class Decision:
    """Filled by a machine, carried out by a shard.

    The shard appends ``records`` as one batch, has the machine apply them, and tells ``replies`` when
    the high watermark covers everything that the machine knows by then.  ``then``, if there is one, is
    asked for the next decision after ``records`` are applied.

    ``effects`` are handed on in the same moment as replies, but never refused: a machine that is loaded
    again decides about them again.  Records of a decision with a ``writer`` belong to its transaction, and
    count when that is committed.

    If the records cannot be appended, there are three ways on.  A ``tentative`` decision has changed
    nothing yet: its replies are refused, and so is ``asked_by``, for whom ``then`` would have found an
    outcome.  Otherwise ``if_refused`` says how the machine goes on without the records.  Without either
    the machine no longer knows what is true: the shard drops it and loads it again from the log.
    """

    __slots__ = ("asked_by", "effects", "if_refused", "records", "replies", "tentative", "then", "writer")

    def __init__(
        self,
        *,
        tentative: bool = False,
        asked_by: Ticket[Any] | None = None,
        writer: Writer | None = None,
    ) -> None:
        self.records: list[StoredRecord] = []
        self.replies: list[Reply] = []
        self.effects: list[Any] = []
        self.writer = writer
        self.tentative = tentative
        self.asked_by = asked_by
        self.if_refused: Callable[[ErrorCode, Moment], Decision] | None = None
        self.then: Callable[[Moment], Decision] | None = None

    def write(self, key: Message, value: Message | None, version: int = 0) -> None:
        self.records.append(StoredRecord(key, value, version))

    def reply(self, ticket: Ticket[Any], outcome: Any) -> None:
        self.replies.append(Reply(ticket, outcome))


def in_batches(records: list[StoredRecord], limit: int, last: Decision) -> Decision:
    """Tombstones that need not be written together: ``limit`` at a time, and then ``last``.

    All are tentative, since each batch is true by itself; whoever asked is ``last.asked_by``.
    """
    if not records:
        return last
    decision = Decision(tentative=True, asked_by=last.asked_by)
    decision.records = records[:limit]
    decision.then = lambda _: in_batches(records[limit:], limit, last)
    return decision
