"""A streams group (KIP-1071): instances of an application, which the broker gives its tasks."""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, Literal, NamedTuple

from broker.coordination.deadlines import Deadlines
from broker.coordination.decision import Decision, Moment
from broker.groups.cluster import Cluster, StreamsSettings
from broker.groups.java_order import members_in_kafka_order
from broker.groups.modern import WRITE_OFF_AGAIN_MS
from broker.groups.requests import Committing
from broker.groups.settings import GroupSettings
from broker.groups.streams.assignor import TASK_ASSIGNORS, TaskMember, TaskProblem
from broker.groups.streams.configured import ConfiguredTopology, configure
from broker.groups.streams.member import StreamsMember, StreamsMemberState
from broker.groups.streams.reconciliation import Holders, ProcessesOf, TaskReconciler
from broker.groups.streams.stored import StoredStreamsGroup, TaskHolders
from broker.groups.streams.tasks import NO_TASKS, NOTHING, TaskSets
from broker.groups.streams.topology import required_topics
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import EndpointToPartitions
from protocol.stored.group_records import StreamsGroupTopologyValue


class StreamsGroupState(Enum):
    """The value is the name that clients see.  It follows from epochs and members, and is not stored."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics are missing, or have the wrong number of partitions."""
    ASSIGNING = "Assigning"
    """Something has changed since the target assignment was made."""
    RECONCILING = "Reconciling"
    """Members are on their way to the target assignment."""
    STABLE = "Stable"


class TaskReport(NamedTuple):
    """How far a member's copies are, and where their changelogs end: by subtopology and partition."""

    offsets: Mapping[str, Mapping[int, int]] = NO_TASKS
    end_offsets: Mapping[str, Mapping[int, int]] = NO_TASKS


_NO_REPORT: Final = TaskReport()

TimerKind = Literal["session", "rebalance", "delay"]
"""What must happen in time: a member's heartbeat, and its giving up of tasks; and the first assignment of a
group that nobody was in."""

_DELAY: Final[tuple[TimerKind, str]] = ("delay", "")


