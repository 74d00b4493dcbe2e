"""A consumer group (KIP-848): members that send heartbeats, and partitions that the broker assigns."""

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Final, Literal

from broker.coordination.deadlines import Deadlines
from broker.coordination.decision import Decision, Moment
from broker.groups.assignors import ASSIGNORS, Assignment, AssignmentProblem, Subscriber
from broker.groups.cluster import Cluster
from broker.groups.consumer_member import ConsumerMember, MemberState
from broker.groups.consumer_state import StoredConsumerGroup, vote
from broker.groups.java_order import in_java_order, members_in_kafka_order
from broker.groups.modern import WRITE_OFF_AGAIN_MS
from broker.groups.reconciliation import Claimed, Reconciler
from broker.groups.requests import Committing, ConsumerGroupDescription, ConsumerMemberDescription
from broker.groups.settings import GroupSettings
from broker.groups.subscriptions import Subscriptions, topics_of
from broker.groups.target_assignment import NOTHING
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.group_records import ConsumerGroupPartitionMetadataKey

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


class ConsumerGroup(StoredConsumerGroup):
    """One group.  Beside what is stored there are only deadlines.

    What a member asks for is worked out in ``broker.groups.heartbeats`` (KIP-848's protocol) and
    ``broker.groups.classic_members`` (the classic one), which know this class and are not known to it.
    """

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        super().__init__(group_id, settings, cluster)
        self.deadlines: Deadlines[tuple[TimerKind, str]] = Deadlines()
        self.rebalance_epochs: dict[str, int] = {}
        """The epoch that a member must leave before its rebalance deadline."""
        self._checked_epoch = self._checked_version = -1
        """In which group epoch, and in which image, the topics were last compared with ``metadata_hash``."""

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
    def state_name(self) -> str:
        return self.state.value

    @property
    def yields_to_classic(self) -> bool:
        """An empty group is of the kind that its first member is of."""
        return not self.members

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
        return partition in self.holders.get(topic_id, ())

    def supports_classic(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether somebody who offers these classic protocols may join."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        if not self.members:
            return bool(names)
        return any(self.classic_support.get(name, 0) == self.classic_count for name in names)

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
        votes = self.assignor_votes
        if old is not None or new is not None:
            votes = votes.copy()
            vote(votes, None if old is None else old.server_assignor, -1)
            vote(votes, None if new is None else new.server_assignor, 1)
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
            {
                member_id: self._subscriber(members[member_id], topic_ids)
                for member_id in members_in_kafka_order(members, self.members)
            },
            self.cluster.partition_count,
            is_homogeneous=subscriptions.are_homogeneous(len(members)),
        )
        assign = ASSIGNORS.get(self.assignor_name(old, new))
        if assign is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # another broker has it; as Kafka has it
        assigned = assign(problem)
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

    def member_has_gone(self, member_id: str) -> None:
        kinds: tuple[TimerKind, ...] = ("session", "rebalance", "join", "sync")
        for kind in kinds:
            self.deadlines.cancel((kind, member_id))
        self.rebalance_epochs.pop(member_id, None)

    def take_late_member(self, now: Moment) -> tuple[TimerKind, ConsumerMember] | None:
        """A member that has missed a deadline, if there is one, and which."""
        while (due := self.deadlines.take_due(now.steady_ms)) is not None:
            kind, member_id = due
            member = self.members.get(member_id)
            if member is None:
                continue
            if kind == "rebalance" and self.rebalance_epochs.pop(member_id, None) != member.member_epoch:
                continue  # it has moved on meanwhile
            return kind, member
        return None

    def write_off_later(self, kind: TimerKind, member: ConsumerMember, now: Moment) -> None:
        """The log has not taken that the member is gone; meanwhile it may still do what it has missed."""
        if kind == "rebalance":
            self.rebalance_epochs[member.member_id] = member.member_epoch
        self.deadlines.set((kind, member.member_id), now.steady_ms + WRITE_OFF_AGAIN_MS)

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

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        """Since when (wall time) an offset counts as unused: since its commit, if nobody reads the topic."""
        return None if self.is_subscribed_to(topic) else commit_timestamp_ms

    # Operators

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
