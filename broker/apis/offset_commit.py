"""OffsetCommit (8): store how far a group, or a consumer without one, has read."""

from collections.abc import Sequence

from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.requests import Committing, OffsetToCommit
from broker.metadata.image import MetadataImage, TopicImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse | Waiting[OffsetCommitResponse]:
    """Partitions that do not exist are refused here; only the others are the group's business.

    As in Kafka the refused ones come first, and a topic is named once for both.
    """
    by_id = call.version >= 10
    refused: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}
    accepted: list[tuple[OffsetCommitRequestTopic, list[OffsetToCommit]]] = []
    for asked in request.topics:
        topic = find_topic(call.services.image, asked, by_id)
        offsets: list[OffsetToCommit] = []
        errors: list[OffsetCommitResponsePartition] = []
        missing = (
            ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        for partition in asked.partitions:
            index = partition.partition_index
            if topic is None or not 0 <= index < len(topic.partitions):
                errors.append(OffsetCommitResponsePartition(partition_index=index, error_code=missing))
            else:
                offsets.append(
                    OffsetToCommit(
                        topic.name,
                        topic.id,
                        index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                    )
                )
        if errors or topic is None:
            told = refused.setdefault(
                (asked.name, asked.topic_id),
                OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id),
            )
            told.partitions += errors
        if offsets:
            accepted.append((asked, offsets))
    if not accepted:
        return OffsetCommitResponse(topics=list(refused.values()))
    committing = Committing(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        retention_ms=request.retention_time_ms,
        # KIP-848: before version 9 there was no code for it.
        unknown_group=(ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 9 else ErrorCode.ILLEGAL_GENERATION),
        knows_member_epochs=call.version >= 9,
        offsets=tuple(offset for _, offsets in accepted for offset in offsets),
    )
    ticket = commands.commit(call.services.groups, request.group_id, committing)
    return answer_of(ticket, lambda codes: answer(refused, accepted, codes))


def find_topic(image: MetadataImage, asked: OffsetCommitRequestTopic, by_id: bool) -> TopicImage | None:
    return image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name)


def answer(
    refused: dict[tuple[str, bytes], OffsetCommitResponseTopic],
    accepted: list[tuple[OffsetCommitRequestTopic, list[OffsetToCommit]]],
    codes: Sequence[ErrorCode],
) -> OffsetCommitResponse:
    topics = list(refused.values())
    known = dict(refused)
    following = iter(codes)
    for asked, offsets in accepted:
        partitions = [
            OffsetCommitResponsePartition(partition_index=offset.partition, error_code=next(following))
            for offset in offsets
        ]
        topic = known.get((asked.name, asked.topic_id))
        if topic is not None:
            topic.partitions += partitions
        else:
            topic = OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=partitions)
            topics.append(topic)
            if refused:
                known[asked.name, asked.topic_id] = topic
    return OffsetCommitResponse(topics=topics)


def error_response(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """``code`` for every partition: there is no other place for it."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
