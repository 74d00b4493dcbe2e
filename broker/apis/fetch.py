"""Fetch (1): read record batches from partitions, waiting for them if need be."""

from collections.abc import Callable

import trio

from broker.network.call import Call
from broker.network.waiting import Waiting
from broker.partitions.fetch_sessions import FetchContext, Reading, named_partitions
from broker.partitions.leader import Leader
from broker.partitions.leader_hints import leader_hint
from broker.partitions.long_poll import LongPoll
from broker.partitions.manager import PartitionManager
from broker.partitions.read import (
    CONSUMERS,
    UNKNOWN,
    FetchIsolation,
    IsolationLevel,
    Reader,
    Round,
    read_partitions,
)
from broker.quotas.sizes import fetched_bytes
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from protocol.uuids import ZERO_UUID

STORAGE_ERROR_VERSION = 6  # KIP-112
FOLLOWER_READS_VERSION = 11  # KIP-392
REPLICA_STATE_VERSION = 15  # KIP-903
LEADER_HINT_VERSION = 16  # KIP-951

WRONG_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Errors that come with the leader's name."""

NO_DIVERGENCE = EpochEndOffset()
NO_LEADER = LeaderIdAndEpoch()
NO_SNAPSHOT = SnapshotId()


def handle(request: FetchRequest, call: Call) -> FetchResponse | Waiting[FetchResponse]:
    """Answer at once if there is enough to read, or something to complain about; else wait for it."""
    partitions = call.services.partitions
    if partitions.missing:
        partitions.require_made(named_partitions(request, call.version))
    replica_id = replica_id_of(request, call)
    context = partitions.fetch_sessions.context(
        request, call.version, call.received_ms, privileged=replica_id >= 0
    )
    if not context.partitions:  # likewise when the session is refused
        return respond(call, context, Round(), replica_id)
    try:
        isolation = IsolationLevel.of(request.isolation_level)
    except KafkaError as error:
        # Kafka looks at it only if there is something to read.
        if any_exists(partitions, context):
            return error_response(request, error.code)
        isolation = IsolationLevel.READ_UNCOMMITTED
    reader = reader_of(request, call, replica_id, isolation)
    max_bytes = min(request.max_bytes, call.services.config.get("fetch.max.bytes"))
    if call.meter is not None and replica_id < 0:
        max_bytes = min(max_bytes, call.meter.fetch_bytes_max)
    min_bytes = min(request.min_bytes, max_bytes)

    only_leaders = replica_id >= 0 or call.version < FOLLOWER_READS_VERSION
    find = partitions.leader_for if only_leaders else partitions.replica_for

    def read_again() -> Round:
        return read_partitions(find, context.partitions, reader, max_bytes, has_waited=True)

    result = read_partitions(find, context.partitions, reader, max_bytes)
    if result.must_answer or result.size_bytes >= min_bytes or request.max_wait_ms <= 0:
        return respond(call, context, result, replica_id)

    def finish() -> None:
        poll.stop()
        # Read when the answer's turn comes: by then several batches may have arrived.
        waiting.answer_with(lambda: respond(call, context, read_again(), replica_id))

    deadline = trio.current_time() + request.max_wait_ms / 1000
    waiting: Waiting[FetchResponse] = Waiting(deadline, finish, droppable=True)
    poll = LongPoll(result, reader, min_bytes, finish)
    waiting.on_abandoned(poll.stop)
    return waiting


def any_exists(partitions: PartitionManager, context: FetchContext) -> bool:
    """Whether one of the wanted partitions is there, whoever leads it."""
    for wanted in context.partitions:
        try:
            partitions.leader_at(wanted.key)
        except KafkaError as error:
            if error.code in UNKNOWN:
                continue
        return True
    return False


def replica_id_of(request: FetchRequest, call: Call) -> int:
    """Negative for consumers."""
    if call.version >= REPLICA_STATE_VERSION:
        return request.replica_state.replica_id
    return request.replica_id


def reader_of(request: FetchRequest, call: Call, replica_id: int, isolation: IsolationLevel) -> Reader:
    """Who asks: a follower or a consumer."""
    if replica_id >= 0:
        throttled = call.services.partitions.throttled_followers
        return Reader(
            FetchIsolation.LOG_END,
            replica_id=replica_id,
            broker_epoch=request.replica_state.replica_epoch if call.version >= REPLICA_STATE_VERSION else -1,
            now_ms=call.received_ms,
            holds_back=lambda leader: throttled.holds_back(leader, replica_id),
        )
    if request.rack_id and call.version >= FOLLOWER_READS_VERSION:
        return Reader(FetchIsolation(isolation), preferred_replica=selector(call, request.rack_id))
    return CONSUMERS[isolation]


