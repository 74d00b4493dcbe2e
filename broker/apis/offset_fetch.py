"""OffsetFetch (9): how far groups have read."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.coordination.tickets import Ticket, answer_of_all
from broker.groups import commands
from broker.groups.requests import Fetched, FetchedOffset, FetchedTopic, TopicOffsets
from broker.metadata.image import MetadataImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.uuids import ZERO_UUID


class Asked(NamedTuple):
    """One group of the request, and who will know."""

    group_id: str
    topics: Sequence[TopicOffsets] | None
    unknown: tuple[FetchedTopic, ...]
    """Topics asked for by ids that do not exist."""
    ticket: Ticket[Fetched]


def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse | Waiting[OffsetFetchResponse]:
    version = call.version
    if version >= 8:  # KIP-709: several groups at once
        asked = [ask(call, group, request.require_stable) for group in request.groups]
        return answer_of_all(
            [one.ticket for one in asked],
            lambda: OffsetFetchResponse(groups=[answer_group(call, one) for one in asked]),
        )
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=(
            None
            if request.topics is None
            else [
                OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
                for topic in request.topics
            ]
        ),
    )
    only = ask(call, group, request.require_stable)
    return answer_of_all([only.ticket], lambda: answer_one_group(only, version))


def ask(call: Call, group: OffsetFetchRequestGroup, require_stable: bool) -> Asked:
    topics: list[TopicOffsets] | None = None
    unknown: list[FetchedTopic] = []
    if group.topics is not None:
        topics = []
        image = call.services.image
        for topic in group.topics:
            partitions = tuple(topic.partition_indexes)
            if call.version < 10:
                topics.append(TopicOffsets(topic.name, ZERO_UUID, partitions))
            elif (found := image.topics_by_id.get(topic.topic_id)) is not None:
                topics.append(TopicOffsets(found.name, found.id, partitions))
            else:
                unknown.append(refuse_topic("", topic.topic_id, partitions, ErrorCode.UNKNOWN_TOPIC_ID))
    ticket = commands.fetch(
        call.services.groups,
        group.group_id,
        topics,
        require_stable=require_stable,
        member_id=group.member_id,
        member_epoch=group.member_epoch,
    )
    return Asked(group.group_id, topics, tuple(unknown), ticket)


def refuse_topic(name: str, topic_id: bytes, partitions: Sequence[int], code: ErrorCode) -> FetchedTopic:
    return FetchedTopic(
        name, topic_id, tuple(FetchedOffset(partition, error=code) for partition in partitions)
    )


def answer_group(call: Call, asked: Asked) -> OffsetFetchResponseGroup:
    fetched = asked.ticket.outcome
    if fetched.error is not ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=fetched.error)
    topics = (*fetched.topics, *asked.unknown)
    if call.version >= 10 and asked.topics is None:
        topics = with_ids(topics, call.services.image)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=found.partition,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch,
                        metadata=found.metadata,
                        error_code=found.error,
                    )
                    for found in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def with_ids(topics: Sequence[FetchedTopic], image: MetadataImage) -> tuple[FetchedTopic, ...]:
    """The topics that have an id, with it: version 10 cannot name the others."""
    return tuple(
        topic._replace(topic_id=topic_id)
        for topic in topics
        if (topic_id := image.topic_id(topic.topic)) is not None
    )


def answer_one_group(asked: Asked, version: int) -> OffsetFetchResponse:
    fetched = asked.ticket.outcome
    error = fetched.error
    topics = fetched.topics
    if error is not ErrorCode.NONE and version < 2:
        # Version 1 has no place for an error of the group.
        error = ErrorCode.NONE
        topics = tuple(
            refuse_topic(topic.topic, topic.topic_id, topic.partitions, fetched.error)
            for topic in asked.topics or ()
        )
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.topic,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=found.partition,
                        committed_offset=found.offset,
                        committed_leader_epoch=found.leader_epoch if version >= 5 else -1,
                        metadata=found.metadata,
                        error_code=found.error,
                    )
                    for found in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def error_response(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    """``code`` for the one group of an old version, or for every group of a newer one."""
    return OffsetFetchResponse(
        error_code=ErrorCode.NONE if request.groups else code,
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups
        ],
    )
