"""What is stored of a consumer group (KIP-848), and the records that say it."""

from broker.coordination.decision import Decision, StoredRecord
from broker.groups.assignors import Assignment
from broker.groups.cluster import Cluster
from broker.groups.consumer_member import LEAVING_EPOCH, NOTHING_OWNED, ConsumerMember
from broker.groups.modern import ModernGroup
from broker.groups.settings import GroupSettings
from broker.groups.subscriptions import ResolvedRegex, Subscriptions
from broker.groups.target_assignment import (
    INITIAL_EPOCH,
    TargetAssignment,
    read_partitions,
    stored_partitions,
)
from protocol.schema import Message
from protocol.stored.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


class StoredConsumerGroup(ModernGroup[ConsumerMember]):
    """Changes in ``apply`` alone.

    Invariants: nobody holds a partition that somebody else holds, be it that he has to give it up;
    ``subscriptions`` counts what ``members`` and ``regexes`` say.
    """

    kind = "consumer"

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        super().__init__(group_id, settings, cluster)
        self.static_ids: dict[str, str] = {}
        """Member id by instance id."""
        self.target = TargetAssignment()
        self.regexes: dict[str, ResolvedRegex] = {}
        self.subscriptions = Subscriptions()
        self.has_partition_metadata = False
        """A broker before 4.1 wrote a record that the metadata hash has replaced."""
        self.holders: dict[bytes, dict[int, str]] = {}
        """The member that holds a partition, be it that it has to give it up."""
        self.assignor_votes: dict[str, int] = {}
        self.classic_support: dict[str, int] = {}
        """How many of the members that speak the classic protocol offer each name."""
        self.classic_count = 0
        """Members that speak the classic protocol."""

    def member_has_gone(self, member_id: str) -> None:
        """What is not stored of it goes with it."""

    # Reading records

    def apply(self, key: Message, value: Message | None) -> None:
        """What the log says is so; for the key of a group that is gone the machine needs no group."""
        if isinstance(key, ConsumerGroupMemberMetadataKey):
            assert value is None or isinstance(value, ConsumerGroupMemberMetadataValue)
            if value is not None:
                known = self.members.get(key.member_id) or ConsumerMember(key.member_id)
                self._put(known.with_metadata(value))
            else:
                self._remove(key.member_id)
        elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
            self._apply_assignment(key.member_id, value)
        elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
            if value is None:
                self.target.by_member.pop(key.member_id, None)
            else:
                assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
                self.target.by_member[key.member_id] = read_partitions(value.topic_partitions)
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
            # Without a value it may be the end of a group before this one, which was of the same name.
            self.target.epoch = INITIAL_EPOCH if value is None else value.assignment_epoch
            self.target.computed_ms = 0 if value is None else value.assignment_timestamp
        elif isinstance(key, ConsumerGroupRegularExpressionKey):
            assert value is None or isinstance(value, ConsumerGroupRegularExpressionValue)
            self._apply_regex(key.regular_expression, value)
        elif isinstance(key, ConsumerGroupMetadataKey):
            assert isinstance(value, ConsumerGroupMetadataValue)
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash
        else:
            assert isinstance(key, ConsumerGroupPartitionMetadataKey)
            self.has_partition_metadata = value is not None

    def _apply_assignment(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is not None:
            known = self.members.get(member_id) or ConsumerMember(member_id)
            self._put(known.with_assignment(value))
        elif member_id in self.members:
            self._put(
                self.members[member_id]._replace(
                    member_epoch=LEAVING_EPOCH,
                    previous_member_epoch=LEAVING_EPOCH,
                    assigned=NOTHING_OWNED,
                    revoking=NOTHING_OWNED,
                )
            )

    def _apply_regex(self, pattern: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        old = self.regexes.pop(pattern, None)
        new = None
        if value is not None:
            new = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            self.regexes[pattern] = new
        self.subscriptions.resolve(
            frozenset() if old is None else old.topics, frozenset() if new is None else new.topics
        )

    def _put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is not None:
            self._forget_name(old)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self._recount(old, member)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._forget_name(member)
        self._recount(member, None)
        self.member_has_gone(member_id)

    def _forget_name(self, member: ConsumerMember) -> None:
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member.member_id:
            del self.static_ids[member.instance_id]

    def _recount(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        self.subscriptions.replace(old, new)
        if old is not None:
            vote(self.assignor_votes, old.server_assignor, -1)
            self._count_classic(old, -1)
        if new is not None:
            vote(self.assignor_votes, new.server_assignor, 1)
            self._count_classic(new, 1)
        if old is not None and new is not None and old.assigned is new.assigned:
            return  # the record says who it is; on loading, what it held may be another's by now
        if old is not None:
            self._free(old)
        if new is not None:
            self._hold(new)

    def _count_classic(self, member: ConsumerMember, change: int) -> None:
        if member.classic is not None:
            self.classic_count += change
            for name, _ in member.classic.protocols:
                vote(self.classic_support, name, change)

    def _hold(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                if partitions:  # the assignment of a classic group may name a topic and none of it
                    self.holders.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.member_id))

    def _free(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                holders = self.holders.get(topic_id, {})
                for partition in partitions:
                    # On loading, the record by which it gave up can come after that of the next holder:
                    # a later one of its own has replaced it.
                    if holders.get(partition) == member.member_id:
                        del holders[partition]
                if not holders:
                    self.holders.pop(topic_id, None)

    def tombstones(self, *, instead_of: tuple[str, str] | None = None) -> list[StoredRecord]:
        """What removes the group; ``instead_of`` names a member and the heir whose records stand for it."""
        group_id = self.group_id
        old, new = instead_of or ("", "")
        member_ids = [new if member_id == old else member_id for member_id in self.members]
        keys: list[Message] = [
            ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            for member_id in member_ids
        ]
        keys += [
            ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            for member_id in member_ids
        ]
        keys.append(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))
        keys += [
            ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id) for member_id in member_ids
        ]
        keys += [
            ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
            for pattern in self.regexes
        ]
        keys.append(ConsumerGroupPartitionMetadataKey(group_id=group_id))
        keys.append(ConsumerGroupMetadataKey(group_id=group_id))
        return [StoredRecord(key, None) for key in keys]

    # Writing records

    def write_member(self, member: ConsumerMember, decision: Decision) -> None:
        key = ConsumerGroupMemberMetadataKey(group_id=self.group_id, member_id=member.member_id)
        decision.write(key, member.metadata())

    def write_assignment(self, member: ConsumerMember, decision: Decision) -> None:
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id=self.group_id, member_id=member.member_id)
        decision.write(key, member.assignment())

    def write_target(self, member_id: str, target: Assignment, decision: Decision) -> None:
        key = ConsumerGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id)
        value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=stored_partitions(target))
        decision.write(key, value)

    def write_target_epoch(self, epoch: int, computed_ms: int, decision: Decision) -> None:
        key = ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id)
        value = ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=computed_ms
        )
        decision.write(key, value)

    def write_epoch(self, epoch: int, metadata_hash: int, decision: Decision) -> None:
        key = ConsumerGroupMetadataKey(group_id=self.group_id)
        decision.write(key, ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash))

    def write_removal(self, member_id: str, decision: Decision) -> None:
        """A member's records go in this order: a reader that knows what it owns knows who it is."""
        group_id = self.group_id
        decision.write(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
        decision.write(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
        decision.write(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)

    def write_regex_removal(self, pattern: str, decision: Decision) -> None:
        key = ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=pattern)
        decision.write(key, None)


def vote(votes: dict[str, int], name: str | None, change: int) -> None:
    if name is None:
        return
    count = votes.get(name, 0) + change
    if count:
        votes[name] = count
    else:
        del votes[name]
