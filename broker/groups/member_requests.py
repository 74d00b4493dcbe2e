"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, whatever the kind of the group: commands of the machine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.classic import GROUP_METADATA_VERSION
from broker.groups.kinds import kind_of
from broker.groups.requests import NO_MEMBER_ID, Joined, Joining, Leaving, Left, Synced, Syncing
from broker.groups.states import ANSWERS, GroupState
from protocol.error_codes import ErrorCode
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine

_GONE: Final = ANSWERS[GroupState.DEAD]


def join(
    machine: "GroupMachine", group_id: str, joining: Joining, ticket: Ticket[Joined], now: Moment
) -> Decision:
    """JoinGroup.  A new member may found the group: the record comes first, and then the member."""
    group = machine.groups.get(group_id)
    decision = Decision(tentative=True, asked_by=ticket)
    if group is not None and not group.yields_to_classic:
        members = kind_of(group).classic
        if members is not None:
            return members.join(machine, group, joining, ticket, now)
        decision.reply(ticket, Joined(NO_MEMBER_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return decision
    if joining.member_id != NO_MEMBER_ID:
        decision.reply(ticket, Joined(joining.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        return decision
    if group is not None:
        decision.records += group.tombstones()
    empty = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=now.wall_ms)
    decision.write(GroupMetadataKey(group=group_id), empty, GROUP_METADATA_VERSION)
    decision.then = lambda now: join(machine, group_id, joining, ticket, now)
    return decision


def sync(
    machine: "GroupMachine", group_id: str, syncing: Syncing, ticket: Ticket[Synced], now: Moment
) -> Decision:
    """SyncGroup."""
    group = machine.groups.get(group_id)
    members = None if group is None else kind_of(group).classic
    if members is not None:
        return members.sync(machine, group, syncing, ticket, now)
    decision = Decision()
    decision.reply(ticket, Synced(_GONE.sync))
    return decision


def heartbeat(
    machine: "GroupMachine",
    group_id: str,
    member_id: str,
    instance_id: str | None,
    generation: int,
    ticket: Ticket[ErrorCode],
    now: Moment,
) -> Decision:
    """Heartbeat."""
    group = machine.groups.get(group_id)
    members = None if group is None else kind_of(group).classic
    answer = _GONE.heartbeat
    if members is not None:
        answer = members.heartbeat(machine, group, member_id, instance_id, generation, now)
    decision = Decision()
    decision.reply(ticket, answer)
    return decision


def leave(
    machine: "GroupMachine", group_id: str, leaving: Sequence[Leaving], ticket: Ticket[Left], now: Moment
) -> Decision:
    """LeaveGroup."""
    group = machine.groups.get(group_id)
    members = None if group is None else kind_of(group).classic
    if members is not None:
        return members.leave(machine, group, leaving, ticket, now)
    decision = Decision()
    decision.reply(ticket, Left(codes=(ErrorCode.UNKNOWN_MEMBER_ID,) * len(leaving)))
    return decision
