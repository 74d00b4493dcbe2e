"""What clients and time ask of share groups: commands of the machine that keeps them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.assignors import Assignment
from broker.groups.java_order import in_java_order
from broker.groups.requests import (
    Beaten,
    ConsumerGroupDescription,
    ConsumerMemberDescription,
)
from broker.share.group import (
    ASSIGNOR,
    Initialize,
    ShareGroup,
    ShareMember,
    TopicState,
    combined,
    without,
)
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
)

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine

LEAVING_EPOCH: Final = -1


class ShareBeat(NamedTuple):
    """One ShareGroupHeartbeat request."""

    member_id: str
    member_epoch: int
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: Collection[str] | None
    """None: the same as before."""


def beat(
    machine: "GroupMachine", group_id: str, asked: ShareBeat, ticket: Ticket[Beaten], now: Moment
) -> Decision:
    """ShareGroupHeartbeat."""
    try:
        if asked.member_epoch == LEAVING_EPOCH:
            group = find(machine, group_id)
            decision = Decision(tentative=True)
            remove(group, group.member(asked.member_id), decision)
            decision.reply(ticket, Beaten(member_id=asked.member_id, member_epoch=LEAVING_EPOCH))
            return decision
        group = _find_or_make(machine, group_id, may_make=asked.member_epoch == 0)
        decision = _beat(group, asked, ticket, now)
    except KafkaError as error:
        decision = Decision()
        decision.reply(ticket, Beaten(error.code, error.message))
        return decision
    # Also if the records cannot be written: the member is there.
    group.restart_session(asked.member_id, now)
    if machine.groups.get(group_id) is group:
        machine.watch(group)

    def go_on(now: Moment) -> Decision:
        stored = machine.groups.get(group_id)
        if isinstance(stored, ShareGroup) and asked.member_id in stored.members:
            stored.restart_session(asked.member_id, now)
            for wanted in decision.effects:
                stored.asked_ms.update(dict.fromkeys(wanted.start_offsets, now.steady_ms))
            machine.watch(stored)
        return Decision()

    decision.then = go_on
    return decision


def _find_or_make(machine: "GroupMachine", group_id: str, *, may_make: bool) -> ShareGroup:
    group = machine.groups.get(group_id)
    if group is None:
        if not may_make:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroup(group_id, machine.settings, machine.cluster)
    if isinstance(group, ShareGroup):
        return group
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")


def find(machine: "GroupMachine", group_id: str) -> ShareGroup:
    """Raises GROUP_ID_NOT_FOUND, also for a group of another kind."""
    group = machine.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def _beat(group: ShareGroup, asked: ShareBeat, ticket: Ticket[Beaten], now: Moment) -> Decision:
    group.check_room(asked.member_id)
    member = ShareMember(asked.member_id) if asked.member_epoch == 0 else group.member(asked.member_id)
    member = group.members.get(asked.member_id, member)
    _check_epoch(member, asked.member_epoch)
    decision = Decision(tentative=True)
    updated = member._replace(
        rack_id=member.rack_id if asked.rack_id is None else asked.rack_id,
        client_id=asked.client_id,
        client_host=asked.client_host,
        topic_names=member.topic_names if asked.topic_names is None else frozenset(asked.topic_names),
    )
    if updated != member or asked.member_id not in group.members:
        key = ShareGroupMemberMetadataKey(group_id=group.group_id, member_id=updated.member_id)
        decision.write(key, updated.metadata())
    must_bump = updated.topic_names != member.topic_names
    if group.target.epoch >= group.group_epoch:
        must_bump |= group.has_unassigned_states()
    epoch = group.group_epoch
    names = group.topics(instead=updated)
    if must_bump or group.have_topics_changed():
        metadata_hash = group.cluster.metadata_hash(names)
        must_bump |= metadata_hash != group.metadata_hash
        if must_bump:
            epoch += 1
            group.write_epoch(epoch, metadata_hash, decision)
    target_epoch, target = group.assign(epoch, updated, now, decision)
    moved = _reconcile(group, updated, target_epoch, target, subscription_changed=must_bump)
    if moved != updated:
        moved_key = ShareGroupCurrentMemberAssignmentKey(group_id=group.group_id, member_id=moved.member_id)
        decision.write(moved_key, moved.assignment())
    is_told = asked.member_epoch == 0 or asked.topic_names is not None or moved.assigned != member.assigned
    times = group.cluster.share_times(group.group_id)
    decision.reply(
        ticket,
        Beaten(
            member_id=moved.member_id,
            member_epoch=moved.member_epoch,
            heartbeat_interval_ms=times.heartbeat_interval_ms,
            assignment=moved.assigned if is_told else None,
        ),
    )
    _initialize_missing(group, names, epoch, now, decision)
    return decision


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Raises FENCED_MEMBER_EPOCH unless it is the member's epoch, or the one before."""
    known, previous = member.member_epoch, member.previous_member_epoch
    if epoch == 0 or epoch == known or (epoch < known and epoch == previous):
        return
    if epoch > known:
        text = (
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({known}). The member must abandon all its partitions and rejoin."
        )
    else:
        text = (
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({known}), and it does not match the previous member epoch ({previous}). The "
            "member must abandon all its partitions and rejoin."
        )
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, text)


