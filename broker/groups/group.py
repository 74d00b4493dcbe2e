"""What every kind of group can be asked: nobody has to know which kind it is (``broker.groups.kinds``)."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from broker.coordination.decision import Decision, Moment, StoredRecord
from broker.coordination.tickets import Ticket
from broker.groups.requests import (
    Committing,
    GroupDescription,
    Joined,
    Joining,
    Leaving,
    Left,
    Synced,
    Syncing,
)
from protocol.error_codes import ErrorCode
from protocol.schema import Message

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine


class Group(Protocol):
    """A group of any kind.

    What is stored changes by ``apply`` alone; commands, which each kind has of its own, return records.
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

    def apply(self, key: Message, value: Message | None) -> None:
        """What the log says is so.  The record that ends the group does not come here."""

    def start_afresh(self, now: Moment) -> Decision:
        """The group has just been loaded."""

    def tombstones(self) -> Iterable[StoredRecord]:
        """What removes the group from the log, except its offsets."""

    def waiting_tickets(self) -> Iterable[Ticket[Any]]:
        """Those whose outcome the group holds back."""

    @property
    def yields_to_classic(self) -> bool:
        """A JoinGroup founds a classic group in its place."""

    def forget_topics(self, topic_ids: Collection[bytes], decision: Decision) -> None:
        """These topics are deleted: write what the group has to keep of that."""

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

    @property
    def expires(self) -> bool:
        """The group goes with the last of its offsets when nobody is in it; others wait to be deleted."""

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        """Since when (wall time) an offset counts as unused; None while it must stay."""

    # Operators

    def check_delete(self) -> ErrorCode:
        """Whether the group may be deleted."""

    def is_in_state(self, states: Collection[str]) -> bool:
        """Whether a filter of ListGroups, in lower case, names the group's state."""

    def describe(self) -> GroupDescription:
        """What DescribeGroups shows."""

    def summarize(self) -> GroupDescription:
        """What ListGroups shows."""


class ClassicProtocol(Protocol):
    """What members that speak the classic protocol ask of a kind of group: a module, mostly.

    ``group`` is one of that kind.
    """

    def join(
        self, machine: "GroupMachine", group: Any, joining: Joining, ticket: Ticket[Joined], now: Moment
    ) -> Decision:
        """JoinGroup."""

    def sync(
        self, machine: "GroupMachine", group: Any, syncing: Syncing, ticket: Ticket[Synced], now: Moment
    ) -> Decision:
        """SyncGroup."""

    def heartbeat(
        self,
        machine: "GroupMachine",
        group: Any,
        member_id: str,
        instance_id: str | None,
        generation: int,
        now: Moment,
    ) -> ErrorCode:
        """Heartbeat."""

    def leave(
        self,
        machine: "GroupMachine",
        group: Any,
        leaving: Sequence[Leaving],
        ticket: Ticket[Left],
        now: Moment,
    ) -> Decision:
        """LeaveGroup."""


def tickets_of(groups: Iterable[Group]) -> Sequence[Ticket[Any]]:
    """Everybody who waits for one of these groups."""
    return [ticket for group in groups for ticket in group.waiting_tickets()]
