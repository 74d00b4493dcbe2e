"""What clients ask of consumer groups, and what time asks: commands of the machine that keeps them.

They decide which kind of group there is, and turn refusals into answers.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups import classic_members, heartbeats, migration
from broker.groups.classic import ClassicGroup
from broker.groups.consumer import ConsumerGroup
from broker.groups.consumer_member import JOINING_EPOCH, ConsumerMember
from broker.groups.requests import (
    NO_MEMBER_ID,
    Beat,
    Beaten,
    ConsumerGroupDescription,
    Joined,
    Joining,
    Leaving,
    Left,
    Protocols,
    Synced,
    Syncing,
)
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine


# The consumer protocol


def beat(
    machine: "GroupMachine", group_id: str, asked: Beat, ticket: Ticket[Beaten], now: Moment
) -> Decision:
    """ConsumerGroupHeartbeat."""
    opening = Decision()
    try:
        if asked.member_epoch < 0:
            return _leave(machine, group_id, asked, ticket, now)
        group = _find_or_make(machine, group_id, opening, may_make=asked.member_epoch == 0)
        decision, patterns = heartbeats.beat(group, asked, ticket, now)
    except KafkaError as error:
        decision = Decision()
        decision.replies += opening.replies  # nobody waits in the group any more, whatever has become of it
        decision.reply(ticket, Beaten(error.code, error.message))
        return decision
    decision.records[:0] = opening.records
    decision.replies += opening.replies
    is_new = machine.groups.get(group_id) is not group
    # The records of a static member that comes back remove it first; its session, too, if it has the same id.
    may_come_back = asked.instance_id is not None and asked.member_epoch == JOINING_EPOCH
    if is_new or patterns or may_come_back:
        decision.then = lambda now: _go_on(machine, group_id, patterns, now)
    if not is_new:
        machine.watch(group)
    return decision


def _find_or_make(
    machine: "GroupMachine", group_id: str, opening: Decision, *, may_make: bool
) -> ConsumerGroup:
    """The group as it is, or as it is about to become by the records in ``opening``."""
    group = machine.groups.get(group_id)
    if group is None:
        if not may_make:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroup(group_id, machine.settings, machine.cluster)
    if isinstance(group, ConsumerGroup):
        return group
    if may_make and isinstance(group, ClassicGroup):
        if group.is_empty:
            opening.records += group.tombstones()
            return ConsumerGroup(group_id, machine.settings, machine.cluster)
        return migration.upgrade(group, machine.settings, machine.cluster, opening)
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _go_on(machine: "GroupMachine", group_id: str, patterns: Collection[str], now: Moment) -> Decision:
    """The records of a heartbeat are applied, and its answer is on its way."""
    group = machine.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    group.start_missing_sessions(now)
    machine.watch(group)
    return heartbeats.resolve_regexes(group, patterns, now) if patterns else Decision()


def _leave(
    machine: "GroupMachine", group_id: str, asked: Beat, ticket: Ticket[Beaten], now: Moment
) -> Decision:
    group = find(machine, group_id)
    decision = Decision(tentative=True)
    decision.reply(ticket, Beaten(member_id=asked.member_id, member_epoch=asked.member_epoch))
    member = heartbeats.leave(group, asked, decision)
    if member is not None:
        _remove(machine, group, [member], now, decision)
    return decision


def find(machine: "GroupMachine", group_id: str) -> ConsumerGroup:
    """Raises GROUP_ID_NOT_FOUND, also for a group of another kind."""
    group = machine.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def _remove(
    machine: "GroupMachine",
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
    now: Moment,
    decision: Decision,
) -> None:
    """Members are gone.  If all others speak the classic protocol, the group goes back to it."""
    if not members:
        return
    if classic_members.may_downgrade(group, members):
        migration.downgrade(group, members, None, now, decision)
        _end_downgrade(machine, group, decision, must_rebalance=True)
    else:
        heartbeats.remove(group, members, decision)


def _end_downgrade(
    machine: "GroupMachine",
    group: ConsumerGroup,
    decision: Decision,
    *,
    must_rebalance: bool,
    heir: ConsumerMember | None = None,
) -> None:
    protocols: dict[str, Protocols] = {
        member.member_id: member.classic.protocols
        for member in (*group.members.values(), *(() if heir is None else (heir,)))
        if member.classic is not None
    }

    def go_on(now: Moment) -> Decision:
        classic = machine.groups[group.group_id]
        assert isinstance(classic, ClassicGroup)
        following = classic.downgraded(protocols, must_rebalance=must_rebalance, now=now)
        machine.watch(classic)
        return following

    decision.then = go_on


def describe(machine: "GroupMachine", group_id: str, ticket: Ticket[ConsumerGroupDescription]) -> Decision:
    """ConsumerGroupDescribe, one group of it."""
    decision = Decision()
    try:
        decision.reply(ticket, find(machine, group_id).describe_consumers())
    except KafkaError as error:
        decision.reply(ticket, ConsumerGroupDescription(group_id, error.code, error.message))
    return decision


def advance(machine: "GroupMachine", group: ConsumerGroup, now: Moment) -> Decision:
    """Write off one member that is late, if one is."""
    decision = Decision(tentative=True)
    late = group.take_late_member(now)
    if late is not None:
        kind, member = late

        def again(_: ErrorCode, now: Moment) -> Decision:
            group.write_off_later(kind, member, now)
            machine.watch(group)
            return Decision()

        _remove(machine, group, [member], now, decision)
        decision.if_refused = again
    return decision


# The classic protocol


def join(
    machine: "GroupMachine", group: ConsumerGroup, joining: Joining, ticket: Ticket[Joined], now: Moment
) -> Decision:
    """JoinGroup."""
    try:
        decision, downgrading = classic_members.join(group, joining, ticket, now)
    except KafkaError as error:
        decision = Decision()
        decision.reply(ticket, Joined(NO_MEMBER_ID, error.code))
        return decision
    if downgrading is not None:
        _join_and_downgrade(machine, group, downgrading, ticket, now)
    machine.watch(group)
    return decision


def _join_and_downgrade(
    machine: "GroupMachine",
    group: ConsumerGroup,
    rejoined: classic_members.Rejoined,
    ticket: Ticket[Joined],
    now: Moment,
) -> None:
    """The last member that spoke the new protocol has come back with the old one."""
    decision, member = rejoined.records, rejoined.member
    is_stale = group.target.epoch < rejoined.epoch
    if not is_stale:
        member = group.reconcile(
            member,
            group.target.epoch,
            group.target_of(member),
            rejoined.claimed,
            now,
            decision,
            subscription_changed=rejoined.subscription_changed,
        )
    migration.downgrade(group, (), member, now, decision)
    decision.reply(ticket, classic_members.joined(member))
    _end_downgrade(machine, group, decision, must_rebalance=is_stale, heir=member)


def sync(
    machine: "GroupMachine", group: ConsumerGroup, syncing: Syncing, ticket: Ticket[Synced], now: Moment
) -> Decision:
    """SyncGroup."""
    decision = Decision()
    try:
        decision.reply(ticket, classic_members.sync(group, syncing, now))
    except KafkaError as error:
        decision.reply(ticket, Synced(error.code))
    machine.watch(group)
    return decision


def heartbeat(
    machine: "GroupMachine",
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    now: Moment,
) -> ErrorCode:
    """Heartbeat."""
    try:
        return classic_members.heartbeat(group, member_id, instance_id, generation, now)
    except KafkaError as error:
        return error.code
    finally:
        machine.watch(group)


def leave(
    machine: "GroupMachine",
    group: ConsumerGroup,
    leaving: Sequence[Leaving],
    ticket: Ticket[Left],
    now: Moment,
) -> Decision:
    """LeaveGroup."""
    decision = Decision(tentative=True)
    left, members = classic_members.find_leaving(group, leaving)
    decision.reply(ticket, left)
    _remove(machine, group, members, now, decision)
    return decision
