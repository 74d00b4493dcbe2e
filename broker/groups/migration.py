"""Online migration (KIP-848): a classic group with members becomes a consumer group, and the reverse."""

from collections.abc import Collection, Sequence

from broker.coordination.decision import Decision, Moment
from broker.groups.classic import GROUP_METADATA_VERSION, ClassicGroup
from broker.groups.classic_members import embedded_assignment
from broker.groups.cluster import Cluster
from broker.groups.consumer import CONSUMER_PROTOCOL_TYPE, ConsumerGroup
from broker.groups.consumer_member import ClassicSide, ConsumerMember, MemberState
from broker.groups.embedded_protocol import read_assignment, read_subscription
from broker.groups.java_order import in_java_order
from broker.groups.member import Member
from broker.groups.protocol_choice import choose_protocol
from broker.groups.requests import NO_MEMBER_ID, Joined, Synced
from broker.groups.settings import GroupSettings
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata


def upgrade(
    classic: ClassicGroup, settings: GroupSettings, cluster: Cluster, decision: Decision
) -> ConsumerGroup:
    """The consumer group that a classic group with members becomes, with its records.

    Raises GROUP_ID_NOT_FOUND, with the reason, if it cannot; and UNKNOWN_SERVER_ERROR, as Kafka does, if it
    has formed no generation yet, or a partition has two owners.  Whoever waits is answered in ``decision``
    even then.
    """
    _check_upgrade(classic, settings)
    for waiting in classic.members:
        # They learn that there is another rebalance, and come back as members of the new group.
        classic.members.answer_join(
            waiting, Joined(waiting.member_id, ErrorCode.REBALANCE_IN_PROGRESS), decision
        )
        classic.members.answer_sync(waiting, Synced(ErrorCode.REBALANCE_IN_PROGRESS), decision)
    group = ConsumerGroup(classic.group_id, settings, cluster)
    generation = classic.generation
    group.group_epoch = group.target.epoch = generation
    try:
        members = [_upgraded(member, classic, cluster) for member in classic.members]
    except DecodeError as error:
        raise _cannot(classic, "because the embedded consumer protocol is malformed") from error
    _check_owners(members)
    decision.write(GroupMetadataKey(group=classic.group_id), None)
    records = Decision()
    for member in members:
        group.write_member(member, records)
    for member in members:
        target = {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}
        group.write_target(member.member_id, target, records)
    for member in members:
        group.write_assignment(member, records)
    for record in records.records:
        group.apply(record.key, record.value)
    group.metadata_hash = cluster.metadata_hash(group.subscriptions.topics())
    # In the order in which a reader can follow: members, the group, what they should have, what they have.
    count = len(members)
    decision.records += records.records[:count]
    group.write_epoch(generation, group.metadata_hash, decision)
    decision.records += records.records[count : 2 * count]
    group.write_target_epoch(generation, 0, decision)
    decision.records += records.records[2 * count :]
    return group


def _check_upgrade(classic: ClassicGroup, settings: GroupSettings) -> None:
    if not settings.consumer_migration.allows_upgrade:
        raise _cannot(classic, "because online upgrade is disabled")
    if classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _cannot(classic, "because the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.consumer_max_size:
        raise _cannot(classic, "because the group size exceeds the consumer group maximum size")


def _cannot(classic: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group {reason}.",
    )


def _check_owners(members: Sequence[ConsumerMember]) -> None:
    """The leader of a classic group may give a partition to several members, but a consumer group may not."""
    owned: set[tuple[bytes, int]] = set()
    for member in members:
        has = {(topic_id, partition) for topic_id, of in member.assigned.items() for partition in of}
        if not owned.isdisjoint(has):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        owned |= has


def _upgraded(member: Member, classic: ClassicGroup, cluster: Cluster) -> ConsumerMember:
    assigned: dict[bytes, dict[int, int]] = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _cannot(
                classic,
                "because an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade",
            )
        for owned in assignment.assigned_partitions:
            topic = cluster.topic(owned.topic)
            if topic is not None:
                assigned[topic.id] = dict.fromkeys(owned.partitions, classic.generation)
    name = classic.protocol_name
    if name not in member.protocol_names:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    subscription = read_subscription(member.metadata(name))
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        classic=ClassicSide(member.session_timeout_ms, member.protocols),
        member_epoch=classic.generation,
        previous_member_epoch=classic.generation,
        state=MemberState.STABLE,
        assigned=assigned,
    )


def downgrade(
    group: ConsumerGroup,
    going: Collection[ConsumerMember],
    heir: ConsumerMember | None,
    now: Moment,
    decision: Decision,
) -> None:
    """Write what makes a classic group of those members that stay, with the targets as their assignments.

    ``heir``, whose records are in the decision already, has taken the place of the last member that spoke
    the new protocol.
    """
    replaced = None if heir is None else group.static_member(heir.instance_id)
    gone = {member.member_id for member in going}
    if replaced is not None and heir is not None:
        gone.add(replaced.member_id)
        decision.records += group.tombstones(instead_of=(replaced.member_id, heir.member_id))
    else:
        decision.records += group.tombstones()
    staying = [member for member in group.members.values() if member.member_id not in gone]
    if heir is not None:
        staying.append(heir)
    decision.write(
        GroupMetadataKey(group=group.group_id),
        _downgraded(group, staying, replaced, now),
        GROUP_METADATA_VERSION,
    )


def _downgraded(
    group: ConsumerGroup,
    members: Sequence[ConsumerMember],
    replaced: ConsumerMember | None,
    now: Moment,
) -> GroupMetadataValue:
    by_id = {member.member_id: member for member in members}
    ordered = [by_id[member_id] for member_id in in_java_order(by_id)]
    protocol = choose_protocol([[name for name, _ in _classic(member).protocols] for member in ordered])
    stored = []
    for member in ordered:
        classic = _classic(member)
        takes_over = replaced is not None and member.instance_id == replaced.instance_id
        target = group.target.of(replaced.member_id if takes_over and replaced else member.member_id)
        owned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in target.items()}
        stored.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=classic.session_timeout_ms,
                subscription=dict(classic.protocols).get(protocol, b""),
                assignment=embedded_assignment(group.cluster, owned, classic),
            )
        )
    return GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        generation=group.group_epoch,
        protocol=protocol,
        leader=stored[0].member_id if stored else NO_MEMBER_ID,
        current_state_timestamp=now.wall_ms,
        members=stored,
    )


def _classic(member: ConsumerMember) -> ClassicSide:
    assert member.classic is not None, f"{member.member_id} does not speak the classic protocol"
    return member.classic