class StreamsGroup(StoredStreamsGroup):
    """One group.  Beside what is stored there are deadlines, and what members told and need not be kept.

    What a member asks for is worked out in ``broker.groups.streams.heartbeats``.
    """

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        super().__init__(group_id, settings, cluster)
        self.configured: ConfiguredTopology | None = None
        """What became of the topology with the topics that there were; None if that has to be seen yet."""
        self.reports: dict[str, TaskReport] = {}
        self.shutdown_asked_by: str | None = None
        """The member that wants the application to stop; until the group is empty."""
        self.endpoint_epoch = 0
        """Grows when a member's endpoint changes, or the tasks of a member that has one."""
        self.endpoints: dict[str, tuple[StreamsMember, EndpointToPartitions]] = {}
        """What was told of members' endpoints, and of which members: it holds until they change."""
        self.deadlines: Deadlines[tuple[TimerKind, str]] = Deadlines()
        self.rebalance_epochs: dict[str, int] = {}
        """The epoch that a member must leave before its rebalance deadline."""
        self._checked_epoch = self._checked_version = -1
        """In which group epoch, and in which image, the topics were last compared with ``metadata_hash``."""

    # What commands ask

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.group_epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    def is_in_state(self, states: Collection[str]) -> bool:
        """Kafka looks for NotReady under another name than for the states of other groups."""
        state = self.state
        return ("not_ready" if state is StreamsGroupState.NOT_READY else state.value.lower()) in states

    @property
    def yields_to_classic(self) -> bool:
        """An empty group is of the kind that its first member is of."""
        return not self.members

    @property
    def times(self) -> StreamsSettings:
        return self.cluster.streams_settings(self.group_id)

    def static_member(self, instance_id: str) -> StreamsMember | None:
        member_id = self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def check_room(self, member_id: str, instance_id: str | None) -> None:
        """Raises GROUP_MAX_SIZE_REACHED, unless it is a member's place that is asked for."""
        if instance_id is not None and instance_id in self.static_ids:
            return
        limit = self.settings.streams_max_size
        if len(self.members) >= limit and member_id not in self.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )

    # The topology, and a new group epoch

    def look_at_topics(self, topology: StreamsGroupTopologyValue) -> tuple[ConfiguredTopology, int]:
        """What becomes of the topology with the topics that there are now, and the hash of these."""
        is_new = self.topology is None
        if not is_new and self.configured is not None and not self._may_have_changed():
            return self.configured, self.metadata_hash
        metadata_hash = self.cluster.metadata_hash(
            required_topics(topology) if is_new else self.required_topics
        )
        if is_new or self.configured is None or metadata_hash != self.metadata_hash:
            self.configured = configure(topology, metadata_hash, self._partition_count)
            self.endpoints.clear()
        return self.configured, metadata_hash

    def _may_have_changed(self) -> bool:
        if self._checked_epoch < 0 or self.group_epoch < self._checked_epoch:
            return True  # never since the group was loaded, or what was found could not be written
        if self.cluster.have_changed_since(self._checked_version, self.required_topics):
            return True
        self._checked_version = self.cluster.version
        return False

    def topics_are_checked(self, epoch: int) -> None:
        """What was found is as good as written, with a group epoch."""
        self._checked_epoch = epoch
        self._checked_version = self.cluster.version

    def _partition_count(self, name: str) -> int | None:
        topic = self.cluster.topic(name)
        return None if topic is None else len(topic.partitions)

    def wanted_assignment_settings(self) -> dict[str, str]:
        """What an assignment goes by now, by the names under which it is stored."""
        times = self.times
        wanted = {"num.standby.replicas": str(times.standby_replicas)}
        if times.rack_aware_tags:
            wanted["rack.aware.assignment.tags"] = ",".join(times.rack_aware_tags)
        return wanted

    # The target assignment

    @property
    def is_delayed(self) -> bool:
        """The group has just got its first member: more are likely to come (KIP-1071)."""
        return _DELAY in self.deadlines

    def delay_first_assignment(self, now: Moment) -> None:
        """Somebody joins a group that nobody was in."""
        delay_ms = self.times.initial_rebalance_delay_ms
        if delay_ms:
            self.deadlines.set_if_absent(_DELAY, now.steady_ms + delay_ms)

    def must_wait_to_assign(self, now: Moment) -> bool:
        """Whether the last assignment was made too short a time ago (KIP-1263)."""
        interval_ms = self.times.assignment_interval_ms
        computed_ms = self.target_computed_ms
        return bool(computed_ms and interval_ms) and now.wall_ms < computed_ms + interval_ms

    def assign(
        self,
        epoch: int,
        members: Mapping[str, StreamsMember],
        targets: Mapping[str, TaskSets],
        configured: ConfiguredTopology,
        assignment_settings: Mapping[str, str],
        now: Moment,
        decision: Decision,
    ) -> dict[str, TaskSets]:
        """Make and write the target of ``epoch`` for these members, who had these ``targets`` until now."""
        ordered = members_in_kafka_order(members, self.members)
        new = dict.fromkeys(ordered, NOTHING)
        if configured.is_ready:
            assert configured.subtopologies is not None, "all topics are there"
            problem = TaskProblem(
                {member_id: self._task_member(members[member_id]) for member_id in ordered},
                configured.subtopologies,
                int(assignment_settings["num.standby.replicas"]),
            )
            assigned = TASK_ASSIGNORS[self.times.assignor](problem)
            new = {each: TaskSets(assigned[each].active, assigned[each].standby) for each in ordered}
        for member_id, target in new.items():
            if targets.get(member_id) != target:
                self.write_target(member_id, target, decision)
        self.write_target_epoch(epoch, now.wall_ms, decision)
        return new

    def _task_member(self, member: StreamsMember) -> TaskMember:
        return TaskMember(
            member.process_id,
            {subtopology: frozenset(of) for subtopology, of in member.assigned.active.items()},
            member.assigned.standby,
            self.reports.get(member.member_id, _NO_REPORT).offsets,
        )

    def reconcile(
        self,
        member: StreamsMember,
        target_epoch: int,
        target: TaskSets,
        claimed: TaskSets | None,
        now: Moment,
        decision: Decision,
    ) -> StreamsMember:
        """Take a member one step further towards its target; what it is then is written, if it is new."""
        if member.is_reconciled_to(target_epoch):
            return member
        moved = TaskReconciler(
            member,
            target_epoch=target_epoch,
            target=target,
            claimed=claimed,
            holders=Holders(
                self._processes_of(self.active_holders),
                self._processes_of(self.standby_holders),
                self._processes_of(self.warmup_holders),
            ),
        ).step()
        if moved != member:
            self.write_assignment(moved, decision)
            self._watch_revocation(moved, now)
        return moved

    def _processes_of(self, holders: TaskHolders) -> ProcessesOf:
        def processes(subtopology: str, partition: int) -> Collection[str]:
            return [self.members[each].process_id for each in holders.of(subtopology, partition)]

        return processes

    # What members tell

    def report_of(self, member_id: str) -> TaskReport:
        return self.reports.get(member_id, _NO_REPORT)

    def ask_for_shutdown(self, member_id: str) -> None:
        if self.shutdown_asked_by is None:
            self.shutdown_asked_by = member_id

    def member_has_gone(self, member_id: str) -> None:
        kinds: tuple[TimerKind, ...] = ("session", "rebalance")
        for kind in kinds:
            self.deadlines.cancel((kind, member_id))
        self.rebalance_epochs.pop(member_id, None)
        self.reports.pop(member_id, None)
        self.endpoints.pop(member_id, None)
        if not self.members:
            self.shutdown_asked_by = None

    # Time

    @property
    def wake_ms(self) -> int | None:
        """No deadline is earlier than this steady time; it may itself be too early."""
        return self.deadlines.earliest_ms()

    def start_afresh(self, now: Moment) -> Decision:
        """After loading every session begins anew, and so does the time to give tasks up."""
        self.start_missing_sessions(now)
        for member in self.members.values():
            self._watch_revocation(member, now)
        return Decision()

    def start_missing_sessions(self, now: Moment) -> None:
        """The group has just come into being."""
        for member_id in self.members:
            key: tuple[TimerKind, str] = ("session", member_id)
            self.deadlines.set_if_absent(key, now.steady_ms + self.times.session_timeout_ms)

    def restart_session(self, member_id: str, now: Moment) -> None:
        self.deadlines.set(("session", member_id), now.steady_ms + self.times.session_timeout_ms)

    def _watch_revocation(self, member: StreamsMember, now: Moment) -> None:
        key: tuple[TimerKind, str] = ("rebalance", member.member_id)
        if member.state is StreamsMemberState.UNREVOKED_TASKS:
            self.rebalance_epochs[member.member_id] = member.member_epoch
            self.deadlines.set(key, now.steady_ms + member.rebalance_timeout_ms)
        else:
            self.rebalance_epochs.pop(member.member_id, None)
            self.deadlines.cancel(key)

    def take_due(self, now: Moment) -> tuple[TimerKind, StreamsMember | None] | None:
        """A member that has missed a deadline, and which; or that the first assignment is due, for nobody."""
        while (due := self.deadlines.take_due(now.steady_ms)) is not None:
            kind, member_id = due
            if kind == "delay":
                return kind, None
            member = self.members.get(member_id)
            if member is None:
                self.reports.pop(member_id, None)  # it tried to join, but that could not be written
                continue
            if kind == "rebalance" and self.rebalance_epochs.pop(member_id, None) != member.member_epoch:
                continue  # it has moved on meanwhile
            return kind, member
        return None

    def write_off_later(self, kind: TimerKind, member: StreamsMember, now: Moment) -> None:
        """The log has not taken that the member is gone; meanwhile it may still do what it has missed."""
        if kind == "rebalance":
            self.rebalance_epochs[member.member_id] = member.member_epoch
        self.deadlines.set((kind, member.member_id), now.steady_ms + WRITE_OFF_AGAIN_MS)

    # Offsets

    def check_commit(self, committing: Committing, *, is_transactional: bool = False) -> ErrorCode:
        """Whether a member may commit.

        One that has not heard of its new epoch yet may, for partitions of tasks that it had before.
        """
        epoch = committing.generation
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        if is_transactional and epoch == -1 and not committing.member_id and committing.instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(committing.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_transactional and not committing.knows_member_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        if epoch > member.member_epoch or self.topology is None:
            return ErrorCode.STALE_MEMBER_EPOCH
        subtopologies = self.subtopology_by_source
        may_commit = all(
            offset.topic in subtopologies
            and _given_by(member, epoch, subtopologies[offset.topic], offset.partition)
            for offset in committing.offsets
            if self.settings.allows_metadata(offset.metadata)
        )
        return ErrorCode.NONE if may_commit else ErrorCode.STALE_MEMBER_EPOCH

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether a member may ask for offsets; anybody may who does not say who he is."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        if member_id is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # an epoch of nobody
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else ErrorCode.STALE_MEMBER_EPOCH

    def is_subscribed_to(self, topic: str) -> bool:
        """While somebody is in the group: it reads its sources, and what it repartitions."""
        return bool(self.members) and topic in self.subtopology_by_source

    def retention_began_ms(self, topic: str, commit_timestamp_ms: int) -> int | None:
        """Since when (wall time) an offset counts as unused: since its commit, if nobody reads the topic."""
        return None if self.is_subscribed_to(topic) else commit_timestamp_ms


def _given_by(member: StreamsMember, epoch: int, subtopology: str, partition: int) -> bool:
    """Whether the member had this task in ``epoch`` already, and has it still."""
    given = member.assigned.active.get(subtopology, {}).get(partition)
    if given is None:
        given = member.revoking.active.get(subtopology, {}).get(partition)
    return given is not None and epoch >= given
