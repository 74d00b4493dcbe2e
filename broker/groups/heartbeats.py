"""ConsumerGroupHeartbeat: how members join, stay in, and leave a consumer group (KIP-848)."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.consumer import ConsumerGroup
from broker.groups.consumer_member import JOINING_EPOCH, STATIC_LEAVING_EPOCH, ConsumerMember
from broker.groups.reconciliation import Claimed, claims_only
from broker.groups.requests import Beat, Beaten
from broker.groups.subscriptions import ResolvedRegex
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)

REGEX_REFRESH_INTERVAL_MIN_MS: Final = 10_000
"""Expressions of a group are not looked up again before: every lookup goes through all topics."""


class RegexChange(NamedTuple):
    """What a member's subscription to a regular expression means for its group."""

    has_changed: bool = False
    is_known: bool = False
    """The group knows its topics, so that a new assignment makes sense."""
    to_resolve: Collection[str] = ()
    """Expressions to look up once this member's answer is on its way."""


def beat(
    group: ConsumerGroup, beat: Beat, ticket: Ticket[Beaten], now: Moment
) -> tuple[Decision, Collection[str]]:
    """A member says that it is there, and what it wants and has.

    Also returns expressions that ``resolve_regexes`` should look up when the records are applied.
    Raises ``KafkaError`` when nothing comes of it.
    """
    decision = Decision(tentative=True)
    group.check_room(beat.member_id, beat.instance_id)
    member = _find_or_make(group, beat, decision)
    updated = _updated(member, beat)
    if updated != member:
        group.write_member(updated, decision)
    names_changed = updated.topic_names != member.topic_names
    regex = change_regex(group, member, updated, now, decision)
    subscription_changed = names_changed or regex.has_changed
    needs_epoch = (
        names_changed or regex.is_known or group.assignor_name() != group.assignor_name(member, updated)
    )
    epoch, subscriptions = group.group_epoch, group.subscriptions
    if needs_epoch or group.must_check_topics():
        epoch, subscriptions = group.bump_epoch(member, updated, decision, is_certain=needs_epoch)
    target_epoch, target = group.assign(epoch, member, updated, subscriptions, now, decision)
    updated = group.reconcile(
        updated,
        target_epoch,
        target,
        beat.claimed,
        now,
        decision,
        subscription_changed=subscription_changed,
    )
    group.restart_session(updated, now)
    tells_all = beat.member_epoch == JOINING_EPOCH or beat.is_full or updated.assigned != member.assigned
    beaten = Beaten(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=group.cluster.consumer_times(group.group_id).heartbeat_interval_ms,
        assignment=updated.assigned if tells_all else None,
    )
    decision.reply(ticket, beaten)
    return decision, regex.to_resolve


def _updated(member: ConsumerMember, beat: Beat) -> ConsumerMember:
    """The member after what it said; what it left out stays.  From now on it speaks the new protocol."""
    return member._replace(
        instance_id=member.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms
        ),
        server_assignor=member.server_assignor if beat.server_assignor is None else beat.server_assignor,
        topic_names=member.topic_names if beat.topic_names is None else frozenset(beat.topic_names),
        topic_regex=member.topic_regex if beat.topic_regex is None else beat.topic_regex,
        client_id=beat.client_id,
        client_host=beat.client_host,
        classic=None,
    )


# Who it is


def _find_or_make(group: ConsumerGroup, beat: Beat, decision: Decision) -> ConsumerMember:
    member_id = beat.member_id or beat.new_member_id
    is_joining = beat.member_epoch == JOINING_EPOCH
    if beat.instance_id is not None:
        member = find_or_make_static(
            group, member_id, beat.instance_id, decision, may_join=is_joining, is_classic=False
        )
    elif is_joining:
        member = group.members.get(member_id) or ConsumerMember(member_id)
    else:
        member = group.member(member_id)
    if not is_joining:
        check_epoch(member, beat.member_epoch, beat.claimed)
    return member


def find_or_make_static(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    decision: Decision,
    *,
    may_join: bool,
    is_classic: bool,
) -> ConsumerMember:
    """The member of this name, a new one, or the heir of one that has gone away for a while."""
    known = group.static_member(instance_id)
    if not may_join:
        return check_static(group, known, member_id, instance_id)
    if known is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not is_classic and known.classic is None and known.member_epoch != STATIC_LEAVING_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because "
            f"the instance id is owned by {known.member_id} member.",
        )
    heir = known._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group.write_removal(known.member_id, decision)
    group.write_member(heir, decision)
    group.write_target(member_id, group.target.of(known.member_id), decision)
    group.write_assignment(heir, decision)
    return heir


def check_static(
    group: ConsumerGroup, known: ConsumerMember | None, member_id: str, instance_id: str
) -> ConsumerMember:
    """The member that has this instance id.  Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for another."""
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} "
            f"was fenced by member {known.member_id}.",
        )
    return known


