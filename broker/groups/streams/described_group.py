"""A streams group as StreamsGroupDescribe shows it."""

from collections.abc import Iterable, Mapping

from broker.groups.java_order import in_java_order, text_as_java_compares
from broker.groups.streams.describing import describe_configured, describe_told
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.tasks import Tasks, in_order
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    TaskIds,
    TaskOffset,
    Topology,
)


def describe_group(group: StreamsGroup) -> DescribedGroup:
    """All but its topology's description in words (KIP-1331), of which the broker keeps none."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        topology=_describe_topology(group),
        members=[
            _describe_member(group, group.members[member_id]) for member_id in in_java_order(group.members)
        ],
        assignor_name=group.times.assignor,
    )


def _describe_topology(group: StreamsGroup) -> Topology:
    configured = group.configured
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        return describe_configured(configured.epoch, configured.subtopologies)
    if group.topology is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
    return describe_told(group.topology)


def _describe_member(group: StreamsGroup, member: StreamsMember) -> Member:
    report = group.report_of(member.member_id)
    target = group.target_of(member.member_id)
    endpoint = member.endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=member.client_tags[key]) for key in in_java_order(member.client_tags)
        ],
        task_offsets=_offsets(report.offsets),
        task_end_offsets=_offsets(report.end_offsets),
        assignment=_assignment(
            {of: list(each) for of, each in member.assigned.active.items()},
            member.assigned.standby,
            member.assigned.warmup,
        ),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
    )


def _assignment(active: Mapping[str, Iterable[int]], standby: Tasks, warmup: Tasks) -> Assignment:
    return Assignment(
        active_tasks=_task_ids(active), standby_tasks=_task_ids(standby), warmup_tasks=_task_ids(warmup)
    )


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=of, partitions=partitions) for of, partitions in in_order(tasks)]


def _offsets(offsets: Mapping[str, Mapping[int, int]]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=of, partition=partition, offset=offsets[of][partition])
        for of in sorted(offsets, key=text_as_java_compares)
        for partition in sorted(offsets[of])
    ]
