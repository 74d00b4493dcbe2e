"""What every kind of group can be asked: the machine of a shard knows no more of most of them."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from broker.coordination.decision import Decision, Moment, StoredRecord
from broker.coordination.tickets import Ticket
from broker.groups.requests import Committing, GroupDescription
from protocol.error_codes import ErrorCode


class Group(Protocol):
    """A group of any kind.

    What is stored changes by records alone; ``advance`` and the commands, which each kind has of its own,
    return them.
    """

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> str:
        """The name that clients see: ``classic``, ``consumer`` and so on."""

    @property
    def is_empty(self) -> bool:
        """Nobody is a member."""

    @property
    def wake_ms(self) -> int | None:
        """No deadline is earlier than this steady time; it may itself be too early."""

    def start_afresh(self, now: Moment) -> Decision:
        """The group has just been loaded."""

    def tombstones(self) -> Iterable[StoredRecord]:
        """What removes the group from the log, except its offsets."""

    def waiting_tickets(self) -> Iterable[Ticket[Any]]:
        """Those whose outcome the group holds back."""

    # Offsets

    def check_commit(self, committing: Committing, *, is_transactional: bool = False) -> ErrorCode:
        """Whether these offsets may be committed."""

    def committed(self, member_id: str, now: Moment) -> None:
        """They may, in the name of this member."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether offsets may be asked for in the name of this member, or, None, of nobody."""

    def check_offset_delete(self) -> ErrorCode:
        """Whether offsets may be deleted at all; those of subscribed topics may not, in any case."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the group's members read ``topic``."""

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        """Since when (wall time) an offset counts as unused; None while it must stay."""

    # Operators

    def check_delete(self) -> ErrorCode:
        """Whether the group may be deleted."""

    def describe(self) -> GroupDescription:
        """What DescribeGroups shows."""

    def summarize(self) -> GroupDescription:
        """What ListGroups shows."""


def tickets_of(groups: Iterable[Group]) -> Sequence[Ticket[Any]]:
    """Everybody who waits for one of these groups."""
    return [ticket for group in groups for ticket in group.waiting_tickets()]
