"""DescribeShareGroupOffsets (90): where share groups stand, and how far the ends are (KIP-1226)."""

from typing import Final

from broker.coordination.tickets import Ticket, answer_of_all
from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.services import Services
from broker.share.acknowledging import check_enabled
from broker.share.group_admin import Done, describe_offsets, described
from broker.share.state_batches import NO_START_OFFSET
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

UNEXPECTED_TEXT: Final = "The server experienced an unexpected error when processing the request."


def handle(
    request: DescribeShareGroupOffsetsRequest, call: Call
) -> DescribeShareGroupOffsetsResponse | Waiting[DescribeShareGroupOffsetsResponse]:
    try:
        check_enabled(call)
    except KafkaError as error:
        return error_response(request, error.code)
    tickets = [ask(group, call.services) for group in request.groups]
    return answer_of_all(
        tickets,
        lambda: DescribeShareGroupOffsetsResponse(
            groups=[
                describe(group, ticket.outcome, call.services)
                for group, ticket in zip(request.groups, tickets, strict=True)
            ]
        ),
    )


def ask(group: DescribeShareGroupOffsetsRequestGroup, services: Services) -> Ticket[Done]:
    if group.topics is None:
        return describe_offsets(services.groups, group.group_id, None)
    topics = services.image.topics
    partitions = {
        topics[topic.topic_name].id: topic.partitions for topic in group.topics if topic.topic_name in topics
    }
    if any(index < 0 for indexes in partitions.values() for index in indexes):
        return settled(Done(ErrorCode.UNKNOWN_SERVER_ERROR, UNEXPECTED_TEXT))
    if partitions:
        return describe_offsets(services.groups, group.group_id, partitions)
    return settled(Done())


def settled(done: Done) -> Ticket[Done]:
    ticket = Ticket(Done)
    ticket.settle(done)
    return ticket


def describe(
    group: DescribeShareGroupOffsetsRequestGroup, done: Done, services: Services
) -> DescribeShareGroupOffsetsResponseGroup:
    image = services.image
    found: dict[bytes, list[DescribeShareGroupOffsetsResponsePartition]] = {}
    for place in done.outcomes:
        topic_id, partition = place
        stands = described(done, place)
        found.setdefault(topic_id, []).append(
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=partition,
                start_offset=stands.start_offset,
                leader_epoch=stands.leader_epoch,
                lag=stands.lag,
                error_code=stands.error,
                error_message=stands.text,
            )
        )
    topics = [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=image.topics_by_id[topic_id].name, topic_id=topic_id, partitions=partitions
        )
        for topic_id, partitions in found.items()
        if topic_id in image.topics_by_id
    ]
    for topic in group.topics or () if done.error is ErrorCode.NONE else ():
        if topic.topic_name not in image.topics:
            nothing = [
                DescribeShareGroupOffsetsResponsePartition(
                    partition_index=partition, start_offset=NO_START_OFFSET
                )
                for partition in topic.partitions
            ]
            topics.append(
                DescribeShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=nothing)
            )
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group.group_id, error_code=done.error, error_message=done.text, topics=topics
    )


def error_response(
    request: DescribeShareGroupOffsetsRequest, code: ErrorCode
) -> DescribeShareGroupOffsetsResponse:
    """``code`` for every group: there is no other place for it."""
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=code)
            for group in request.groups
        ]
    )
