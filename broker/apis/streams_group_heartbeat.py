"""StreamsGroupHeartbeat (88): be a member of a streams group, and be assigned tasks (KIP-1071)."""

from broker.apis.blank_texts import is_blank
from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.client_host import java_address
from broker.groups.protocols import serves_streams_groups
from broker.groups.streams.internal_topics import InternalTopics
from broker.groups.streams.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from broker.groups.streams.requests import StreamsBeat, StreamsBeaten
from broker.groups.streams.topology import check_changelogs, check_is_supported
from broker.metadata.topic_names import INTERNAL_TOPICS, fault_in
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)


def handle(
    request: StreamsGroupHeartbeatRequest, call: Call
) -> StreamsGroupHeartbeatResponse | Waiting[StreamsGroupHeartbeatResponse]:
    if not serves_streams_groups(call.services):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        check(request)
    except KafkaError as error:
        return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=fitting(error.message))
    asked = StreamsBeat(
        told=request,
        client_id=call.client_id or "",
        client_host=java_address(call.peer.host),
        knows_client_tags_status=call.version >= 1,  # KIP-1331's version
    )
    groups = call.services.groups
    heartbeat_interval_ms = groups.cluster.streams_settings(request.group_id).heartbeat_interval_ms
    topics = call.services.groups.streams_topics
    return answer_of(
        commands.beat_streams(groups, request.group_id, asked),
        lambda beaten: answer(beaten, topics, 2 * heartbeat_interval_ms),
    )


def check(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise for what makes no sense whatever the group is like, in Kafka's words and order."""
    if request.topology is not None:
        check_topic_names(request.topology)
        check_is_supported(request.topology)
    fault = find_fault(request)
    if fault is None and request.member_epoch == JOINING_EPOCH and request.topology is not None:
        check_changelogs(request.topology)
    fault = fault or find_fault_in_tasks(request)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, fault)


def check_topic_names(topology: Topology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names.update(dict.fromkeys(subtopology.source_topics))
        names.update(dict.fromkeys(subtopology.repartition_sink_topics))
        names.update((topic.name, None) for topic in subtopology.repartition_source_topics)
        names.update((topic.name, None) for topic in subtopology.state_changelog_topics)
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.",
        )
    illegal = [name for name in names if fault_in(name) is not None]
    if illegal:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Topic names {','.join(illegal)} are not valid topic names.",
        )


def find_fault(request: StreamsGroupHeartbeatRequest) -> str | None:
    epoch = request.member_epoch
    if is_blank(request.member_id):
        return "MemberId can't be empty."
    if is_blank(request.group_id):
        return "GroupId can't be empty."
    if request.instance_id is not None and is_blank(request.instance_id):
        return "InstanceId can't be empty."
    if request.rack_id is not None and is_blank(request.rack_id):
        return "RackId can't be empty."
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        for role, tasks in (
            ("Active", request.active_tasks),
            ("Standby", request.standby_tasks),
            ("Warmup", request.warmup_tasks),
        ):
            if tasks is None or tasks:
                return f"{role}Tasks must be empty when (re-)joining."
        if request.topology is None:
            return "Topology must be non-null when (re-)joining."
    elif epoch == STATIC_LEAVING_EPOCH:
        if request.instance_id is None:
            return "InstanceId can't be null."
    elif epoch < STATIC_LEAVING_EPOCH:
        return f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
    return None


def find_fault_in_tasks(request: StreamsGroupHeartbeatRequest) -> str | None:
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(tasks is not None for tasks in roles) and any(tasks is None for tasks in roles):
        return "If one task-type is non-null, all must be non-null."
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return None


def answer(beaten: StreamsBeaten, topics: InternalTopics, retry_ms: int) -> StreamsGroupHeartbeatResponse:
    """What the group says; the topics that it lacks are made behind it."""
    response = beaten.response
    response.error_message = fitting(response.error_message)
    if beaten.missing_topics:
        topics.make(beaten.missing_topics, response, retry_ms)
    return response