def _reconcile(
    group: ShareGroup,
    member: ShareMember,
    target_epoch: int,
    target: Assignment,
    *,
    subscription_changed: bool,
) -> ShareMember:
    """A member moves to its target at once: partitions may have several readers."""
    if not subscription_changed and member.member_epoch == target_epoch:
        return member
    topic_ids = group.cluster.topic_ids(member.topic_names)
    assigned = {
        topic_id: frozenset(partitions) for topic_id, partitions in target.items() if topic_id in topic_ids
    }
    if target_epoch == member.member_epoch:
        return member._replace(assigned=assigned)
    return member._replace(
        member_epoch=target_epoch, previous_member_epoch=member.member_epoch, assigned=assigned
    )


def _initialize_missing(
    group: ShareGroup, names: Collection[str], epoch: int, now: Moment, decision: Decision
) -> None:
    """Have the state of partitions made that the group is to read."""
    missing = group.missing_states(names, now, group.settings.share_initialize_retry_ms)
    if not missing:
        return
    states = group.states
    group.write_initializing(missing, decision)
    # A topic that has become larger is read from the beginning of its new partitions.
    known = states.initialized.keys() | states.initializing.keys()
    decision.effects.append(
        Initialize(
            group.group_id,
            epoch,
            {
                topic_id: dict.fromkeys(sorted(state.partitions), 0 if topic_id in known else -1)
                for topic_id, state in missing.items()
            },
        )
    )


def remove(group: ShareGroup, member: ShareMember, decision: Decision) -> None:
    """A member is gone."""
    group_id, member_id = group.group_id, member.member_id
    decision.write(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    decision.write(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    decision.write(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    epoch = group.group_epoch + 1
    group.write_epoch(epoch, group.cluster.metadata_hash(group.topics(without=member_id)), decision)
    if len(group.members) == 1:
        group.write_target_epoch(epoch, 0, decision)


def advance(machine: "GroupMachine", group: ShareGroup, now: Moment) -> Decision:
    """Write off one member that is late, if one is."""
    decision = Decision(tentative=True)
    member = group.take_late_member(now)
    if member is not None:

        def again(_: ErrorCode, now: Moment) -> Decision:
            group.write_off_later(member, now)
            machine.watch(group)
            return Decision()

        remove(group, member, decision)
        decision.if_refused = again
    return decision


def describe(machine: "GroupMachine", group_id: str, ticket: Ticket[ConsumerGroupDescription]) -> Decision:
    """ShareGroupDescribe, one group of it."""
    decision = Decision()
    try:
        group = find(machine, group_id)
    except KafkaError as error:
        decision.reply(ticket, ConsumerGroupDescription(group_id, error.code, error.message))
        return decision
    members = tuple(
        ConsumerMemberDescription(
            member.member_id,
            None,
            member.rack_id,
            member.member_epoch,
            member.client_id,
            member.client_host,
            sorted(member.topic_names),
            None,
            {topic_id: sorted(partitions) for topic_id, partitions in member.assigned.items()},
            {},
            is_classic=False,
        )
        for member in map(group.members.__getitem__, in_java_order(group.members))
    )
    found = ConsumerGroupDescription(
        group_id,
        state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target.epoch,
        assignor=ASSIGNOR,
        members=members,
    )
    decision.reply(ticket, found)
    return decision


# What the share coordinator has done


Partitions = Mapping[bytes, Collection[int]]


def initialized(
    machine: "GroupMachine", group_id: str, partitions: Partitions, ticket: Ticket[ErrorCode]
) -> Decision:
    """The state of these partitions is there: members may read them."""
    decision = Decision(tentative=True)
    decision.reply(ticket, ErrorCode.NONE)
    group = machine.groups.get(group_id)
    if isinstance(group, ShareGroup) and partitions:
        states = group.states
        ready = {
            topic_id: TopicState(_name_of(group, topic_id), frozenset(of_topic))
            for topic_id, of_topic in partitions.items()
        }
        group.write_states(
            states._replace(
                initializing=without(states.initializing, partitions),
                initialized=combined(states.initialized, ready),
            ),
            decision,
        )
    return decision


def not_initialized(
    machine: "GroupMachine", group_id: str, partitions: Partitions, ticket: Ticket[ErrorCode]
) -> Decision:
    """The state of these partitions could not be made."""
    decision = Decision(tentative=True)
    decision.reply(ticket, ErrorCode.NONE)
    group = machine.groups.get(group_id)
    if isinstance(group, ShareGroup) and group.states.initializing:
        left = without(group.states.initializing, partitions)
        group.write_states(group.states._replace(initializing=left), decision)
    return decision


def _name_of(group: ShareGroup, topic_id: bytes) -> str:
    topic = group.cluster.topic_of(topic_id)
    return "<UNKNOWN>" if topic is None else topic.name
