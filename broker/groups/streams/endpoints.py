"""Whom to ask about which state (interactive queries): endpoints of members, and what they work on."""

from collections.abc import Iterable, Mapping

from broker.groups.java_order import in_java_order, text_as_java_compares
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition


def endpoints_of(
    group: StreamsGroup, member: StreamsMember, replaced: StreamsMember | None
) -> list[EndpointToPartitions]:
    """Of all members that have one; ``member`` as it is about to become, and without whom it replaces."""
    others = [
        group.members[member_id]
        for member_id in in_java_order(group.members)
        if member_id != member.member_id and (replaced is None or member_id != replaced.member_id)
    ]
    return [_endpoint_of(group, each) for each in (*others, member) if each.endpoint is not None]


def _endpoint_of(group: StreamsGroup, member: StreamsMember) -> EndpointToPartitions:
    member_then, told = group.endpoints.get(member.member_id, (None, None))
    if told is not None and member_then is member:
        return told
    assert member.endpoint is not None
    copies = {
        subtopology: member.assigned.standby.get(subtopology, frozenset())
        | member.assigned.warmup.get(subtopology, frozenset())
        for subtopology in (*member.assigned.standby, *member.assigned.warmup)
    }
    told = EndpointToPartitions(
        user_endpoint=Endpoint(host=member.endpoint.host, port=member.endpoint.port),
        active_partitions=_partitions(group, member.assigned.active),
        standby_partitions=_partitions(group, copies),
    )
    if group.members.get(member.member_id) is member:
        group.endpoints[member.member_id] = member, told
    return told


def _partitions(group: StreamsGroup, tasks: Mapping[str, Iterable[int]]) -> list[TopicPartition]:
    """The source partitions of tasks.  A topic may have fewer partitions than its subtopology has tasks."""
    if group.configured is None or group.configured.subtopologies is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
    found = []
    for subtopology_id in sorted(tasks, key=text_as_java_compares):
        subtopology = group.configured.subtopologies[subtopology_id]
        for name in in_java_order(
            sorted({*subtopology.source_topics, *subtopology.repartition_source_topics})
        ):
            topic = group.cluster.topic(name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            partitions = sorted(each for each in tasks[subtopology_id] if each < len(topic.partitions))
            if partitions:
                found.append(TopicPartition(topic=name, partitions=partitions))
    return found
