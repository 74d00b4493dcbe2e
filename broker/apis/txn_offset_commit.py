"""TxnOffsetCommit (28): commit offsets of a group as part of a transaction."""

from collections.abc import Sequence

from broker.coordination.clients import Client
from broker.coordination.tickets import answer_of
from broker.groups import commands
from broker.groups.requests import Committing, CommittingInTransaction, OffsetToCommit
from broker.metadata.image import TopicImage
from broker.network.call import Call
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOADING_VERSION = 2
"""Producers before it fail when they hear that a coordinator is loading."""
ABORTABLE_VERSION = 4  # KIP-890, part 1
ADDING_VERSION = 5  # KIP-890, part 2
TOPIC_IDS_VERSION = 6  # KIP-848
MEMBER_EPOCHS_VERSION = 6

Key = tuple[str, bytes]
"""A topic as the request names it."""


def handle(
    request: TxnOffsetCommitRequest, call: Call
) -> TxnOffsetCommitResponse | Waiting[TxnOffsetCommitResponse]:
    """As in OffsetCommit, partitions that do not exist are refused here, and come first in the answer."""
    topics: dict[Key, TxnOffsetCommitResponseTopic] = {}
    accepted: list[tuple[Key, OffsetToCommit]] = []
    for asked in request.topics:
        topic = find_topic(call, asked)
        missing = (
            ErrorCode.UNKNOWN_TOPIC_ID
            if topic is None and call.version >= TOPIC_IDS_VERSION
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        key = (asked.name, asked.topic_id)
        for partition in asked.partitions:
            index = partition.partition_index
            if topic is not None and 0 <= index < len(topic.partitions):
                offset = OffsetToCommit(
                    topic.name,
                    topic.id,
                    index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                )
                accepted.append((key, offset))
            else:
                add(topics, key, index, missing)
    if not accepted:
        return TxnOffsetCommitResponse(topics=list(topics.values()))
    committing = CommittingInTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        client=Client.of(call.version, aborts_from=ABORTABLE_VERSION, adds_from=ADDING_VERSION),
        committing=Committing(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            retention_ms=-1,
            unknown_group=(
                ErrorCode.GROUP_ID_NOT_FOUND
                if call.version >= MEMBER_EPOCHS_VERSION
                else ErrorCode.ILLEGAL_GENERATION
            ),
            knows_member_epochs=call.version >= MEMBER_EPOCHS_VERSION,
            offsets=tuple(offset for _, offset in accepted),
        ),
    )
    ticket = commands.commit_in_transaction(call.services.groups, request.group_id, committing)

    def told(codes: Sequence[ErrorCode]) -> TxnOffsetCommitResponse:
        for (key, offset), code in zip(accepted, codes, strict=True):
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < LOADING_VERSION:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            add(topics, key, offset.partition, code)
        return TxnOffsetCommitResponse(topics=list(topics.values()))

    return answer_of(ticket, told)


def find_topic(call: Call, asked: TxnOffsetCommitRequestTopic) -> TopicImage | None:
    image = call.services.image
    if call.version >= TOPIC_IDS_VERSION:
        return image.topics_by_id.get(asked.topic_id)
    return image.topics.get(asked.name)


def add(topics: dict[Key, TxnOffsetCommitResponseTopic], key: Key, index: int, code: ErrorCode) -> None:
    if key not in topics:
        topics[key] = TxnOffsetCommitResponseTopic(name=key[0], topic_id=key[1])
    topics[key].partitions.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))


def error_response(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """``code`` for every partition: there is no other place for it."""
    topics: dict[Key, TxnOffsetCommitResponseTopic] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            add(topics, (topic.name, topic.topic_id), partition.partition_index, code)
    return TxnOffsetCommitResponse(topics=list(topics.values()))
