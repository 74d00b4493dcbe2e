"""Reading partitions for fetches: what a reader may see, and how the bytes of one answer are shared."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TypeAlias

from broker.errors import error_code_of
from broker.partitions.fetch_sessions import NO_REPLICA, PartitionKey, Reading, WantedPartition
from broker.partitions.leader import Leader
from broker.partitions.replica import NO_EPOCH, Replica
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from storage.errors import OffsetOutOfRange, StorageError

FindReplica: TypeAlias = Callable[[PartitionKey, int], Replica]
"""Whom to read, given a partition and the leader epoch that the reader believes in, or -1.

Raises ``KafkaError`` if there is nobody here.
"""

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


class FetchIsolation(IntEnum):
    """Up to where somebody may read."""

    HIGH_WATERMARK = IsolationLevel.READ_UNCOMMITTED
    TXN_COMMITTED = IsolationLevel.READ_COMMITTED
    LOG_END = 2
    """For followers: records are committed by being read."""


LOG_END = FetchIsolation.LOG_END
TXN_COMMITTED = FetchIsolation.TXN_COMMITTED


def end_for(replica: Replica, isolation: FetchIsolation | IsolationLevel) -> int:
    """The offset at which the log ends for a reader."""
    if isolation is LOG_END:
        return replica.log.log_end
    return replica.log.last_stable if isolation else replica.log.high_watermark


class Reader:
    """Who reads, and what is to be done for that."""

    __slots__ = ("broker_epoch", "holds_back", "isolation", "now_ms", "preferred_replica", "replica_id")

    def __init__(
        self,
        isolation: FetchIsolation,
        *,
        replica_id: int = NO_REPLICA,
        broker_epoch: int = -1,
        now_ms: int = 0,
        holds_back: Callable[[Leader], bool] | None = None,
        preferred_replica: Callable[[Leader, int], int] | None = None,
    ) -> None:
        self.isolation = isolation
        self.replica_id = replica_id
        """Negative for consumers."""
        self.broker_epoch = broker_epoch
        """In which the follower has registered; -1 if it does not say."""
        self.now_ms = now_ms
        """When a follower's request came."""
        self.holds_back = holds_back
        """Whether a follower gets no records of a partition now, because of its quota."""
        self.preferred_replica = preferred_replica
        """From which broker a consumer had better read from this offset on; negative if from this one."""


CONSUMERS = {level: Reader(FetchIsolation(level)) for level in IsolationLevel}
"""Consumers that read from whoever they ask."""


class Round:
    """All partitions of a fetch, read once.

    ``must_answer`` says that waiting for more would be wrong: a partition failed or has diverged, or there
    is none to wait for.
    """

    __slots__ = ("must_answer", "readings", "replicas", "size_bytes")

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.replicas: list[Replica | None] = []
        """Who was read, for each of the readings; None where there is nobody."""
        self.size_bytes = 0
        self.must_answer = False


def nothing_new(wanted: WantedPartition, isolation: FetchIsolation) -> Replica | None:
    """Who was read last, if reading it again would come to the same, which was nothing; else None."""
    reading, replica = wanted.last_reading, wanted.last_replica
    if reading is None or replica is None or replica.ended is not None:
        return None
    log = replica.log
    if (
        reading.high_watermark != log.high_watermark
        or reading.log_start != log.log_start
        or wanted.current_leader_epoch not in (NO_EPOCH, replica.leader_epoch)
    ):
        return None
    if isolation is LOG_END:
        return replica if wanted.fetch_offset == log.log_end else None  # nothing else counts for followers
    last_stable = log.last_stable
    if (
        wanted.fetch_offset == (last_stable if isolation else log.high_watermark)
        and reading.last_stable == last_stable
        and (reading.aborted is not None) is (isolation is TXN_COMMITTED)
    ):
        return replica
    return None


def is_there_still(replica: Replica, wanted: WantedPartition, reader: Reader) -> bool:
    """Note that a follower which is in sync is where it was; False if more has to be looked at."""
    replication = replica.replication if isinstance(replica, Leader) else None
    follower = None if replication is None else replication.followers.get(reader.replica_id)
    if (
        replication is None
        or follower is None
        or reader.replica_id not in replication.isr
        or follower.log_end != wanted.fetch_offset
        or follower.log_start != wanted.log_start
        or follower.broker_epoch != reader.broker_epoch
    ):
        return False
    follower.last_fetch_ms = follower.last_caught_up_ms = reader.now_ms
    return True