def check_epoch(member: ConsumerMember, member_epoch: int, claimed: Claimed | None) -> None:
    """Raises FENCED_MEMBER_EPOCH, unless the epoch is the one that the member was told last.

    The one before is as good, if the member has not got anything that it lost since: the answer with the
    new epoch may not have arrived.
    """
    if member_epoch == member.member_epoch:
        return
    is_ahead = member_epoch > member.member_epoch
    if (
        not is_ahead
        and member_epoch == member.previous_member_epoch
        and claims_only(claimed, member.assigned)
    ):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if is_ahead else 'smaller'} member epoch "
        f"({member_epoch}) than the one known by the group coordinator ({member.member_epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


# Regular expressions


def change_regex(
    group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, now: Moment, decision: Decision
) -> RegexChange:
    """What follows from the expression that a member subscribes with now.

    Expressions of a group are looked up together, so that they bring about one new assignment and not many.
    Raises INVALID_REGULAR_EXPRESSION.
    """
    subscribed = group.subscriptions.regexes
    has_changed = old.topic_regex != new.topic_regex
    is_known = is_new = False
    if has_changed:
        if old.topic_regex and subscribed.get(old.topic_regex) == 1:
            group.write_regex_removal(old.topic_regex, decision)
        if new.topic_regex:
            is_new = new.topic_regex not in subscribed
            is_known = not is_new and new.topic_regex in group.regexes
            if is_new:
                from broker.groups import regular_expressions

                regular_expressions.check(new.topic_regex)
        else:
            is_known = bool(old.topic_regex)
    if not is_new and not subscribed:
        return RegexChange(has_changed, is_known)
    wanted = group.subscriptions.copy()
    wanted.replace(old, new)
    due = is_new or _are_due(group, wanted.regexes, now)
    last = next(iter(group.regexes.values()), None)
    if last is not None and now.wall_ms <= last.timestamp_ms + REGEX_REFRESH_INTERVAL_MIN_MS:
        due = False
    return RegexChange(has_changed, is_known, tuple(wanted.regexes) if due else ())


def _are_due(group: ConsumerGroup, wanted: Mapping[str, int], now: Moment) -> bool:
    """Whether a lookup may find something else than the last one."""
    if len(wanted) != len(group.regexes):
        return True
    last = next(iter(group.regexes.values()), None)
    return last is not None and (
        last.version < group.cluster.version_with_new_topics
        or now.wall_ms > last.timestamp_ms + group.settings.regex_refresh_interval_ms
    )


def resolve_regexes(group: ConsumerGroup, patterns: Collection[str], now: Moment) -> Decision:
    """Look up which topics match; if that changes anything, the group gets a new epoch."""
    from broker.groups import regular_expressions

    decision = Decision(tentative=True)
    cluster = group.cluster
    subscriptions = group.subscriptions.copy()
    has_changed = False
    for pattern, topics in regular_expressions.resolve(patterns, cluster.image.topics).items():
        if pattern not in subscriptions.regexes:
            continue
        known = group.regexes.get(pattern)
        old_topics = frozenset() if known is None else known.topics
        if topics != old_topics:
            has_changed = True
            subscriptions.resolve(old_topics, topics)
        resolved = ResolvedRegex(topics, cluster.version, now.wall_ms)
        decision.write(
            ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=pattern),
            ConsumerGroupRegularExpressionValue(
                topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
            ),
        )
    metadata_hash = cluster.metadata_hash(subscriptions.topics())
    if has_changed or metadata_hash != group.metadata_hash:
        group.write_epoch(group.group_epoch + 1, metadata_hash, decision)
    return decision


# Going away


def leave(group: ConsumerGroup, beat: Beat, decision: Decision) -> ConsumerMember | None:
    """Find the member that goes, for ``remove``; None if it goes for a while only, which is written."""
    if beat.instance_id is None:
        return group.member(beat.member_id)
    known = group.static_member(beat.instance_id)
    member = check_static(group, known, beat.member_id, beat.instance_id)
    if beat.member_epoch != STATIC_LEAVING_EPOCH:
        return member
    kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    group.write_assignment(
        member._replace(member_epoch=STATIC_LEAVING_EPOCH, assigned=kept, revoking={}), decision
    )
    return None


def remove(group: ConsumerGroup, members: Collection[ConsumerMember], decision: Decision) -> None:
    """Write that members are gone.  What they held is free, and the group has a new epoch."""
    subscriptions = group.subscriptions.copy()
    for member in members:
        group.write_removal(member.member_id, decision)
        subscriptions.replace(member, None)
    for pattern, resolved in group.regexes.items():
        if pattern not in subscriptions.regexes:
            group.write_regex_removal(pattern, decision)
            subscriptions.resolve(resolved.topics, frozenset())
    epoch = group.group_epoch + 1
    group.write_epoch(epoch, group.cluster.metadata_hash(subscriptions.topics()), decision)
    if len(members) == len(group.members):
        # Nobody is left to assign to: the next one to come need not wait for an assignment.
        group.write_target_epoch(epoch, 0, decision)
