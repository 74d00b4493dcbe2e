"""A consumer group (KIP-848): members that send heartbeats, and partitions that the broker assigns."""

from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Literal

from broker.coordination.deadlines import Deadlines
from broker.coordination.decision import Decision, Moment, StoredRecord
from broker.coordination.tickets import Ticket
from broker.groups.assignors import ASSIGNORS, Assignment, AssignmentProblem, Subscriber
from broker.groups.cluster import Cluster
from broker.groups.consumer_member import LEAVING_EPOCH, NOTHING_OWNED, ConsumerMember, MemberState
from broker.groups.java_order import in_java_order
from broker.groups.reconciliation import Claimed, Reconciler
from broker.groups.requests import (
    Committing,
    ConsumerGroupDescription,
    ConsumerMemberDescription,
    GroupDescription,
)
from broker.groups.settings import GroupSettings
from broker.groups.subscriptions import ResolvedRegex, Subscriptions, topics_of
from broker.groups.target_assignment import (
    INITIAL_EPOCH,
    NOTHING,
    TargetAssignment,
    read_partitions,
    stored_partitions,
)
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
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

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class ConsumerGroupState(Enum):
    """The value is the name that clients see.  It follows from epochs and members, and is not stored."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """Something has changed since the target assignment was made."""
    RECONCILING = "Reconciling"
    """Members are on their way to the target assignment."""
    STABLE = "Stable"


TimerKind = Literal["session", "rebalance", "join", "sync"]
"""What a member must do in time: send a heartbeat, give up partitions; and, in the classic protocol, rejoin
when it has been told to, and ask for its assignment when it has rejoined."""


class ConsumerGroup:
    """One group.  Everything but the deadlines is stored, and changes in ``apply`` alone.

    What a member asks for is worked out in ``broker.groups.heartbeats`` (KIP-848's protocol) and
    ``broker.groups.classic_members`` (the classic one), which know this class and are not known to it.

    Invariants: nobody holds a partition that somebody else holds, be it that he has to give it up;
    ``subscriptions`` counts what ``members`` and ``regexes`` say.
    """

    kind: Final = "consumer"

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        self.group_id = group_id
        self.settings = settings
        self.cluster = cluster
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}
        """Member id by instance id."""
        self.target = TargetAssignment()
        self.regexes: dict[str, ResolvedRegex] = {}
        self.subscriptions = Subscriptions()
        self.deadlines: Deadlines[tuple[TimerKind, str]] = Deadlines()
        self.rebalance_epochs: dict[str, int] = {}
        """The epoch that a member must leave before its rebalance deadline."""
        self.has_partition_metadata = False
        """A broker before 4.1 wrote a record that the metadata hash has replaced."""
        self._holders: dict[bytes, dict[int, str]] = {}
        """The member that holds a partition, be it that it has to give it up."""
        self._assignor_votes: dict[str, int] = {}
        self._classic_support: dict[str, int] = {}
        """How many of the members that speak the classic protocol offer each name."""
        self.classic_count = 0
        """Members that speak the classic protocol."""
        self._checked_epoch = self._checked_version = -1
        """In which group epoch, and in which image, the topics were last compared with ``metadata_hash``."""

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.group_id!r} {self.state.value} epoch {self.group_epoch}>"

    # Stored state

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
            self.target.epoch = LEAVING_EPOCH if value is None else value.assignment_epoch
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
        self.forget_deadlines(member_id)

    def _forget_name(self, member: ConsumerMember) -> None:
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member.member_id:
            del self.static_ids[member.instance_id]

    def _recount(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        self.subscriptions.replace(old, new)
        if old is not None:
            _vote(self._assignor_votes, old.server_assignor, -1)
            self._count_classic(old, -1)
        if new is not None:
            _vote(self._assignor_votes, new.server_assignor, 1)
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
                _vote(self._classic_support, name, change)

    def _hold(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                self._holders.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.member_id))

    def _free(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                holders = self._holders.get(topic_id, {})
                for partition in partitions:
                    # On loading, the record by which it gave up can come after that of the next holder:
                    # a later one of its own has replaced it.
                    if holders.get(partition) == member.member_id:
                        del holders[partition]
                if not holders:
                    self._holders.pop(topic_id, None)

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

    # Records that several commands write

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

    # What commands ask

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.target.epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target.epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        """Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        if instance_id is None:
            return None
        member_id = self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: ConsumerMember) -> Assignment:
        """A member's target, or that of the member whose place it takes."""
        holder = self.static_ids.get(member.instance_id, "") if member.instance_id is not None else ""
        return self.target.of(holder or member.member_id)

    def is_owned(self, topic_id: bytes, partition: int) -> bool:
        """Whether a member holds this partition, be it that it has to give it up."""
        return partition in self._holders.get(topic_id, ())

    def supports_classic(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether somebody who offers these classic protocols may join."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        if not self.members:
            return bool(names)
        return any(self._classic_support.get(name, 0) == self.classic_count for name in names)

    def check_room(self, member_id: str, instance_id: str | None) -> None:
        """Raises GROUP_MAX_SIZE_REACHED, unless it is a member's place that is asked for."""
        if instance_id is not None and instance_id in self.static_ids:
            return
        limit = self.settings.consumer_max_size
        if len(self.members) >= limit and (not member_id or member_id not in self.members):
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )

    # A new group epoch, and what follows

    def must_check_topics(self) -> bool:
        """Whether topics that the group reads may not be what they were at the last ``bump_epoch``."""
        if self._checked_epoch < 0 or self.group_epoch < self._checked_epoch:
            return True  # never since the group was loaded, or what was found could not be written
        if self.cluster.have_changed_since(self._checked_version, self.subscriptions.topics()):
            return True
        self._checked_version = self.cluster.version
        return False

    def bump_epoch(
        self,
        old: ConsumerMember | None,
        new: ConsumerMember | None,
        decision: Decision,
        *,
        is_certain: bool,
    ) -> tuple[int, Subscriptions]:
        """See whether the group needs a new epoch now that ``old`` has become ``new``; return it.

        Unless ``is_certain``, it does if the topics that it reads have changed.
        """
        subscriptions = self.subscriptions.copy()
        subscriptions.replace(old, new)
        metadata_hash = self.cluster.metadata_hash(subscriptions.topics())
        epoch = self.group_epoch
        if is_certain or metadata_hash != self.metadata_hash:
            epoch += 1
            self.write_epoch(epoch, metadata_hash, decision)
        self._checked_epoch = epoch
        self._checked_version = self.cluster.version
        if self.has_partition_metadata:
            decision.write(ConsumerGroupPartitionMetadataKey(group_id=self.group_id), None)
        return epoch, subscriptions

    def assignor_name(self, old: ConsumerMember | None = None, new: ConsumerMember | None = None) -> str:
        """The assignor that most members want, once ``old`` has become ``new``."""
        votes = self._assignor_votes
        if old is not None or new is not None:
            votes = votes.copy()
            _vote(votes, None if old is None else old.server_assignor, -1)
            _vote(votes, None if new is None else new.server_assignor, 1)
        if not votes:
            return self.settings.consumer_assignors[0]
        most = max(votes.values())
        return next(name for name in in_java_order(votes) if votes[name] == most)

    def assign(
        self,
        epoch: int,
        old: ConsumerMember | None,
        new: ConsumerMember,
        subscriptions: Subscriptions,
        now: Moment,
        decision: Decision,
    ) -> tuple[int, Assignment]:
        """Make a new target for ``epoch`` if there is none and it is time; return what ``new`` should have.

        ``old`` has become ``new``, which is not applied yet.  A new member may take another's place.
        """
        times = self.cluster.consumer_times(self.group_id)
        if self.target.epoch >= epoch or not self.target.may_be_replaced(
            times.assignment_interval_ms, now.wall_ms
        ):
            is_named_anew = new.instance_id is not None and new.instance_id not in self.static_ids
            return self.target.epoch, NOTHING if is_named_anew else self.target_of(new)
        members = {**self.members, new.member_id: new}
        former = None if new.instance_id is None else self.static_ids.get(new.instance_id)
        if former is not None and former != new.member_id:
            members.pop(former, None)
        topic_ids: dict[object, set[bytes]] = {}
        problem = AssignmentProblem(
            {member_id: self._subscriber(member, topic_ids) for member_id, member in members.items()},
            self.cluster.partition_count,
            is_homogeneous=subscriptions.are_homogeneous(len(members)),
        )
        assigned = ASSIGNORS[self.assignor_name(old, new)](problem)
        for member_id, target in self.target.changed(assigned):
            self.write_target(member_id, target, decision)
        self.write_target_epoch(epoch, now.wall_ms, decision)
        return epoch, assigned[new.member_id]

    def _subscriber(self, member: ConsumerMember, topic_ids: dict[object, set[bytes]]) -> Subscriber:
        """``topic_ids`` keeps what was looked up: most members read the same."""
        subscription = member.topic_names, member.topic_regex
        found = topic_ids.get(subscription)
        if found is None:
            found = topic_ids[subscription] = self.topic_ids_of(member)
        return Subscriber(member.instance_id, found, self.target_of(member))

    def topic_ids_of(self, member: ConsumerMember) -> set[bytes]:
        """The topics that a member reads, as far as they exist."""
        return self.cluster.topic_ids(topics_of(member, self.regexes))

    def reconcile(
        self,
        member: ConsumerMember,
        target_epoch: int,
        target: Assignment,
        claimed: Claimed | None,
        now: Moment,
        decision: Decision,
        *,
        subscription_changed: bool,
    ) -> ConsumerMember:
        """Take a member one step further towards its target; what it is then is written, if it is new."""
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        moved = Reconciler(
            member,
            target_epoch=target_epoch,
            target=target,
            topic_ids=self.topic_ids_of(member),
            claimed=claimed,
            is_owned=self.is_owned,
        ).step(subscription_changed=subscription_changed)
        if moved != member:
            self.write_assignment(moved, decision)
            if moved.classic is None:
                self._watch_revocation(moved, now)
        return moved

    # Time

    @property
    def wake_ms(self) -> int | None:
        """No deadline is earlier than this steady time; it may itself be too early."""
        return self.deadlines.earliest_ms()

    def start_afresh(self, now: Moment) -> Decision:
        """After loading every session begins anew, and so does the time to give partitions up."""
        self.start_missing_sessions(now)
        for member in self.members.values():
            self._watch_revocation(member, now)
        return Decision()

    def start_missing_sessions(self, now: Moment) -> None:
        """The group has just come into being, here or from a classic one."""
        for member in self.members.values():
            key: tuple[TimerKind, str] = ("session", member.member_id)
            self.deadlines.set_if_absent(key, now.steady_ms + self._session_ms(member))

    def restart_session(self, member: ConsumerMember, now: Moment) -> None:
        self.deadlines.set(("session", member.member_id), now.steady_ms + self._session_ms(member))

    def _session_ms(self, member: ConsumerMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self.cluster.consumer_times(self.group_id).session_timeout_ms

    def _watch_revocation(self, member: ConsumerMember, now: Moment) -> None:
        key: tuple[TimerKind, str] = ("rebalance", member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.rebalance_epochs[member.member_id] = member.member_epoch
            self.deadlines.set(key, now.steady_ms + member.rebalance_timeout_ms)
        else:
            self.rebalance_epochs.pop(member.member_id, None)
            self.deadlines.cancel(key)

    def forget_deadlines(self, member_id: str) -> None:
        kinds: tuple[TimerKind, ...] = ("session", "rebalance", "join", "sync")
        for kind in kinds:
            self.deadlines.cancel((kind, member_id))
        self.rebalance_epochs.pop(member_id, None)

    def take_late_member(self, now: Moment) -> ConsumerMember | None:
        """A member that has missed a deadline, if there is one."""
        while (due := self.deadlines.take_due(now.steady_ms)) is not None:
            kind, member_id = due
            member = self.members.get(member_id)
            if member is None:
                continue
            if kind == "rebalance" and self.rebalance_epochs.pop(member_id, None) != member.member_epoch:
                continue  # it has moved on meanwhile
            return member
        return None

    # Offsets

    def check_commit(self, committing: Committing, *, is_transactional: bool = False) -> ErrorCode:
        """Whether a member may commit.

        One that has not heard of its new epoch yet may, for partitions that it had before (KIP-1251).
        """
        epoch = committing.generation
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        if is_transactional and epoch == -1 and not committing.member_id and committing.instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(committing.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_transactional and member.classic is None and not committing.knows_member_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        if epoch < member.member_epoch and all(
            _given_by(member, epoch, offset.topic_id, offset.partition)
            for offset in committing.offsets
            if self.settings.allows_metadata(offset.metadata)
        ):
            return ErrorCode.NONE
        return self._stale(member)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether a member may ask for offsets; anybody may who does not say who he is."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        if member_id is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # an epoch of nobody
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else self._stale(member)

    def _stale(self, member: ConsumerMember) -> ErrorCode:
        if member.classic is None:
            return ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.ILLEGAL_GENERATION

    def committed(self, member_id: str, now: Moment) -> None:
        """A commit does not keep a session alive."""

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def check_offset_delete(self) -> ErrorCode:
        """Offsets may be deleted, except those of topics that somebody reads."""
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        """Whether the group may be deleted."""
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        """Since when (wall time) an offset counts as unused: since its commit, if nobody reads the topic."""
        return None if self.is_subscribed_to(topic) else commit_timestamp_ms

    # Operators

    def describe(self) -> GroupDescription:
        """What DescribeGroups says: it is for classic groups."""
        return GroupDescription(
            self.group_id,
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Dead",
            message=f"Group {self.group_id} is not a classic group.",
        )

    def summarize(self) -> GroupDescription:
        """What ListGroups shows."""
        return GroupDescription(
            self.group_id, ErrorCode.NONE, self.state.value, CONSUMER_PROTOCOL_TYPE, kind=self.kind
        )

    def describe_consumers(self) -> ConsumerGroupDescription:
        """What ConsumerGroupDescribe shows."""
        return ConsumerGroupDescription(
            self.group_id,
            state=self.state.value,
            group_epoch=self.group_epoch,
            assignment_epoch=self.target.epoch,
            assignor=self.assignor_name(),
            members=tuple(self._describe_members()),
        )

    def _describe_members(self) -> Iterator[ConsumerMemberDescription]:
        for member in self.members.values():
            yield ConsumerMemberDescription(
                member.member_id,
                member.instance_id,
                member.rack_id,
                member.member_epoch,
                member.client_id,
                member.client_host,
                sorted(member.topic_names),
                member.topic_regex,
                _held(member),
                self.target.of(member.member_id),
                is_classic=member.classic is not None,
            )

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        """Nobody waits: every request is answered with its records."""
        return ()


def _vote(votes: dict[str, int], name: str | None, change: int) -> None:
    if name is None:
        return
    count = votes.get(name, 0) + change
    if count:
        votes[name] = count
    else:
        del votes[name]


def _held(member: ConsumerMember) -> dict[bytes, list[int]]:
    """What it has, be it that it must give it up."""
    held: dict[bytes, list[int]] = {}
    for owned in (member.assigned, member.revoking):
        for topic_id, partitions in owned.items():
            held.setdefault(topic_id, []).extend(partitions)
    return held


def _given_by(member: ConsumerMember, epoch: int, topic_id: bytes, partition: int) -> bool:
    """Whether the member had this partition in ``epoch`` already, and has it still."""
    given = member.assigned.get(topic_id, {}).get(partition)
    if given is None:
        given = member.revoking.get(topic_id, {}).get(partition)
    return given is not None and epoch >= given