def read_partitions(
    find: FindReplica,
    partitions: Iterable[WantedPartition],
    reader: Reader,
    max_bytes: int,
    *,
    has_waited: bool = False,
) -> Round:
    """Read in the order given, until ``max_bytes`` are reached.

    What does not exist is told behind the rest, as Kafka does.  So that readers make
    progress, the first batch of the first partition which has any comes whole, whatever the limits.
    ``has_waited`` is whether this request has read the partitions before: then it says nothing new about
    where its sender stands.  Where nothing has happened since the last reading, nothing is read.
    """
    result = Round()
    isolation = reader.isolation
    is_follower = reader.replica_id >= 0
    unknown_topics: list[Reading] = []
    unknown_partitions: list[Reading] = []
    left = max_bytes
    nothing_yet = True
    nobody = True
    for wanted in partitions:
        if wanted.last_reading is not None:
            last = nothing_new(wanted, isolation) if reader.preferred_replica is None else None
            if last is not None and (not is_follower or has_waited or is_there_still(last, wanted, reader)):
                nobody = False
                result.readings.append(wanted.last_reading)
                result.replicas.append(last)
                continue
            wanted.last_reading = wanted.last_replica = None
        try:
            replica = find(wanted.key, wanted.current_leader_epoch)
        except KafkaError as error:
            code = error.code
            if has_waited and code in UNKNOWN and wanted.topic_name is not None:
                # It went meanwhile: the log says so then, not the metadata.
                result.readings.append(Reading(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                result.replicas.append(None)
                continue
            if wanted.topic_name is not None and code == ErrorCode.UNKNOWN_TOPIC_ID:
                code = code_of_lost_topic(find, wanted.topic_name, wanted.key[1])
            failed = unreadable(wanted, code)
            if code == ErrorCode.UNKNOWN_TOPIC_ID:
                unknown_topics.append(failed)
                continue
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                unknown_partitions.append(failed)
                continue
            result.readings.append(failed)
            result.replicas.append(None)
            result.must_answer = True
            continue
        nobody = False
        wanted.topic_name = replica.topic
        limit = min(wanted.max_bytes, left)
        reading: Reading | None = None
        if is_follower:
            reading = read_for_follower(
                replica, wanted, reader, limit, at_least_one=nothing_yet, has_waited=has_waited
            )
        elif reader.preferred_replica is not None:
            reading = refer(replica, wanted, reader)
        if reading is None:
            reading = read_partition(replica, wanted, isolation, limit, at_least_one=nothing_yet)
        result.readings.append(reading)
        result.replicas.append(replica)
        size = reading.records_size_bytes
        left = max(left - size, 0)
        if size:
            nothing_yet = False
            result.size_bytes += size
        elif reading.error_code or reading.diverging is not None or reading.preferred_replica != NO_REPLICA:
            result.must_answer = True
        else:
            wanted.last_reading, wanted.last_replica = reading, replica
    unknown = unknown_topics + unknown_partitions
    result.readings += unknown
    result.replicas += [None] * len(unknown)
    if nobody:
        result.must_answer = True
    return result


def read_for_follower(
    replica: Replica,
    wanted: WantedPartition,
    reader: Reader,
    max_bytes: int,
    *,
    at_least_one: bool,
    has_waited: bool,
) -> Reading:
    """Read up to the end of the log, and note where the follower stands."""
    assert isinstance(replica, Leader)
    try:
        replica.check_follower(reader.replica_id, wanted.current_leader_epoch)
        leader_end = replica.log.log_end
        reading = read_partition(replica, wanted, reader.isolation, max_bytes, at_least_one=at_least_one)
        if not has_waited and not reading.error_code and reading.diverging is None:
            replica.follower_fetched(
                reader.replica_id,
                wanted.fetch_offset,
                log_start=wanted.log_start,
                leader_end=leader_end,
                broker_epoch=reader.broker_epoch,
            )
    except KafkaError as error:
        return Reading(wanted, error.code)
    if reading.records_size_bytes and reader.holds_back is not None and reader.holds_back(replica):
        reading.records = b""
        reading.records_size_bytes = 0
    return reading


def refer(replica: Replica, wanted: WantedPartition, reader: Reader) -> Reading | None:
    """Name the replica from which a consumer had better read (KIP-392); None if that is this one."""
    if reader.preferred_replica is None or not isinstance(replica, Leader) or replica.replication is None:
        return None
    preferred = reader.preferred_replica(replica, wanted.fetch_offset)
    if preferred < 0:
        return None
    try:
        replica.check_epoch(wanted.current_leader_epoch)
    except KafkaError as error:
        return Reading(wanted, error.code)
    log = replica.log
    reading = Reading(wanted, 0, log.high_watermark, log.last_stable, log.log_start)
    reading.preferred_replica = preferred
    return reading


def code_of_lost_topic(find: FindReplica, topic: str, partition: int) -> ErrorCode:
    """Why a session no longer finds a topic by its id: it is gone, or its name belongs to another."""
    try:
        find((topic, partition), NO_EPOCH)
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
    replica: Replica,
    wanted: WantedPartition,
    isolation: FetchIsolation,
    max_bytes: int,
    *,
    at_least_one: bool,
) -> Reading:
    """At most ``max_bytes`` of one partition, or with ``at_least_one`` the first batch even if larger."""
    log = replica.log
    try:
        if wanted.current_leader_epoch >= 0:
            replica.check_epoch(wanted.current_leader_epoch)
        high_watermark = log.high_watermark
        last_stable = log.last_stable
        reading = Reading(wanted, 0, high_watermark, last_stable, log.log_start)
        if wanted.last_fetched_epoch >= 0:
            reading.diverging = find_divergence(replica, wanted)
            if reading.diverging is not None:
                return reading
        end = log.log_end if isolation is LOG_END else last_stable if isolation else high_watermark
        records = log.read(wanted.fetch_offset, max(max_bytes, 0), upper=end, at_least_one=at_least_one)
        if max_bytes < 0 and wanted.fetch_offset < end:  # a negative limit in the request
            return Reading(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
        if records is not None:
            reading.records = records
            reading.records_size_bytes = records.size_bytes
        if isolation is TXN_COMMITTED:
            aborted = [] if records is None else log.aborted_transactions(records)
            reading.aborted = [(each.producer_id, each.first_offset) for each in aborted]
    except KafkaError as error:
        return Reading(wanted, error.code)
    except StorageError as failure:
        replica.note_failed_read(failure)
        return Reading(wanted, error_code_of(failure))
    return reading


def find_divergence(replica: Replica, wanted: WantedPartition) -> tuple[int, int] | None:
    """The epoch and offset up to which leader and reader agree; None if that is all the reader has.

    Raises OffsetOutOfRange where what the reader has does not meet the log at all (KIP-595).
    """
    log = replica.log
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or wanted.fetch_offset < log.log_start:
        raise OffsetOutOfRange(wanted.fetch_offset, log.log_start, log.log_end)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
