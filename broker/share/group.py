"""A share group (KIP-932): members that send heartbeats, and partitions that the broker lets them read."""

from collections.abc import Collection, Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from broker.coordination.deadlines import Deadlines
from broker.coordination.decision import Decision, Moment, StoredRecord
from broker.groups.assignors import Assignment, Subscriber
from broker.groups.cluster import Cluster
from broker.groups.java_order import copied_in_java_order, members_in_kafka_order
from broker.groups.modern import WRITE_OFF_AGAIN_MS, ModernGroup
from broker.groups.requests import Committing
from broker.groups.settings import GroupSettings
from broker.groups.subscriptions import count_names
from broker.groups.target_assignment import (
    INITIAL_EPOCH,
    NOTHING,
    TargetAssignment,
    read_partitions,
    stored_partitions,
)
from broker.share.simple_assignor import assign_simply
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.schema import Message
from protocol.stored.group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentTopicPartitions,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataTopicInfo,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitionsInfo,
)

ASSIGNOR: Final = "simple"
_STABLE: Final = 0
"""The only state that a member can be in: nobody has to give anything up."""


class ShareMember(NamedTuple):
    """Who it is, what it subscribes to, and what it reads.

    ``member_epoch`` is the last one that the member was told, ``previous_member_epoch`` the one before:
    an answer may have been lost.
    """

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    member_epoch: int = 0
    previous_member_epoch: int = -1
    assigned: Assignment = NOTHING

    def metadata(self) -> ShareGroupMemberMetadataValue:
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
        )

    def assignment(self) -> ShareGroupCurrentMemberAssignmentValue:
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=_STABLE,
            assigned_partitions=[
                ShareGroupCurrentMemberAssignmentTopicPartitions(
                    topic_id=topic_id, partitions=sorted(partitions)
                )
                for topic_id, partitions in self.assigned.items()
            ],
        )


class TopicState(NamedTuple):
    """Partitions of a topic whose state exists, or is being made."""

    name: str
    partitions: frozenset[int]


