"""ListOffsets (2): turn a timestamp or a marker into an offset, per partition."""

from broker.errors import error_code_of
from broker.network.call import Call
from broker.partitions.leader import Leader
from broker.partitions.read import FetchIsolation, IsolationLevel, end_for
from broker.partitions.replica import NO_EPOCH, Replica
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from storage.errors import StorageError
from storage.segment import FoundRecord

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3  # KIP-734
EARLIEST_LOCAL = -4  # KIP-405; the same as EARLIEST without tiered storage
LATEST_TIERED = -5  # KIP-1005
EARLIEST_PENDING_UPLOAD = -6  # KIP-1023

MARKER_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version in which each marker may stand in the place of a timestamp."""

CONSUMER = -1
"""The replica id of whoever is no replica.  All others, debuggers too, may see what is not committed."""

DEBUGGER = -2
"""The replica id of who may as well ask a follower."""

OFFSET_NOT_AVAILABLE_VERSION = 5  # KIP-207

LEADER_EPOCH_VERSION = 4  # KIP-320

NOTHING_FOUND = FoundRecord(offset=-1, timestamp=-1, leader_epoch=-1)


def handle(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    """A partition that is named twice is refused once; a topic is answered for once, if it has partitions."""
    try:
        isolation = IsolationLevel.of(request.isolation_level)
    except KafkaError as error:
        return error_response(request, error.code)
    partitions = call.services.partitions
    if partitions.missing:
        partitions.require_made(
            (topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions
        )
    twice = named_twice(request)
    refused_already: set[tuple[str, int]] = set()
    topics: dict[str, list[ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        replies = topics.setdefault(topic.name, [])
        for asked in topic.partitions:
            key = topic.name, asked.partition_index
            if key not in twice:
                replies.append(look_up(request, isolation, call, topic.name, asked))
            elif key not in refused_already:
                refused_already.add(key)
                replies.append(refused(asked, ErrorCode.INVALID_REQUEST))
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=replies)
            for name, replies in topics.items()
            if replies
        ]
    )


def named_twice(request: ListOffsetsRequest) -> set[tuple[str, int]]:
    once: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for asked in topic.partitions:
            key = topic.name, asked.partition_index
            (twice if key in once else once).add(key)
    return twice


def look_up(
    request: ListOffsetsRequest,
    isolation: IsolationLevel,
    call: Call,
    topic: str,
    asked: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    try:
        if asked.timestamp < 0 and call.version < MARKER_VERSIONS.get(asked.timestamp, call.version + 1):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partitions = call.services.partitions
        find_replica = partitions.replica_for if request.replica_id == DEBUGGER else partitions.leader_for
        replica = find_replica((topic, asked.partition_index), asked.current_leader_epoch)
        replica.check_epoch(asked.current_leader_epoch)
        limit = FetchIsolation(isolation) if request.replica_id == CONSUMER else FetchIsolation.LOG_END
        try:
            found = find(replica, asked.timestamp, limit)
        except StorageError as failure:
            replica.note_failed_read(failure)
            raise
        if found is None or asked.timestamp == LATEST:
            check_epoch_has_begun(replica, limit, call.version)
    except (KafkaError, StorageError) as error:
        return refused(asked, error_code_of(error))
    if found is None:
        found = NOTHING_FOUND
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if call.version >= LEADER_EPOCH_VERSION else NO_EPOCH,
    )


def check_epoch_has_begun(replica: Replica, isolation: FetchIsolation, version: int) -> None:
    """Refuse to say that there is nothing while that may just be unknown (KIP-207).

    A new leader's high watermark may lie behind what its predecessor had committed.
    """
    if (
        isolation != FetchIsolation.LOG_END
        and isinstance(replica, Leader)
        and replica.epoch_start > replica.log.high_watermark
    ):
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE
            if version >= OFFSET_NOT_AVAILABLE_VERSION
            else ErrorCode.LEADER_NOT_AVAILABLE
        )


def find(replica: Replica, timestamp: int, isolation: FetchIsolation) -> FoundRecord | None:
    """What a timestamp or a marker stands for, for who may read as far as that; None if nothing is there."""
    log = replica.log
    upper = end_for(replica, isolation)
    if timestamp == LATEST:
        return FoundRecord(offset=upper, timestamp=-1, leader_epoch=replica.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundRecord(
            offset=log.log_start, timestamp=-1, leader_epoch=log.leader_epochs.epoch_at(log.log_start)
        )
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING_FOUND
    if timestamp == MAX_TIMESTAMP:
        return log.find_max_timestamp(upper=upper)
    return log.find_by_timestamp(timestamp, upper=upper)


def refused(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def error_response(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    """``code`` for every partition, as often as it is named."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[refused(asked, code) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )
