"""ShareAcknowledge (79): members of a share group say what they have done with records (KIP-932)."""

from collections.abc import Mapping

from broker.coordination.tickets import Ticket, answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.partitions.leader_hints import leader_hint
from broker.share.acknowledging import begin_acknowledging, check_enabled, check_member
from broker.share.group_settings import group_setting
from broker.share.service import Acknowledged
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, TopicPartition
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

RENEW_VERSION = 2  # KIP-1222


def handle(
    request: ShareAcknowledgeRequest, call: Call
) -> ShareAcknowledgeResponse | Waiting[ShareAcknowledgeResponse]:
    check_enabled(call)
    key = check_member(request.group_id, request.member_id)
    service = call.services.share.service
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = service.sessions.find(key, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        service.sessions.advance(session)
    tickets = begin_acknowledging(
        call, key, request.topics, may_renew=call.version >= RENEW_VERSION, is_renewal=request.is_renew_ack
    )

    def respond_and_close() -> ShareAcknowledgeResponse:
        if request.share_session_epoch == FINAL_EPOCH:
            service.close_session(key)
        return respond(call, key, tickets)

    return answer_of_all(list(tickets.values()), respond_and_close)


def respond(
    call: Call, key: SessionKey, tickets: Mapping[TopicPartition, Ticket[Acknowledged]]
) -> ShareAcknowledgeResponse:
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=group_setting(
            call.services, key.group_id, "share.record.lock.duration.ms"
        )
    )
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for partition, ticket in tickets.items():
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = ShareAcknowledgeTopicResponse(topic_id=partition.topic_id)
            response.responses.append(topic)
        outcome = ticket.outcome
        data = PartitionData(
            partition_index=partition.partition, error_code=outcome.error, error_message=outcome.text
        )
        if outcome.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            add_leader_hint(call, partition, data, response.node_endpoints)
        topic.partitions.append(data)
    return response


def add_leader_hint(
    call: Call, partition: TopicPartition, data: PartitionData, endpoints: list[NodeEndpoint]
) -> None:
    """Say who leads the partition, and where."""
    hint = leader_hint(call, partition)
    if hint is None:
        return
    data.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    node = hint.node
    if node is not None and all(known.node_id != node.id for known in endpoints):
        endpoints.append(NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack))


def error_response(request: ShareAcknowledgeRequest, code: ErrorCode) -> ShareAcknowledgeResponse:
    """Only the code: nothing is said of the partitions."""
    return ShareAcknowledgeResponse(error_code=code)