class PartitionStates(NamedTuple):
    """Which share partitions the group has, as far as the share coordinator has been told."""

    initializing: Mapping[bytes, TopicState] = MappingProxyType({})
    initialized: Mapping[bytes, TopicState] = MappingProxyType({})
    deleting: Mapping[bytes, str] = MappingProxyType({})
    """Names by topic id."""

    def stored(self) -> ShareGroupStatePartitionMetadataValue:
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(self.initializing),
            initialized_topics=_infos(self.initialized),
            deleting_topics=[
                ShareGroupStatePartitionMetadataTopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in self.deleting.items()
            ],
        )

    @classmethod
    def read(cls, value: ShareGroupStatePartitionMetadataValue) -> "PartitionStates":
        return cls(
            _read_infos(value.initializing_topics),
            _read_infos(value.initialized_topics),
            {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
        )


class Initialize(NamedTuple):
    """Let the share coordinator make the state of share partitions; effects of a decision."""

    group_id: str
    state_epoch: int
    start_offsets: Mapping[bytes, Mapping[int, int]]
    """By topic id and partition; -1 leaves it to the group's settings."""


class ShareGroup(ModernGroup[ShareMember]):
    """One group.  Everything but deadlines is stored, and changes in ``apply`` alone.

    A partition is assigned once its state is there, which the share coordinator keeps.
    """

    kind = "share"
    expires = False

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        super().__init__(group_id, settings, cluster)
        self.target = TargetAssignment()
        self.states = PartitionStates()
        self.has_states = False
        self.deadlines: Deadlines[str] = Deadlines()
        self.asked_ms: dict[bytes, int] = {}
        """When (steady) the share coordinator was last asked to make the state of a topic's partitions."""
        self._subscribers: dict[str, int] = {}
        """How many members read each topic."""
        self._has_unassigned: bool | None = None
        """What ``has_unassigned_states`` found, until something changes that it depends on."""
        self._checked_version = -1
        """In which image the topics were last compared with ``metadata_hash``."""

    # Stored state

    def apply(self, key: Message, value: Message | None) -> None:
        """What the log says is so."""
        if isinstance(key, ShareGroupMemberMetadataKey):
            assert value is None or isinstance(value, ShareGroupMemberMetadataValue)
            self._has_unassigned = None
            if value is None:
                gone = self.members.pop(key.member_id, None)
                if gone is not None:
                    count_names(self._subscribers, gone.topic_names, -1)
                self.deadlines.cancel(key.member_id)
            else:
                self._put(
                    key.member_id,
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    topic_names=frozenset(value.subscribed_topic_names),
                )
        elif isinstance(key, ShareGroupCurrentMemberAssignmentKey):
            assert value is None or isinstance(value, ShareGroupCurrentMemberAssignmentValue)
            if value is not None:
                self._put(
                    key.member_id,
                    member_epoch=value.member_epoch,
                    previous_member_epoch=value.previous_member_epoch,
                    assigned={
                        each.topic_id: frozenset(each.partitions) for each in value.assigned_partitions
                    },
                )
            elif key.member_id in self.members:
                self._put(key.member_id, member_epoch=-1, previous_member_epoch=-1, assigned=NOTHING)
        elif isinstance(key, ShareGroupTargetAssignmentMemberKey):
            self._has_unassigned = None
            if value is None:
                self.target.by_member.pop(key.member_id, None)
            else:
                assert isinstance(value, ShareGroupTargetAssignmentMemberValue)
                self.target.by_member[key.member_id] = read_partitions(value.topic_partitions)
        elif isinstance(key, ShareGroupTargetAssignmentMetadataKey):
            assert value is None or isinstance(value, ShareGroupTargetAssignmentMetadataValue)
            # Without a value it may be the end of a group before this one, which was of the same name.
            self.target.epoch = INITIAL_EPOCH if value is None else value.assignment_epoch
            self.target.computed_ms = 0 if value is None else value.assignment_timestamp
        elif isinstance(key, ShareGroupStatePartitionMetadataKey):
            assert value is None or isinstance(value, ShareGroupStatePartitionMetadataValue)
            self._has_unassigned = None
            self.has_states = value is not None
            self.states = PartitionStates() if value is None else PartitionStates.read(value)
        else:
            assert isinstance(key, ShareGroupMetadataKey)
            assert isinstance(value, ShareGroupMetadataValue)
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash

    def _put(self, member_id: str, **changes: Any) -> None:
        known = self.members.get(member_id) or ShareMember(member_id)
        changed = self.members[member_id] = known._replace(**changes)
        if changed.topic_names != known.topic_names:
            count_names(self._subscribers, known.topic_names, -1)
            count_names(self._subscribers, changed.topic_names, 1)

    def tombstones(self) -> list[StoredRecord]:
        """What removes the group."""
        group_id = self.group_id
        keys: list[Message] = []
        for member_id in self.members:
            keys.append(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))
        for member_id in self.members:
            keys.append(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))
        keys.append(ShareGroupTargetAssignmentMetadataKey(group_id=group_id))
        for member_id in self.members:
            keys.append(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id))
        keys.append(ShareGroupStatePartitionMetadataKey(group_id=group_id))
        keys.append(ShareGroupMetadataKey(group_id=group_id))
        return [StoredRecord(key, None) for key in keys]

    def write_epoch(self, epoch: int, metadata_hash: int, decision: Decision) -> None:
        value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        decision.write(ShareGroupMetadataKey(group_id=self.group_id), value)

    def write_target_epoch(self, epoch: int, computed_ms: int, decision: Decision) -> None:
        value = ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=computed_ms
        )
        decision.write(ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def write_states(self, states: PartitionStates, decision: Decision) -> None:
        decision.write(ShareGroupStatePartitionMetadataKey(group_id=self.group_id), states.stored())

    def write_initializing(self, more: Mapping[bytes, TopicState], decision: Decision) -> None:
        """The state of these partitions is being made, and what is left of a topic's is not to be deleted."""
        initializing = combined(self.states.initializing, more)
        deleting = {
            topic_id: name for topic_id, name in self.states.deleting.items() if topic_id not in initializing
        }
        self.write_states(self.states._replace(initializing=initializing, deleting=deleting), decision)

    # What commands ask

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def check_room(self, member_id: str) -> None:
        """Raises GROUP_MAX_SIZE_REACHED, unless it is a member that asks."""
        limit = self.settings.share_max_size
        if len(self.members) >= limit and member_id not in self.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {limit} members.",
            )

    def topics(self, *, instead: ShareMember | None = None, without: str = "") -> Set[str]:
        """What members subscribe to, with one as it is about to become, or without one that leaves."""
        apart = self.members.get(without if instead is None else instead.member_id)
        if apart is None:
            names = set(self._subscribers)
        else:
            names = {name for name, count in self._subscribers.items() if count > (name in apart.topic_names)}
        return names if instead is None else names | instead.topic_names

    def have_topics_changed(self) -> bool:
        """Whether topics that the group reads may not be what they were when that was last asked."""
        version = self._checked_version
        self._checked_version = self.cluster.version
        return version < 0 or self.cluster.have_changed_since(version, self.topics())

    def has_unassigned_states(self) -> bool:
        """Whether partitions that are read have their state, and are assigned to nobody."""
        if self._has_unassigned is None:
            self._has_unassigned = self._look_for_unassigned_states()
        return self._has_unassigned

    def _look_for_unassigned_states(self) -> bool:
        names = self.topics()
        assigned: dict[bytes, set[int]] = {}
        for assignment in self.target.by_member.values():
            for topic_id, partitions in assignment.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return bool(self.members) and any(
            state.name in names and state.partitions != assigned.get(topic_id, set())
            for topic_id, state in self.states.initialized.items()
        )

    def assign(
        self, epoch: int, updated: ShareMember, now: Moment, decision: Decision
    ) -> tuple[int, Assignment]:
        """Make a new target for ``epoch`` if there is none and it is time; what ``updated`` should have."""
        interval_ms = self.cluster.share_times(self.group_id).assignment_interval_ms
        if self.target.epoch >= epoch or not self.target.may_be_replaced(interval_ms, now.wall_ms):
            return self.target.epoch, self.target.of(updated.member_id)
        members = {**self.members, updated.member_id: updated}
        subscribers = {
            member_id: Subscriber(
                None, self.cluster.topic_ids(members[member_id].topic_names), self.target.of(member_id)
            )
            for member_id in members_in_kafka_order(members, self.members)
        }
        topic_names = {member.topic_names for member in members.values()}
        same_topics = None
        if len(topic_names) == 1:
            topics = map(self.cluster.topic, copied_in_java_order(sorted(*topic_names)))
            same_topics = [topic.id for topic in topics if topic is not None]
        assigned = assign_simply(
            subscribers,
            {topic_id: state.partitions for topic_id, state in self.states.initialized.items()},
            same_topics,
        )
        for member_id, assignment in self.target.changed(assigned):
            key = ShareGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id)
            value = ShareGroupTargetAssignmentMemberValue(topic_partitions=stored_partitions(assignment))
            decision.write(key, value)
        self.write_target_epoch(epoch, now.wall_ms, decision)
        return epoch, assigned[updated.member_id]

    def missing_states(self, names: Iterable[str], now: Moment, retry_ms: int) -> dict[bytes, TopicState]:
        """Partitions of these topics that have no state, and whose state is not being made."""
        missing: dict[bytes, TopicState] = {}
        for name in names:
            topic = self.cluster.topic(name)
            if topic is None:
                continue
            known: set[int] = set()
            if topic.id in self.states.initialized:
                known |= self.states.initialized[topic.id].partitions
            asked_ms = self.asked_ms.get(topic.id)
            is_asked = asked_ms is not None and now.steady_ms - asked_ms < retry_ms
            if is_asked and topic.id in self.states.initializing:
                known |= self.states.initializing[topic.id].partitions
            partitions = frozenset(range(len(topic.partitions))) - known
            if partitions:
                missing[topic.id] = TopicState(name, partitions)
        return missing

    def forget_topics(self, topic_ids: Collection[bytes], decision: Decision) -> None:
        """Share partitions of these topics are gone, with their state."""
        initializing, initialized, deleting = self.states
        left = PartitionStates(
            {each: state for each, state in initializing.items() if each not in topic_ids},
            {each: state for each, state in initialized.items() if each not in topic_ids},
            {each: name for each, name in deleting.items() if each not in topic_ids},
        )
        if left != self.states:
            self.write_states(left, decision)

    # Time

    @property
    def wake_ms(self) -> int | None:
        return self.deadlines.earliest_ms()

    def start_afresh(self, now: Moment) -> Decision:
        """After loading every session begins anew."""
        for member_id in self.members:
            self.restart_session(member_id, now)
        return Decision()

    def restart_session(self, member_id: str, now: Moment) -> None:
        timeout_ms = self.cluster.share_times(self.group_id).session_timeout_ms
        self.deadlines.set(member_id, now.steady_ms + timeout_ms)

    def take_late_member(self, now: Moment) -> ShareMember | None:
        """A member whose session is over, if there is one."""
        while (member_id := self.deadlines.take_due(now.steady_ms)) is not None:
            member = self.members.get(member_id)
            if member is not None:
                return member
        return None

    def write_off_later(self, member: ShareMember, now: Moment) -> None:
        """The log has not taken that the member is gone; until then a heartbeat saves it."""
        self.deadlines.set(member.member_id, now.steady_ms + WRITE_OFF_AGAIN_MS)

    # Offsets, which share groups do not commit

    def check_commit(self, committing: Committing, *, is_transactional: bool = False) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.topic_names for member in self.members.values())

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        return None


def _infos(topics: Mapping[bytes, TopicState]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=state.name, partitions=sorted(state.partitions))
        for topic_id, state in topics.items()
    ]


def _read_infos(infos: Iterable[TopicPartitionsInfo]) -> dict[bytes, TopicState]:
    return {info.topic_id: TopicState(info.topic_name, frozenset(info.partitions)) for info in infos}


def combined(known: Mapping[bytes, TopicState], more: Mapping[bytes, TopicState]) -> dict[bytes, TopicState]:
    """Both, with the partitions of topics that are in both."""
    found = dict(known)
    for topic_id, state in more.items():
        if topic_id in found:
            state = state._replace(partitions=found[topic_id].partitions | state.partitions)
        found[topic_id] = state
    return found


def without(
    known: Mapping[bytes, TopicState], gone: Mapping[bytes, Collection[int]]
) -> dict[bytes, TopicState]:
    """``known`` without these partitions, and without topics of which none is left."""
    found = {}
    for topic_id, state in known.items():
        left = state.partitions.difference(gone.get(topic_id, ()))
        if left:
            found[topic_id] = state._replace(partitions=left)
    return found
