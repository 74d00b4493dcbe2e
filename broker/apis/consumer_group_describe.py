"""ConsumerGroupDescribe (69): the state and the members of consumer groups (KIP-848)."""

from collections.abc import Collection, Mapping

from broker.apis.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from broker.apis.error_texts import fitting
from broker.coordination.tickets import answer_of_all
from broker.groups import commands
from broker.groups.protocols import serves_consumer_groups
from broker.groups.requests import ConsumerGroupDescription, ConsumerMemberDescription
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CONSUMER_MEMBER, CLASSIC_MEMBER = 1, 0
"""``MemberType``: which protocol a member speaks (KIP-1099)."""


def handle(
    request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse | Waiting[ConsumerGroupDescribeResponse]:
    if not serves_consumer_groups(call.services):
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION)
    asked = sorted(request.group_ids, key=bool)  # Kafka begins with what is no name
    tickets = [commands.describe_consumers(call.services.groups, group_id) for group_id in asked]
    with_operations = request.include_authorized_operations
    return answer_of_all(
        tickets,
        lambda: ConsumerGroupDescribeResponse(
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
        members=[describe_member(member, image) for member in group.members],
        authorized_operations=ALL_ON_GROUP if with_operations and is_found else NOT_ASKED,
    )


def describe_member(member: ConsumerMemberDescription, image: MetadataImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=assignment(member.assignment, image),
        target_assignment=assignment(member.target, image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
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


def error_response(request: ConsumerGroupDescribeRequest, code: ErrorCode) -> ConsumerGroupDescribeResponse:
    """``code`` for every group: there is no other place for it."""
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids]
    )
