"""ShareGroupHeartbeat (76): be a member of a share group, and be assigned partitions (KIP-932)."""

from collections.abc import Iterator

from broker.apis.blank_texts import is_blank
from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.client_host import java_address
from broker.groups.requests import Beaten
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.acknowledging import MEMBER_ID_LENGTH_MAX, check_enabled
from broker.share.group_commands import LEAVING_EPOCH, ShareBeat
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)


def handle(
    request: ShareGroupHeartbeatRequest, call: Call
) -> ShareGroupHeartbeatResponse | Waiting[ShareGroupHeartbeatResponse]:
    try:
        check_enabled(call)
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code)
    if not request.member_id or len(request.member_id) > MEMBER_ID_LENGTH_MAX:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    fault = next(find_faults(request), None)
    if fault is not None:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=fault)
    beat = ShareBeat(
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        client_id=call.client_id or "",
        client_host=java_address(call.peer.host),
        topic_names=request.subscribed_topic_names,
    )
    return answer_of(commands.beat_share(call.services.groups, request.group_id, beat), answer)


def find_faults(request: ShareGroupHeartbeatRequest) -> Iterator[str]:
    """What makes no sense whatever the group is like, in Kafka's words and order."""
    if is_blank(request.member_id):
        yield "MemberId can't be empty."
    if is_blank(request.group_id):
        yield "GroupId can't be empty."
    if request.rack_id is not None and is_blank(request.rack_id):
        yield "RackId can't be empty."
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        yield "SubscribedTopicNames must be set in first request."
    if request.member_epoch < LEAVING_EPOCH:
        yield "MemberEpoch is invalid."


def answer(beaten: Beaten) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
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
