"""StreamsGroupHeartbeat: how members join, stay in, and leave a streams group (KIP-1071)."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.streams.configured import ConfiguredTopology
from broker.groups.streams.endpoints import endpoints_of
from broker.groups.streams.group import StreamsGroup, TaskReport
from broker.groups.streams.member import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    StreamsMember,
    UserEndpoint,
)
from broker.groups.streams.requests import StreamsBeat, StreamsBeaten
from broker.groups.streams.statuses import StatusDetail, StreamsStatus
from broker.groups.streams.tasks import NOTHING, Tasks, TaskSets, in_order
from broker.groups.streams.topology import is_same_topology, stored_topology
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TaskOffset,
)
from protocol.stored.group_records import StreamsGroupTopologyValue


class _Joining(NamedTuple):
    """Who sends the heartbeat."""

    member: StreamsMember
    replaced: StreamsMember | None = None
    """The static member whose place it takes."""


class _Wait(Enum):
    """Why there is no new assignment yet."""

    FOR_MEMBERS = "Assignment delayed due to the configured initial rebalance delay."
    FOR_INTERVAL = "Assignment delayed due to the configured assignment interval."


def beat(
    group: StreamsGroup, asked: StreamsBeat, *, is_new_group: bool, ticket: Ticket[StreamsBeaten], now: Moment
) -> Decision:
    """A member says that it is there, what it runs and has.

    Raises ``KafkaError`` when nothing comes of it.
    """
    told = asked.told
    decision = Decision(tentative=True)
    statuses: list[StatusDetail] = []
    is_joining = told.member_epoch == JOINING_EPOCH
    if is_joining:
        group.check_room(told.member_id, told.instance_id)
    claimed = _claimed(told)
    member, replaced = _find_or_make(group, told, claimed, decision)
    updated = _updated(member, asked)
    needs_epoch = False
    if updated != member:
        group.write_member(updated, decision)
        # A static member that comes back as it was costs no new assignment.
        needs_epoch = told.instance_id is None or _is_another_worker(member, updated)
    topology = _topology_of(group, told, decision)
    if group.topology is not None and updated.topology_epoch < group.topology.epoch:
        statuses.append(_stale(updated.topology_epoch, group.topology.epoch))
    configured, metadata_hash = group.look_at_topics(topology)
    needs_epoch |= metadata_hash != group.metadata_hash
    validated = -1
    if configured.is_ready:
        validated = topology.epoch
        _check_tasks(configured, told)
    _take_report(group, told)
    needs_epoch |= validated != group.validated_topology_epoch
    settings = group.wanted_assignment_settings()
    needs_epoch |= settings != group.assignment_settings
    epoch = group.group_epoch
    if needs_epoch:
        epoch += 1
        group.write_epoch(epoch, metadata_hash, validated, settings, decision)
    group.topics_are_checked(epoch)
    if group.is_empty:
        group.delay_first_assignment(now)
    target_epoch, target, wait = _assign(group, epoch, updated, replaced, configured, settings, now, decision)
    if wait is not None:
        statuses.append(StatusDetail(StreamsStatus.ASSIGNMENT_DELAYED, wait.value))
    if claimed is not None and not updated.is_reconciled_to(target_epoch):
        _check_named_once(told)
    moved = group.reconcile(updated, target_epoch, target, claimed, now, decision)
    group.restart_session(moved.member_id, now)
    if told.shutdown_application:
        group.ask_for_shutdown(told.member_id)
    times = group.times
    response = StreamsGroupHeartbeatResponse(
        member_id=moved.member_id,
        member_epoch=moved.member_epoch,
        heartbeat_interval_ms=times.heartbeat_interval_ms,
        task_offset_interval_ms=times.task_offset_interval_ms,
        acceptable_recovery_lag=times.acceptable_recovery_lag,
    )
    if is_joining or moved.assigned != member.assigned:
        response.active_tasks = _task_ids({of: list(each) for of, each in moved.assigned.active.items()})
        response.standby_tasks = _task_ids(moved.assigned.standby)
        response.warmup_tasks = _task_ids(moved.assigned.warmup)
    _tell_endpoints(group, member, moved, replaced, told, response, is_new_group=is_new_group)
    if configured.problem is not None:
        statuses.append(configured.problem)
    if group.shutdown_asked_by is not None:
        statuses.append(_shutdown(group.shutdown_asked_by))
    if asked.knows_client_tags_status:
        statuses += _missing_tags(group.times.rack_aware_tags, moved.client_tags)
    response.status = [Status(status_code=of.status, status_detail=of.detail) for of in statuses]
    decision.reply(ticket, StreamsBeaten(response, configured.missing_topics))
    return decision


def _updated(member: StreamsMember, asked: StreamsBeat) -> StreamsMember:
    """The member after what it said; what it left out stays, except for its endpoint when it joins."""
    told = asked.told
    endpoint = member.endpoint
    if told.user_endpoint is not None:
        endpoint = UserEndpoint(told.user_endpoint.host, told.user_endpoint.port)
    elif told.member_epoch == JOINING_EPOCH:
        endpoint = None
    tags = member.client_tags
    if told.client_tags is not None:
        tags = {tag.key: tag.value for tag in told.client_tags}
        if len(tags) < len(told.client_tags):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
    return member._replace(
        instance_id=member.instance_id if told.instance_id is None else told.instance_id,
        rack_id=member.rack_id if told.rack_id is None else told.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if told.rebalance_timeout_ms == -1 else told.rebalance_timeout_ms
        ),
        topology_epoch=member.topology_epoch if told.topology is None else told.topology.epoch,
        client_id=asked.client_id,
        client_host=asked.client_host,
        process_id=member.process_id if told.process_id is None else told.process_id,
        client_tags=tags,
        endpoint=endpoint,
    )


def _is_another_worker(old: StreamsMember, new: StreamsMember) -> bool:
    return (
        old.topology_epoch != new.topology_epoch
        or old.rack_id != new.rack_id
        or old.client_tags != new.client_tags
        or old.process_id != new.process_id
    )


def _claimed(told: StreamsGroupHeartbeatRequest) -> TaskSets | None:
    """The tasks that a member says it has; None if it does not say."""
    if told.active_tasks is None or told.standby_tasks is None or told.warmup_tasks is None:
        return None
    return TaskSets(*map(_all_told, (told.active_tasks, told.standby_tasks, told.warmup_tasks)))


def _all_told(told: Iterable[TaskIds]) -> Tasks:
    """Also if a subtopology is named more than once."""
    found: dict[str, frozenset[int]] = {}
    for each in told:
        found[each.subtopology_id] = found.get(each.subtopology_id, frozenset()).union(each.partitions)
    return found


def _check_named_once(told: StreamsGroupHeartbeatRequest) -> None:
    """Raises UNKNOWN_SERVER_ERROR, as Kafka does, if a subtopology is named twice in a role."""
    for tasks in (told.active_tasks or (), told.standby_tasks or (), told.warmup_tasks or ()):
        if len({each.subtopology_id for each in tasks}) < len(tasks):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


# Who it is


def _find_or_make(
    group: StreamsGroup, told: StreamsGroupHeartbeatRequest, claimed: TaskSets | None, decision: Decision
) -> _Joining:
    is_joining = told.member_epoch == JOINING_EPOCH
    if told.instance_id is not None:
        known = group.static_member(told.instance_id)
        if is_joining and known is not None:
            return _Joining(_replace_static(group, known, told, decision), known)
        if not is_joining:
            member = check_static(known, told.member_id, told.instance_id)
            _check_epoch(member, told.member_epoch, claimed)
            return _Joining(member)
    if is_joining:
        return _Joining(group.members.get(told.member_id) or StreamsMember(told.member_id))
    member = group.member(told.member_id)
    _check_epoch(member, told.member_epoch, claimed)
    return _Joining(member)


def _replace_static(
    group: StreamsGroup, known: StreamsMember, told: StreamsGroupHeartbeatRequest, decision: Decision
) -> StreamsMember:
    """The heir of a member that has gone away for a while."""
    if known.member_epoch != STATIC_LEAVING_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {told.member_id} with instance id {told.instance_id} cannot join the group "
            f"because the instance id is owned by {known.member_id} member.",
        )
    heir = known._replace(member_id=told.member_id, member_epoch=0, previous_member_epoch=0)
    group.write_removal(known.member_id, decision)
    group.write_member(heir, decision)
    group.write_target(heir.member_id, group.target_of(known.member_id), decision)
    group.write_assignment(heir, decision)
    return heir


def check_static(known: StreamsMember | None, member_id: str, instance_id: str) -> StreamsMember:
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


def _check_epoch(member: StreamsMember, epoch: int, claimed: TaskSets | None) -> None:
    """Raises FENCED_MEMBER_EPOCH, unless the epoch is the one that the member was told last.

    The one before is as good, if the member has no tasks that it lost since: the answer with the new epoch
    may not have arrived.
    """
    if epoch == member.member_epoch:
        return
    is_ahead = epoch > member.member_epoch
    if (
        not is_ahead
        and epoch == member.previous_member_epoch
        and claimed is not None
        and claimed.are_within(member.assigned)
    ):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {'greater' if is_ahead else 'smaller'} member epoch ({epoch}) "
        f"than the one known by the group coordinator ({member.member_epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


# What it runs


def _topology_of(
    group: StreamsGroup, told: StreamsGroupHeartbeatRequest, decision: Decision
) -> StreamsGroupTopologyValue:
    """The group's topology, which the first member brings.  Raises INVALID_REQUEST for another one."""
    known = group.topology
    if told.topology is None:
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
        return known
    told_topology = stored_topology(told.topology)
    if known is None:
        group.write_topology(told_topology, decision)
        return told_topology
    if known.epoch > told_topology.epoch or is_same_topology(known, told_topology):
        return known
    raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")


