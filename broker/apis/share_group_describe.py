"""ShareGroupDescribe (77): the state and the members of share groups (KIP-932)."""

from collections.abc import Collection, Mapping

from broker.apis.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of_all
from broker.groups import commands
from broker.groups.requests import ConsumerGroupDescription
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.share.acknowledging import check_enabled
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def handle(
    request: ShareGroupDescribeRequest, call: Call
) -> ShareGroupDescribeResponse | Waiting[ShareGroupDescribeResponse]:
    try:
        check_enabled(call)
    except KafkaError as error:
        return error_response(request, error.code)
    group_ids = sorted(request.group_ids, key=bool)  # those without a name come first, as in Kafka
    tickets = [commands.describe_share(call.services.groups, group_id) for group_id in group_ids]
    with_operations = request.include_authorized_operations
    return answer_of_all(
        tickets,
        lambda: ShareGroupDescribeResponse(
            groups=[describe(ticket.outcome, call.services.image, with_operations) for ticket in tickets]
        ),
    )


def describe(group: ConsumerGroupDescription, image: MetadataImage, with_operations: bool) -> DescribedGroup:
    is_found = group.error is ErrorCode.NONE
    return DescribedGroup(
        error_code=group.error,
        error_message=fitting(group.message),
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[
            Member(
                member_id=member.member_id,
                rack_id=member.rack_id,
                member_epoch=member.member_epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=list(member.topic_names),
                assignment=assignment(member.assignment, image),
            )
            for member in group.members
        ],
        authorized_operations=ALL_ON_GROUP if with_operations and is_found else NOT_ASKED,
    )


def assignment(owned: Mapping[bytes, Collection[int]], image: MetadataImage) -> Assignment:
    """With the names of topics; those that are gone are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id,
                topic_name=image.topics_by_id[topic_id].name,
                partitions=sorted(partitions),
            )
            for topic_id, partitions in owned.items()
            if topic_id in image.topics_by_id
        ]
    )


def error_response(request: ShareGroupDescribeRequest, code: ErrorCode) -> ShareGroupDescribeResponse:
    """``code`` for every group: there is no other place for it."""
    return ShareGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
    )
