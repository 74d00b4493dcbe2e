"""Reading partitions for fetches: what a reader may see, and how the bytes of one answer are shared."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TypeAlias

from broker.errors import error_code_of
from broker.partitions.fetch_sessions import PartitionKey, Reading, WantedPartition
from broker.partitions.leader import NO_EPOCH, Leader
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from storage.errors import OffsetOutOfRange, StorageError

FindLeader: TypeAlias = Callable[[PartitionKey], Leader]
"""The leader of a partition; raises ``KafkaError`` if there is none here."""

UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Errors of partitions that do not exist: unlike others, they do not end a wait for the rest."""


class IsolationLevel(IntEnum):
    """Whether a reader sees records whose transaction is undecided."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1

    @classmethod
    def of(cls, number: int) -> "IsolationLevel":
        """The level of this number; raises UNKNOWN_SERVER_ERROR, as Kafka does, if there is none."""
        if number == 0:
            return cls.READ_UNCOMMITTED
        if number == 1:
            return cls.READ_COMMITTED
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def end_for(leader: Leader, isolation: IsolationLevel) -> int:
    """The offset at which the log ends for a consumer."""
    return leader.log.last_stable if isolation else leader.log.high_watermark


class Round:
    """All partitions of a fetch, read once.

    ``must_answer`` says that waiting for more would be wrong: a partition failed or has diverged, or there
    is none to wait for.
    """

    __slots__ = ("leaders", "must_answer", "readings", "size_bytes")

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.leaders: list[Leader | None] = []
        """Who was read, for each of the readings; None where there is nobody."""
        self.size_bytes = 0
        self.must_answer = False


def read_partitions(
    find_leader: FindLeader,
    partitions: Iterable[WantedPartition],
    isolation: IsolationLevel,
    max_bytes: int,
    replica_id: int = -1,
    *,
    has_waited: bool = False,
) -> Round:
    """Read in the order given, until ``max_bytes`` are reached; ``replica_id`` is negative for consumers.

    What does not exist is told behind the rest, as Kafka does.  So that readers make
    progress, the first batch of the first partition which has any comes whole, whatever the limits.
    ``has_waited`` is whether this request has read the partitions before.
    """
    result = Round()
    unknown_topics: list[Reading] = []
    unknown_partitions: list[Reading] = []
    left = max_bytes
    nothing_yet = True
    nobody = True
    for wanted in partitions:
        try:
            leader = find_leader(wanted.key)
            if replica_id >= 0:
                check_replica(leader, wanted)
        except KafkaError as error:
            code = error.code
            if has_waited and code in UNKNOWN and wanted.topic_name is not None:
                # It went meanwhile: the log says so then, not the metadata.
                result.readings.append(Reading(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                result.leaders.append(None)
                continue
            if wanted.topic_name is not None and code == ErrorCode.UNKNOWN_TOPIC_ID:
                code = code_of_lost_topic(find_leader, wanted.topic_name, wanted.key[1])
            reading = unreadable(wanted, code)
            if code == ErrorCode.UNKNOWN_TOPIC_ID:
                unknown_topics.append(reading)
                continue
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                unknown_partitions.append(reading)
                continue
            result.readings.append(reading)
            result.leaders.append(None)
            result.must_answer = True
            continue
        nobody = False
        wanted.topic_name = leader.log.topic
        reading = read_partition(
            leader, wanted, isolation, min(wanted.max_bytes, left), at_least_one=nothing_yet
        )
        result.readings.append(reading)
        result.leaders.append(leader)
        size = reading.records_size_bytes
        left = max(left - size, 0)
        if size:
            nothing_yet = False
            result.size_bytes += size
        elif reading.error_code or reading.diverging is not None:
            result.must_answer = True
    unknown = unknown_topics + unknown_partitions
    result.readings += unknown
    result.leaders += [None] * len(unknown)
    if nobody:
        result.must_answer = True
    return result


def check_replica(leader: Leader, wanted: WantedPartition) -> None:
    """Refuse a follower: a partition that has this replica alone has none."""
    leader.check_epoch(max(wanted.current_leader_epoch, NO_EPOCH))
    if wanted.current_leader_epoch >= 0:
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def code_of_lost_topic(find_leader: FindLeader, topic: str, partition: int) -> ErrorCode:
    """Why a session no longer finds a topic by its id: it is gone, or its name belongs to another."""
    try:
        find_leader((topic, partition))
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return error.code
    return ErrorCode.INCONSISTENT_TOPIC_ID


def unreadable(wanted: WantedPartition, code: ErrorCode) -> Reading:
    """What is said of a partition that nobody leads here."""
    reading = Reading(wanted, code)
    if code in UNKNOWN:
        reading.aborted = []  # in Kafka, too, whatever the isolation level
    return reading


def read_partition(
    leader: Leader,
    wanted: WantedPartition,
    isolation: IsolationLevel,
    max_bytes: int,
    *,
    at_least_one: bool,
) -> Reading:
    """At most ``max_bytes`` of one partition, or with ``at_least_one`` the first batch even if larger."""
    log = leader.log
    try:
        if wanted.current_leader_epoch >= 0:
            leader.check_epoch(wanted.current_leader_epoch)
        high_watermark = log.high_watermark
        last_stable = log.last_stable
        reading = Reading(wanted, 0, high_watermark, last_stable, log.log_start)
        if wanted.last_fetched_epoch >= 0:
            reading.diverging = find_divergence(leader, wanted)
            if reading.diverging is not None:
                return reading
        end = last_stable if isolation else high_watermark
        records = log.read(wanted.fetch_offset, max(max_bytes, 0), upper=end, at_least_one=at_least_one)
        if max_bytes < 0 and wanted.fetch_offset < end:  # a negative limit in the request
            return Reading(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
        if records is not None:
            reading.records = records
            reading.records_size_bytes = records.size_bytes
        if isolation:
            aborted = [] if records is None else log.aborted_transactions(records)
            reading.aborted = [(each.producer_id, each.first_offset) for each in aborted]
    except KafkaError as error:
        return Reading(wanted, error.code)
    except StorageError as failure:
        leader.note_failed_read(failure)
        return Reading(wanted, error_code_of(failure))
    return reading


def find_divergence(leader: Leader, wanted: WantedPartition) -> tuple[int, int] | None:
    """The epoch and offset up to which leader and reader agree; None if that is all the reader has.

    Raises OffsetOutOfRange where what the reader has does not meet the log at all (KIP-595).
    """
    log = leader.log
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or wanted.fetch_offset < log.log_start:
        raise OffsetOutOfRange(wanted.fetch_offset, log.log_start, log.log_end)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
