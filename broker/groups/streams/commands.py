"""What clients and time ask of streams groups: commands of the machine that keeps them."""

from typing import TYPE_CHECKING

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.classic import ClassicGroup
from broker.groups.streams import heartbeats
from broker.groups.streams.described_group import describe_group
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import JOINING_EPOCH
from broker.groups.streams.requests import StreamsBeat, StreamsBeaten
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine


def beat(
    machine: "GroupMachine", group_id: str, asked: StreamsBeat, ticket: Ticket[StreamsBeaten], now: Moment
) -> Decision:
    """StreamsGroupHeartbeat."""
    try:
        if asked.told.member_epoch < 0:
            return _leave(machine, group_id, asked, ticket)
        opening = Decision()
        group = _find_or_make(machine, group_id, opening, asked)
        is_new = machine.groups.get(group_id) is not group
        decision = heartbeats.beat(
            group, asked, is_new_group=group_id not in machine.groups, ticket=ticket, now=now
        )
    except KafkaError as error:
        decision = Decision()
        response = StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
        decision.reply(ticket, StreamsBeaten(response))
        return decision
    decision.records[:0] = opening.records
    # The records of a static member that comes back remove it first; its session, too, if it has the same id.
    may_come_back = asked.told.instance_id is not None and asked.told.member_epoch == JOINING_EPOCH
    if is_new or may_come_back:
        decision.then = lambda now: _begin(machine, group, now)
    if not is_new:
        machine.watch(group)
    return decision


def _find_or_make(
    machine: "GroupMachine", group_id: str, opening: Decision, asked: StreamsBeat
) -> StreamsGroup:
    """The group as it is, or as it is about to become by the records in ``opening``."""
    group = machine.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        return group
    is_joining = asked.told.member_epoch == JOINING_EPOCH
    if group is None and not is_joining:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    if is_joining and isinstance(group, ClassicGroup) and group.is_empty:
        opening.records += group.tombstones()
    elif group is not None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return StreamsGroup(group_id, machine.settings, machine.cluster)


def _begin(machine: "GroupMachine", made: StreamsGroup, now: Moment) -> Decision:
    """The group, or a member, has come into being by its records: what is not stored of it begins."""
    group = machine.groups[made.group_id]
    assert isinstance(group, StreamsGroup)
    group.start_missing_sessions(now)
    if made.is_delayed:
        group.delay_first_assignment(now)
    machine.watch(group)
    return Decision()


def _leave(
    machine: "GroupMachine", group_id: str, asked: StreamsBeat, ticket: Ticket[StreamsBeaten]
) -> Decision:
    group = find(machine, group_id)
    told = asked.told
    decision = Decision(tentative=True)
    heartbeats.leave(group, told, decision)
    response = StreamsGroupHeartbeatResponse(member_id=told.member_id, member_epoch=told.member_epoch)
    decision.reply(ticket, StreamsBeaten(response))
    return decision


def find(machine: "GroupMachine", group_id: str) -> StreamsGroup:
    """Raises GROUP_ID_NOT_FOUND, also for a group of another kind."""
    group = machine.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, StreamsGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return group


def describe(machine: "GroupMachine", group_id: str, ticket: Ticket[DescribedGroup]) -> Decision:
    """StreamsGroupDescribe, one group of it."""
    decision = Decision()
    try:
        decision.reply(ticket, describe_group(find(machine, group_id)))
    except KafkaError as error:
        decision.reply(
            ticket, DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        )
    return decision


def advance(machine: "GroupMachine", group: StreamsGroup, now: Moment) -> Decision:
    """Write off one member that is late, if one is; or make the first assignment."""
    decision = Decision(tentative=True)
    due = group.take_due(now)
    if due is None:
        return decision
    kind, member = due
    if member is None:
        heartbeats.assign_delayed(group, now, decision)
        return decision

    def again(_: ErrorCode, now: Moment) -> Decision:
        group.write_off_later(kind, member, now)
        machine.watch(group)
        return Decision()

    heartbeats.remove(group, member, decision)
    decision.if_refused = again
    return decision
