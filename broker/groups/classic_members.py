"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

While a group migrates, some of its members are consumers that have not been upgraded yet.  For them a
member epoch is a generation, of which they are the only member: they hear that a rebalance is in progress
when their next epoch is ready, or when they have to give partitions up (KIP-848).
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.cluster import Cluster
from broker.groups.consumer import CONSUMER_PROTOCOL_TYPE, ConsumerGroup
from broker.groups.consumer_member import ClassicSide, ConsumerMember, MemberState, OwnedPartitions
from broker.groups.embedded_protocol import read_subscription, read_version, write_assignment
from broker.groups.heartbeats import change_regex, check_static, find_or_make_static
from broker.groups.requests import NO_MEMBER_ID, Joined, Joining, Leaving, Left, Synced, Syncing
from broker.groups.settings import MigrationPolicy
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.stored.consumer_protocol import ConsumerProtocolSubscription


class Rejoined(NamedTuple):
    """What a JoinGroup has come to, before it is answered."""

    member: ConsumerMember
    replaced: ConsumerMember | None
    """The static member whose place it takes; it may have been the last that spoke the new protocol."""
    epoch: int
    """Of the group, with this member."""
    subscription_changed: bool
    claimed: list[tuple[bytes, Sequence[int]]]
    records: Decision
    old: ConsumerMember


def join(
    group: ConsumerGroup, joining: Joining, ticket: Ticket[Joined], now: Moment
) -> tuple[Decision, Rejoined | None]:
    """Let a member in or on.

    If it takes the place of the last member that speaks the new protocol, the decision is not complete:
    the group goes back to the classic protocol, if it may.  ``KafkaError`` when nothing comes of it.
    """
    decision = Decision(tentative=True)
    is_new = joining.member_id == NO_MEMBER_ID
    member_id = joining.new_consumer_id if is_new else joining.member_id
    _check_join(group, member_id, joining)
    if joining.must_rejoin_with_id:
        decision.reply(ticket, Joined(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return decision, None
    replaced = group.static_member(joining.instance_id)
    if joining.instance_id is None:
        member = group.members.get(member_id) or ConsumerMember(member_id)
    else:
        member = find_or_make_static(
            group, member_id, joining.instance_id, decision, may_join=is_new, is_classic=True
        )
    try:
        subscription = read_subscription(joining.protocols[0][1])
    except DecodeError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error
    updated = _updated(member, joining, subscription)
    if updated != member:
        group.write_member(updated, decision)
    regex = change_regex(group, member, updated, now, decision)
    changed = updated.topic_names != member.topic_names or regex.has_changed
    epoch, subscriptions = group.group_epoch, group.subscriptions
    if changed or group.must_check_topics():
        epoch, subscriptions = group.bump_epoch(member, updated, decision, is_certain=changed)
    claimed = _claimed(subscription, group.cluster)
    rejoined = Rejoined(updated, replaced, epoch, changed, claimed, decision, member)
    if replaced is not None and may_downgrade(group, [replaced], joins=1):
        return decision, rejoined
    target_epoch, target = group.assign(epoch, member, updated, subscriptions, now, decision)
    updated = group.reconcile(
        updated, target_epoch, target, claimed, now, decision, subscription_changed=changed
    )
    group.deadlines.cancel(("join", updated.member_id))
    group.restart_session(updated, now)
    group.deadlines.set(("sync", updated.member_id), now.steady_ms + joining.rebalance_timeout_ms)
    decision.reply(ticket, joined(updated))
    return decision, None


def _check_join(group: ConsumerGroup, member_id: str, joining: Joining) -> None:
    if group.settings.consumer_migration is MigrationPolicy.DISABLED:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol "
            "because the group migration is disabled.",
        )
    group.check_room(member_id, joining.instance_id)
    if not group.supports_classic(joining.protocol_type, [name for name, _ in joining.protocols]):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
        )


def _updated(
    member: ConsumerMember, joining: Joining, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    return member._replace(
        instance_id=member.instance_id if joining.instance_id is None else joining.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms
            if joining.rebalance_timeout_ms == -1
            else joining.rebalance_timeout_ms
        ),
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=joining.client_id,
        client_host=joining.client_host,
        classic=ClassicSide(joining.session_timeout_ms, joining.protocols),
    )