def _check_tasks(configured: ConfiguredTopology, told: StreamsGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST if a member claims tasks that the topology does not make."""
    subtopologies = configured.subtopologies or {}
    for tasks in (*(told.active_tasks or ()), *(told.standby_tasks or ()), *(told.warmup_tasks or ())):
        subtopology = subtopologies.get(tasks.subtopology_id)
        if subtopology is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Subtopology {tasks.subtopology_id} does not exist in the topology.",
            )
        for partition in tasks.partitions:
            if not 0 <= partition < subtopology.task_count:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {tasks.subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.task_count}",
                )


def _take_report(group: StreamsGroup, told: StreamsGroupHeartbeatRequest) -> None:
    """How far the member is; what it does not say has not changed."""
    if told.task_offsets is None and told.task_end_offsets is None:
        return
    known = group.report_of(told.member_id)
    group.reports[told.member_id] = TaskReport(
        known.offsets if told.task_offsets is None else _offsets(told.task_offsets),
        known.end_offsets if told.task_end_offsets is None else _offsets(told.task_end_offsets),
    )


def _offsets(told: Iterable[TaskOffset]) -> Mapping[str, Mapping[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for each in told:
        of_subtopology = found.setdefault(each.subtopology_id, {})
        if each.partition in of_subtopology:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} "
                f"and partition {each.partition}.",
            )
        of_subtopology[each.partition] = each.offset
    return found


# What it should have


def _assign(
    group: StreamsGroup,
    epoch: int,
    updated: StreamsMember,
    replaced: StreamsMember | None,
    configured: ConfiguredTopology,
    settings: Mapping[str, str],
    now: Moment,
    decision: Decision,
) -> tuple[int, TaskSets, _Wait | None]:
    """A target epoch, what the member should have in it, and why the target is not a newer one."""
    if group.is_delayed:
        return group.target_epoch, NOTHING, _Wait.FOR_MEMBERS
    former_id = updated.member_id if replaced is None else replaced.member_id
    if group.target_epoch >= epoch:
        return group.target_epoch, group.target_of(former_id), None
    if group.must_wait_to_assign(now):
        return group.target_epoch, group.target_of(former_id), _Wait.FOR_INTERVAL
    members = {**group.members, updated.member_id: updated}
    targets = dict(group.targets)
    if former_id != updated.member_id:
        del members[former_id]
        if former_id in targets:
            targets[updated.member_id] = targets.pop(former_id)
    new = group.assign(epoch, members, targets, configured, settings, now, decision)
    return epoch, new[updated.member_id], None


def assign_delayed(group: StreamsGroup, now: Moment, decision: Decision) -> None:
    """The time is over in which more members were likely to come."""
    if not group.is_empty and group.configured is not None and not group.must_wait_to_assign(now):
        group.assign(
            group.group_epoch,
            group.members,
            group.targets,
            group.configured,
            group.assignment_settings,
            now,
            decision,
        )


# What it is told


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=of, partitions=partitions) for of, partitions in in_order(tasks)]


def _tell_endpoints(
    group: StreamsGroup,
    old: StreamsMember,
    new: StreamsMember,
    replaced: StreamsMember | None,
    told: StreamsGroupHeartbeatRequest,
    response: StreamsGroupHeartbeatResponse,
    *,
    is_new_group: bool,
) -> None:
    """Whom to ask for which state, unless the member knows already."""
    tasks_changed = new.assigned != old.assigned
    endpoint_changed = new.endpoint != old.endpoint
    if endpoint_changed or (tasks_changed and new.endpoint is not None):
        group.endpoint_epoch += 1
    if group.endpoint_epoch != told.endpoint_information_epoch:
        response.partitions_by_user_endpoint = endpoints_of(group, new, replaced)
    if not is_new_group:
        response.endpoint_information_epoch = group.endpoint_epoch


def _stale(member_epoch: int, group_epoch: int) -> StatusDetail:
    return StatusDetail(
        StreamsStatus.STALE_TOPOLOGY,
        f"The member's topology epoch {member_epoch} is behind the group's topology epoch {group_epoch}.",
    )


def _shutdown(member_id: str) -> StatusDetail:
    return StatusDetail(
        StreamsStatus.SHUTDOWN_APPLICATION,
        f"Streams group member {member_id} encountered a fatal error and requested a shutdown for the entire "
        "application.",
    )


def _missing_tags(wanted: Sequence[str], tags: Mapping[str, str]) -> list[StatusDetail]:
    missing = [tag for tag in wanted if tag not in tags]
    if not missing:
        return []
    detail = (
        f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
        "Configure them via 'client.tag.<tagKey>' in your Streams config."
    )
    return [StatusDetail(StreamsStatus.MISSING_CLIENT_TAGS, detail)]


# Going away


def leave(group: StreamsGroup, told: StreamsGroupHeartbeatRequest, decision: Decision) -> None:
    """Write that a member is gone, or, for a static one, that it has gone away for a while."""
    if told.shutdown_application:
        group.ask_for_shutdown(told.member_id)
    if told.instance_id is None:
        remove(group, group.member(told.member_id), decision)
        return
    member = check_static(group.static_member(told.instance_id), told.member_id, told.instance_id)
    if told.member_epoch != STATIC_LEAVING_EPOCH:
        remove(group, member, decision)
        return
    kept = {subtopology: dict.fromkeys(of, 0) for subtopology, of in member.assigned.active.items()}
    away = member._replace(
        member_epoch=STATIC_LEAVING_EPOCH,
        assigned=member.assigned._replace(active=kept),
        revoking=type(member.revoking)(),
    )
    group.write_assignment(away, decision)


def remove(group: StreamsGroup, member: StreamsMember, decision: Decision) -> None:
    """Write that a member is gone.  What it had is free, and the group has a new epoch."""
    group.write_removal(member.member_id, decision)
    epoch = group.group_epoch + 1
    group.write_epoch(
        epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_settings, decision
    )
    if len(group.members) == 1:
        # Nobody is left to assign to: the next one to come need not wait for an assignment.
        group.write_target_epoch(epoch, 0, decision)
