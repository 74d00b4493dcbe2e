"""ConsumerGroupHeartbeat (68): be a member of a consumer group, and be assigned partitions (KIP-848)."""

from collections.abc import Iterator

from broker.apis.blank_texts import is_blank
from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.client_host import java_address
from broker.groups.protocols import serves_consumer_groups
from broker.groups.requests import Beat, Beaten
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def handle(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse | Waiting[ConsumerGroupHeartbeatResponse]:
    if not serves_consumer_groups(call.services):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    fault = next(find_faults(request, call.version), None)
    if fault is not None:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=fault)
    known = call.services.groups.settings.consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in known:
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.UNSUPPORTED_ASSIGNOR,
            error_message=fitting(
                f"ServerAssignor {request.server_assignor} is not supported. "
                f"Supported assignors: {', '.join(known)}."
            ),
        )
    claimed = request.topic_partitions
    beat = Beat(
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=call.client_id or "",
        client_host=java_address(call.peer.host),
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=request.subscribed_topic_names,
        topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        claimed=None if claimed is None else [(topic.topic_id, topic.partitions) for topic in claimed],
        new_member_id="" if request.member_id else call.services.identifiers.uuid_text(),
    )
    ticket = commands.beat(call.services.groups, request.group_id, beat)
    return answer_of(ticket, answer)


def find_faults(request: ConsumerGroupHeartbeatRequest, version: int) -> Iterator[str]:
    """What makes no sense whatever the group is like, in Kafka's words and order."""
    epoch = request.member_epoch
    members_name_themselves = version >= 1  # KIP-1082
    if (members_name_themselves or epoch > 0 or epoch == -1) and is_blank(request.member_id):
        yield "MemberId can't be empty."
    if is_blank(request.group_id):
        yield "GroupId can't be empty."
    if request.instance_id is not None and is_blank(request.instance_id):
        yield "InstanceId can't be empty."
    if request.rack_id is not None and is_blank(request.rack_id):
        yield "RackId can't be empty."
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            yield "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            yield "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            yield "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == -2:
        if request.instance_id is None:
            yield "InstanceId can't be null."
    elif epoch < -2:
        yield "MemberEpoch is invalid."


def answer(beaten: Beaten) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=beaten.error,
        error_message=fitting(beaten.message),
        member_id=beaten.member_id,
        member_epoch=beaten.member_epoch,
        heartbeat_interval_ms=beaten.heartbeat_interval_ms,
        assignment=(
            None
            if beaten.assignment is None
            else Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in beaten.assignment.items()
                ]
            )
        ),
    )
