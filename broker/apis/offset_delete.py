"""OffsetDelete (47): forget a group's offsets of topics that its members do not read."""

from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.requests import OffsetsDeleted
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

Accepted = list[tuple[str, list[int]]]
"""Partitions that exist, for each time that their topic is named."""


def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse | Waiting[OffsetDeleteResponse]:
    """As in OffsetCommit, partitions that do not exist are refused here, and come first in the answer."""
    image = call.services.image
    refused: dict[str, list[OffsetDeleteResponsePartition]] = {}
    accepted: Accepted = []
    for topic in request.topics:
        if topic.name not in image.topics:
            refused.setdefault(topic.name, [])  # told even if no partition of it was named
        indexes = []
        for partition in topic.partitions:
            index = partition.partition_index
            if image.partition(topic.name, index) is None:
                refused.setdefault(topic.name, []).append(
                    OffsetDeleteResponsePartition(
                        partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                )
            else:
                indexes.append(index)
        if indexes:
            accepted.append((topic.name, indexes))
    places = [(name, index) for name, indexes in accepted for index in indexes]
    ticket = commands.delete_offsets(call.services.groups, request.group_id, places)
    return answer_of(ticket, lambda deleted: answer(refused, accepted, deleted))


def answer(
    refused: dict[str, list[OffsetDeleteResponsePartition]], accepted: Accepted, deleted: OffsetsDeleted
) -> OffsetDeleteResponse:
    """A topic that is named twice is so in the answer, too, but not where something was refused."""
    if deleted.error is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=deleted.error)
    codes = iter(deleted.codes)
    done = [
        OffsetDeleteResponseTopic(
            name=name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=index, error_code=next(codes))
                for index in indexes
            ],
        )
        for name, indexes in accepted
    ]
    if not refused:
        return OffsetDeleteResponse(topics=done)
    topics = {name: list(partitions) for name, partitions in refused.items()}
    for topic in done:
        topics.setdefault(topic.name, []).extend(topic.partitions)
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(name=name, partitions=partitions) for name, partitions in topics.items()
        ]
    )