def selector(call: Call, rack: str) -> Callable[[Leader, int], int] | None:
    """What chooses the replica for a consumer in this rack; None if all read from leaders."""
    name = call.services.config.get("replica.selector.class")
    if not name:
        return None
    from broker.partitions.closest_replica import RACK_AWARE, closest_replica

    if name != RACK_AWARE:
        call.services.log.warn_seldom(
            f"replica.selector.class names {name}, and there are no Java classes here: all read from leaders",
            about="replica.selector.class",
        )
        return None
    return lambda leader, offset: closest_replica(call, rack, leader, offset)


def respond(call: Call, context: FetchContext, result: Round, replica_id: int) -> FetchResponse:
    """The answer to what was read, without what the session need not repeat."""
    meter = call.meter
    if meter is not None and replica_id >= 0:
        meter.settle_exempt()
    elif meter is not None:
        size_bytes = 0
        if meter.counts_fetched:
            told = context.preview(result.readings)
            size_bytes = fetched_bytes(tell(call, FetchResponse(), told, replica_id), call.version)
        if meter.settle_fetch(size_bytes):
            error_code, session_id = context.answer_nothing()
            return FetchResponse(error_code=error_code, session_id=session_id)
    error_code, session_id, told = context.answer(result.readings, call.received_ms)
    if replica_id >= 0 and result.size_bytes and not error_code:
        throttled = call.services.partitions.throttled_followers
        for replica, reading in zip(result.replicas, result.readings, strict=True):
            if reading.records_size_bytes and isinstance(replica, Leader):
                throttled.note_replicated(replica, reading.records_size_bytes)
    return tell(call, FetchResponse(error_code=error_code, session_id=session_id), told, replica_id)


def tell(call: Call, response: FetchResponse, told: list[Reading], replica_id: int) -> FetchResponse:
    """Put readings into an answer."""
    topic: FetchableTopicResponse | None = None
    topic_name: str | bytes | None = None
    for reading in told:
        if topic_name == ZERO_UUID:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka trips over what comes behind no topic
        name, index = reading.wanted.key
        if topic is None or name != topic_name:
            topic_name = name
            if isinstance(name, str):
                topic = FetchableTopicResponse(topic=name)
            else:
                topic = FetchableTopicResponse(topic_id=name)
            response.responses.append(topic)
        data = partition_data(reading, index)
        if reading.error_code in WRONG_LEADER and call.version >= LEADER_HINT_VERSION:
            add_leader_hint(response, reading, data, call, is_consumer=replica_id < 0)
        elif reading.error_code == ErrorCode.KAFKA_STORAGE_ERROR and call.version < STORAGE_ERROR_VERSION:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # after this its clients look for another
        topic.partitions.append(data)
    return response


def partition_data(reading: Reading, index: int) -> PartitionData:
    aborted = reading.aborted
    return PartitionData(
        partition_index=index,
        error_code=reading.error_code,
        high_watermark=reading.high_watermark,
        last_stable_offset=reading.last_stable,
        log_start_offset=reading.log_start,
        diverging_epoch=NO_DIVERGENCE
        if reading.diverging is None
        else EpochEndOffset(epoch=reading.diverging[0], end_offset=reading.diverging[1]),
        current_leader=NO_LEADER,
        snapshot_id=NO_SNAPSHOT,
        preferred_read_replica=reading.preferred_replica,
        aborted_transactions=None
        if aborted is None
        else [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in aborted
        ],
        records=reading.records,
    )


def add_leader_hint(
    response: FetchResponse, reading: Reading, data: PartitionData, call: Call, *, is_consumer: bool
) -> None:
    """Say who leads the partition; a consumer is also told the address."""
    hint = leader_hint(call, reading.wanted.key)
    if hint is None:
        return
    data.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    node = hint.node
    if (
        is_consumer
        and node is not None
        and all(known.node_id != node.id for known in response.node_endpoints)
    ):
        response.node_endpoints.append(
            NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        )


def error_response(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The answer if the request fails as a whole.  Partitions are named only if topics have names."""
    return FetchResponse(
        error_code=code,
        session_id=request.session_id,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(
                        partition_index=wanted.partition, error_code=code, high_watermark=-1, records=b""
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.topic
        ],
    )