def _claimed(
    subscription: ConsumerProtocolSubscription, cluster: Cluster
) -> list[tuple[bytes, Sequence[int]]]:
    return [
        (topic.id, owned.partitions)
        for owned in subscription.owned_partitions
        if (topic := cluster.topic(owned.topic)) is not None
    ]


def joined(member: ConsumerMember) -> Joined:
    """A member's answer to JoinGroup: it learns of no other, and nobody leads."""
    assert member.classic is not None
    return Joined(
        member.member_id,
        generation=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocol_name,
    )


def may_downgrade(group: ConsumerGroup, going: Sequence[ConsumerMember], *, joins: int = 0) -> bool:
    """Whether the group should go back to the classic protocol when these members go: all others speak it."""
    count = len(group.members) - len(going)
    classic_count = group.classic_count - sum(member.classic is not None for member in going)
    return (
        classic_count == count
        and count + joins > 0
        and group.settings.consumer_migration.allows_downgrade
        and count + joins <= group.settings.group_max_size
        and (not joins or going[0].classic is None)
    )


# Members that are there


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return group.member(member_id)
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
        )
    return check_static(group, known, member_id, instance_id)


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicSide]:
    member = _member(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol."
        )
    if generation != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def sync(group: ConsumerGroup, syncing: Syncing, now: Moment) -> Synced:
    """Tell a member what it owns in its epoch."""
    member, classic = _classic_member(group, syncing.member_id, syncing.instance_id, syncing.generation)
    if syncing.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if syncing.protocol_name not in (None, classic.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.target.epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_rejoin(group, member, now)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.deadlines.cancel(("sync", member.member_id))
    group.restart_session(member, now)
    return Synced(
        protocol_type=syncing.protocol_type,
        protocol_name=syncing.protocol_name,
        assignment=embedded_assignment(group.cluster, member.assigned, classic),
    )


def embedded_assignment(cluster: Cluster, assigned: OwnedPartitions, classic: ClassicSide) -> bytes:
    """Partitions as the member's consumer reads them; topics that are gone are left out."""
    named = {
        topic.name: sorted(partitions)
        for topic_id, partitions in assigned.items()
        if (topic := cluster.topic_of(topic_id)) is not None
    }
    return write_assignment(named, read_version(classic.protocols[0][1]))


def heartbeat(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now: Moment
) -> ErrorCode:
    """Keep a session alive, and say whether there is a reason to rejoin."""
    member, _ = _classic_member(group, member_id, instance_id, generation)
    group.restart_session(member, now)
    must_rejoin = (
        member.member_epoch < group.target.epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
    )
    if must_rejoin:
        _expect_rejoin(group, member, now)
    return ErrorCode.REBALANCE_IN_PROGRESS if must_rejoin else ErrorCode.NONE


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    return any(
        partition not in member.assigned.get(topic_id, ()) and group.is_owned(topic_id, partition)
        for topic_id, partitions in group.target.of(member.member_id).items()
        for partition in partitions
    )


def _expect_rejoin(group: ConsumerGroup, member: ConsumerMember, now: Moment) -> None:
    group.deadlines.set_if_absent(("join", member.member_id), now.steady_ms + member.rebalance_timeout_ms)


def find_leaving(group: ConsumerGroup, leaving: Sequence[Leaving]) -> tuple[Left, list[ConsumerMember]]:
    """Who of those that LeaveGroup names is there."""
    codes = []
    found: dict[str, ConsumerMember] = {}
    for who in leaving:
        try:
            if who.instance_id is None:
                member = group.member(who.member_id)
            else:
                known = group.static_member(who.instance_id)
                # An operator removes a static member, and does not know its id.
                asked = who.member_id or ("" if known is None else known.member_id)
                member = check_static(group, known, asked, who.instance_id)
        except KafkaError as error:
            codes.append(error.code)
        else:
            codes.append(ErrorCode.NONE)
            found[member.member_id] = member
    return Left(codes=tuple(codes)), list(found.values())
