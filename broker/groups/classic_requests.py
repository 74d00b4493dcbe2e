"""What clients ask of classic groups, and what time asks: commands of the machine that keeps them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.classic import ClassicGroup
from broker.groups.requests import Joined, Joining, Leaving, Left, Synced, Syncing
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine


def join(
    machine: "GroupMachine",
    group: ClassicGroup,
    joining: Joining,
    ticket: Ticket[Joined],
    now: Moment,
) -> Decision:
    """JoinGroup."""
    decision = group.join(joining, ticket, now)
    machine.watch(group)
    return decision


def sync(
    machine: "GroupMachine",
    group: ClassicGroup,
    syncing: Syncing,
    ticket: Ticket[Synced],
    now: Moment,
) -> Decision:
    """SyncGroup."""
    decision = group.sync(syncing, ticket, now)
    machine.watch(group)
    return decision


def heartbeat(
    machine: "GroupMachine",
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    now: Moment,
) -> ErrorCode:
    """Heartbeat."""
    error = group.heartbeat(member_id, instance_id, generation, now)
    machine.watch(group)
    return error


def leave(
    machine: "GroupMachine",
    group: ClassicGroup,
    leaving: Sequence[Leaving],
    ticket: Ticket[Left],
    now: Moment,
) -> Decision:
    """LeaveGroup."""
    decision = group.leave(leaving, ticket, now)
    machine.watch(group)
    return decision


def advance(machine: "GroupMachine", group: ClassicGroup, now: Moment) -> Decision:
    """Do what is due at or before ``now``."""
    return group.advance(now)
