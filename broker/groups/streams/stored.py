"""What is stored of a streams group (KIP-1071), and the records that say it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from broker.coordination.decision import Decision, StoredRecord
from broker.groups.cluster import Cluster
from broker.groups.modern import ModernGroup
from broker.groups.settings import GroupSettings
from broker.groups.streams.member import LEAVING_EPOCH, StreamsMember
from broker.groups.streams.tasks import NOTHING, NOTHING_OWNED, TaskSets, in_order, told_tasks
from broker.groups.streams.topology import required_topics, source_topics, subtopologies_by_id
from broker.groups.target_assignment import INITIAL_EPOCH
from protocol.schema import Message
from protocol.stored.group_records import (
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberTaskIds,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)

NO_TOPOLOGY_EPOCH = -1


class TaskHolders:
    """The members that have a task in one role, be it that they have to give it up."""

    def __init__(self) -> None:
        self._by_task: dict[tuple[str, int], set[str]] = {}

    def of(self, subtopology: str, partition: int) -> set[str]:
        return self._by_task.get((subtopology, partition), set())

    def add(self, member_id: str, tasks: Iterator[tuple[str, int]]) -> None:
        for task in tasks:
            self._by_task.setdefault(task, set()).add(member_id)

    def remove(self, member_id: str, tasks: Iterator[tuple[str, int]]) -> None:
        for task in tasks:
            members = self._by_task.get(task)
            if members is not None:
                members.discard(member_id)
                if not members:
                    del self._by_task[task]

    def __iter__(self) -> Iterator[tuple[tuple[str, int], set[str]]]:
        return iter(self._by_task.items())


class StoredStreamsGroup(ModernGroup[StreamsMember]):
    """Changes in ``apply`` alone.

    Invariant: ``active_holders`` and the others say what ``members`` have, and have to give up.
    """

    kind = "streams"

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        super().__init__(group_id, settings, cluster)
        self.static_ids: dict[str, str] = {}
        """Member id by instance id."""
        self.topology: StreamsGroupTopologyValue | None = None
        self.subtopology_by_source: Mapping[str, str] = MappingProxyType({})
        """Whose tasks a topic's partitions make."""
        self.required_topics: Sequence[str] = ()
        """All that must be there before anybody gets tasks."""
        self.validated_topology_epoch = NO_TOPOLOGY_EPOCH
        """Of the topology whose topics were all there; -1 if some are not."""
        self.assignment_settings: Mapping[str, str] = MappingProxyType({})
        """What the last assignment was made with, by its names."""
        self.stored_description_epoch = self.failed_description_epoch = NO_TOPOLOGY_EPOCH
        """Which topology a plugin was given the description of (KIP-1331), and which it refused."""
        self.target_epoch = INITIAL_EPOCH
        self.target_computed_ms = 0
        """Wall time; 0 if the next assignment need not wait."""
        self.targets: dict[str, TaskSets] = {}
        self.active_holders = TaskHolders()
        self.standby_holders = TaskHolders()
        self.warmup_holders = TaskHolders()

    def member_has_gone(self, member_id: str) -> None:
        """What is not stored of it goes with it."""

    # Reading records

    def apply(self, key: Message, value: Message | None) -> None:
        """What the log says is so."""
        if isinstance(key, StreamsGroupMemberMetadataKey):
            assert value is None or isinstance(value, StreamsGroupMemberMetadataValue)
            if value is None:
                self._remove(key.member_id)
            else:
                self._put(self._known(key.member_id).with_metadata(value))
        elif isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
            assert value is None or isinstance(value, StreamsGroupCurrentMemberAssignmentValue)
            if value is not None:
                self._put(self._known(key.member_id).with_assignment(value))
            elif key.member_id in self.members:
                self._put(
                    self.members[key.member_id]._replace(
                        member_epoch=LEAVING_EPOCH,
                        previous_member_epoch=LEAVING_EPOCH,
                        assigned=NOTHING_OWNED,
                        revoking=NOTHING_OWNED,
                    )
                )
        elif isinstance(key, StreamsGroupTargetAssignmentMemberKey):
            assert value is None or isinstance(value, StreamsGroupTargetAssignmentMemberValue)
            if value is None:
                self.targets.pop(key.member_id, None)
            else:
                self.targets[key.member_id] = TaskSets(
                    told_tasks(value.active_tasks),
                    told_tasks(value.standby_tasks),
                    told_tasks(value.warmup_tasks),
                )
        elif isinstance(key, StreamsGroupTargetAssignmentMetadataKey):
            assert value is None or isinstance(value, StreamsGroupTargetAssignmentMetadataValue)
            # Without a value it may be the end of a group before this one, which was of the same name.
            self.target_epoch = INITIAL_EPOCH if value is None else value.assignment_epoch
            self.target_computed_ms = 0 if value is None else value.assignment_timestamp
        elif isinstance(key, StreamsGroupTopologyKey):
            assert value is None or isinstance(value, StreamsGroupTopologyValue)
            self._apply_topology(value)
        else:
            assert isinstance(key, StreamsGroupMetadataKey)
            assert isinstance(value, StreamsGroupMetadataValue)
            self._apply_metadata(value)

    def _apply_topology(self, topology: StreamsGroupTopologyValue | None) -> None:
        self.topology = topology
        self.required_topics = () if topology is None else required_topics(topology)
        self.subtopology_by_source = {
            topic: subtopology_id
            for subtopology_id, subtopology in (
                {} if topology is None else subtopologies_by_id(topology)
            ).items()
            for topic in source_topics(subtopology)
        }

    def _apply_metadata(self, value: StreamsGroupMetadataValue) -> None:
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_settings = {each.key: each.value for each in value.last_assignment_configs or ()}
        self.stored_description_epoch = value.stored_description_topology_epoch
        self.failed_description_epoch = value.failed_description_topology_epoch

    def _known(self, member_id: str) -> StreamsMember:
        return self.members.get(member_id) or StreamsMember(member_id)

    def _put(self, member: StreamsMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._forget(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        for tasks in (member.assigned, member.revoking):
            self.active_holders.add(member.member_id, _each(tasks.active))
            self.standby_holders.add(member.member_id, _each(tasks.standby))
            self.warmup_holders.add(member.member_id, _each(tasks.warmup))

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)
            self.member_has_gone(member_id)

    def _forget(self, member: StreamsMember) -> None:
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member.member_id:
            del self.static_ids[member.instance_id]
        for tasks in (member.assigned, member.revoking):
            self.active_holders.remove(member.member_id, _each(tasks.active))
            self.standby_holders.remove(member.member_id, _each(tasks.standby))
            self.warmup_holders.remove(member.member_id, _each(tasks.warmup))

    def target_of(self, member_id: str) -> TaskSets:
        return self.targets.get(member_id, NOTHING)

    # Writing records

    def tombstones(self) -> list[StoredRecord]:
        """What removes the group, except its offsets."""
        group_id = self.group_id
        keys: list[Message] = [
            StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            for member_id in self.members
        ]
        keys += [
            StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            for member_id in self.members
        ]
        keys.append(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id))
        keys += [
            StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            for member_id in self.members
        ]
        keys.append(StreamsGroupMetadataKey(group_id=group_id))
        keys.append(StreamsGroupTopologyKey(group_id=group_id))
        return [StoredRecord(key, None) for key in keys]

    def write_member(self, member: StreamsMember, decision: Decision) -> None:
        key = StreamsGroupMemberMetadataKey(group_id=self.group_id, member_id=member.member_id)
        decision.write(key, member.metadata())

    def write_assignment(self, member: StreamsMember, decision: Decision) -> None:
        key = StreamsGroupCurrentMemberAssignmentKey(group_id=self.group_id, member_id=member.member_id)
        decision.write(key, member.assignment())

    def write_target(self, member_id: str, target: TaskSets, decision: Decision) -> None:
        key = StreamsGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=member_id)
        active, standby, warmup = (
            [
                StreamsGroupTargetAssignmentMemberTaskIds(subtopology_id=of, partitions=partitions)
                for of, partitions in in_order(tasks)
            ]
            for tasks in target
        )
        value = StreamsGroupTargetAssignmentMemberValue(
            active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
        )
        decision.write(key, value)

    def write_target_epoch(self, epoch: int, computed_ms: int, decision: Decision) -> None:
        key = StreamsGroupTargetAssignmentMetadataKey(group_id=self.group_id)
        value = StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=computed_ms
        )
        decision.write(key, value)

    def write_topology(self, topology: StreamsGroupTopologyValue, decision: Decision) -> None:
        decision.write(StreamsGroupTopologyKey(group_id=self.group_id), topology)

    def write_epoch(
        self,
        epoch: int,
        metadata_hash: int,
        validated_topology_epoch: int,
        assignment_settings: Mapping[str, str],
        decision: Decision,
    ) -> None:
        value = StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[
                LastAssignmentConfig(key=name, value=assignment_settings[name])
                for name in sorted(assignment_settings)
            ],
            stored_description_topology_epoch=self.stored_description_epoch,
            failed_description_topology_epoch=self.failed_description_epoch,
        )
        decision.write(StreamsGroupMetadataKey(group_id=self.group_id), value)

    def write_removal(self, member_id: str, decision: Decision) -> None:
        """A member's records go in this order: a reader that knows what it has knows who it is."""
        group_id = self.group_id
        decision.write(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
        decision.write(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
        decision.write(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def _each(tasks: Mapping[str, Iterable[int]]) -> Iterator[tuple[str, int]]:
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield subtopology, partition
