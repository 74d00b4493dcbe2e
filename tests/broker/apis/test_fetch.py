"""Fetch, against what Kafka 4.4 answered to the same requests."""

import errno
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from protocol.records.batch import read_batches
from tests.broker.partitions.one_broker import (
    OneBroker,
    answer_of,
    directory_id,
    one_broker,
    produce_request,
    settle,
    some_batch,
)
from tests.storage.builders import batch, marker

TEN = len(some_batch(10))
"""Bytes of a batch of ten records."""


def part(index: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **options: Any) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **options)


def fetch(*partitions: FetchPartition, topic: str | bytes = "t", **options: Any) -> FetchRequest:
    names: dict[str, Any] = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
    topics = [FetchTopic(partitions=list(partitions), **names)] if partitions else []
    return FetchRequest(topics=topics, **options)


def waiting_fetch(*partitions: FetchPartition, min_bytes: int = 1, **options: Any) -> FetchRequest:
    return fetch(*partitions, max_wait_ms=500, min_bytes=min_bytes, **options)


def told(response: FetchResponse) -> list[tuple[int, int, int]]:
    """Partition, error and bytes of records of everything in the answer."""
    return [
        (data.partition_index, data.error_code, size_of(data))
        for topic in response.responses
        for data in topic.partitions
    ]


def size_of(data: PartitionData) -> int:
    return len(data.records) if isinstance(data.records, bytes) else int(data.records.size_bytes)


def only(response: FetchResponse) -> PartitionData:
    (topic,) = response.responses
    (data,) = topic.partitions
    return data


async def filled(broker: OneBroker) -> bytes:
    """Partition 0 with five batches of ten records, 1 with one of three, 2 with none."""
    topic_id = broker.create_topic("t", partitions=3)
    for _ in range(5):
        broker.produce("t", some_batch(10))
    broker.produce("t", some_batch(3), partition=1)
    return topic_id


THREE = len(some_batch(3))


async def test_records_come_with_offsets_and_without_being_decoded() -> None:
    async with one_broker() as broker:
        await filled(broker)
        data = only(broker.ask(fetch(part(offset=15)), 12))
        assert (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset) == (
            0,
            50,
            50,
            0,
        )
        assert data.preferred_read_replica == -1
        assert data.aborted_transactions is None
        assert [batch.base_offset for batch in read_batches(data.records.read())] == [10, 20, 30, 40]


@pytest.mark.parametrize(
    ("partitions", "max_bytes", "sizes"),
    [
        # Of one partition: whole if nothing smaller fits, else cut in the middle.
        ([part(max_bytes=10)], 1 << 24, [TEN]),
        ([part(max_bytes=0)], 1 << 24, [TEN]),
        ([part(max_bytes=TEN + 10)], 1 << 24, [TEN + 10]),
        ([part()], 0, [TEN]),
        ([part()], 1, [TEN]),
        # Of several: only the first one with records may exceed the limits.
        ([part(max_bytes=1), part(1, max_bytes=1)], 1 << 24, [TEN, 0]),
        ([part(), part(1)], TEN, [TEN, 0]),
        ([part(1), part(0)], 1, [THREE, 0]),
        ([part(2), part(0), part(1)], 1, [0, TEN, 0]),
        ([part(2), part(0), part(1)], TEN + 20, [0, TEN + 20, 0]),
        ([part(), part(1)], 5 * TEN + 10, [5 * TEN, 0]),
        ([part(max_bytes=TEN + 5), part(1)], 5 * TEN, [TEN + 5, THREE]),
    ],
)
async def test_how_bytes_are_shared(
    partitions: list[FetchPartition], max_bytes: int, sizes: list[int]
) -> None:
    async with one_broker() as broker:
        await filled(broker)
        response = broker.ask(fetch(*partitions, max_bytes=max_bytes), 12)
        assert [size for _, _, size in told(response)] == sizes


async def test_the_broker_has_a_limit_of_its_own() -> None:
    async with one_broker({"fetch.max.bytes": "1024"}) as broker:
        broker.create_topic("t")
        for _ in range(20):
            broker.produce("t", some_batch(10))
        assert size_of(only(broker.ask(fetch(part()), 12))) == 1024


@pytest.mark.parametrize(("partition_max", "request_max"), [(-1, 1 << 24), (1 << 20, -5)])
async def test_negative_limits(partition_max: int, request_max: int) -> None:
    async with one_broker() as broker:
        await filled(broker)
        data = only(broker.ask(fetch(part(max_bytes=partition_max), max_bytes=request_max), 12))
        assert (data.error_code, data.high_watermark, size_of(data)) == (
            ErrorCode.UNKNOWN_SERVER_ERROR,
            -1,
            0,
        )


@pytest.mark.parametrize(("offset", "code"), [(50, 0), (51, 1), (-1, 1), (-5, 1)])
async def test_offsets_out_of_range_disclose_nothing(offset: int, code: int) -> None:
    async with one_broker() as broker:
        await filled(broker)
        data = only(broker.ask(fetch(part(offset=offset)), 12))
        known = 50 if code == 0 else -1
        assert (data.error_code, data.high_watermark, data.last_stable_offset) == (code, known, known)
        assert data.log_start_offset == (0 if code == 0 else -1)
        assert (data.records, data.aborted_transactions) == (b"", None)


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_unknown_partitions(isolation_level: int) -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        level: dict[str, Any] = {"isolation_level": isolation_level}
        for request, version, code in (
            (fetch(part(9), **level), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (fetch(part(-1), **level), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (fetch(part(), topic="u", **level), 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (fetch(part(9), topic=topic_id, **level), 13, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (fetch(part(), topic=b"u" * 16, **level), 13, ErrorCode.UNKNOWN_TOPIC_ID),
            (fetch(part(), topic=bytes(16), **level), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        ):
            data = only(broker.ask(request, version))
            assert (data.error_code, data.high_watermark, data.records) == (code, -1, b"")
            assert data.aborted_transactions == []  # not None, whatever the level


async def test_read_committed_names_no_aborted_transactions_where_there_are_none() -> None:
    async with one_broker() as broker:
        await filled(broker)
        assert only(broker.ask(fetch(part(), isolation_level=1), 12)).aborted_transactions == []
        out_of_range = only(broker.ask(fetch(part(offset=99), isolation_level=1), 12))
        assert out_of_range.aborted_transactions is None


async def test_read_committed_names_the_transactions_to_skip_and_ends_at_the_first_undecided() -> None:
    async with one_broker() as broker:
        await filled(broker)
        leader = broker.partitions.leader("t", 2)
        for producer_id in (7, 8):
            data = batch(b"x", producer_id=producer_id, producer_epoch=0, is_transactional=True)
            leader.append_own(data, 0)
        leader.append_own(marker(commit=False, producer_id=7), 0)
        answer = only(broker.ask(fetch(part(2), isolation_level=1), 12))
        assert (answer.last_stable_offset, answer.high_watermark) == (1, 3)
        assert answer.aborted_transactions == [AbortedTransaction(producer_id=7, first_offset=0)]
        leader.append_own(marker(commit=True, producer_id=8), 0)
        answer = only(broker.ask(fetch(part(2, offset=1), isolation_level=1), 12))
        assert answer.last_stable_offset == 4
        assert answer.aborted_transactions == [AbortedTransaction(producer_id=7, first_offset=0)]
        answer = only(broker.ask(fetch(part(2, offset=3), isolation_level=1), 12))
        assert answer.aborted_transactions == []
        assert only(broker.ask(fetch(part(2)), 12)).aborted_transactions is None


@pytest.mark.parametrize("isolation_level", [-1, 2, 9])
async def test_isolation_levels_that_do_not_exist(isolation_level: int) -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        response = broker.ask(fetch(part(), part(9), isolation_level=isolation_level), 12)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert told(response) == [(0, -1, 0), (9, -1, 0)]
        by_id = broker.ask(fetch(part(), topic=topic_id, isolation_level=isolation_level), 13)
        assert (by_id.error_code, by_id.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
        nothing_there = broker.ask(fetch(part(9), isolation_level=isolation_level), 12)
        assert nothing_there.error_code == 0
        assert told(nothing_there) == [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]


@pytest.mark.parametrize("version", range(4, 19))
async def test_every_version(version: int) -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        name = topic_id if version >= 13 else "t"
        response = broker.ask(fetch(part(offset=40), part(9), topic=name), version)
        parts = response.encode_parts(version)
        assert [part.size_bytes for part in parts if not isinstance(part, bytearray)] == [TEN]
        whole = b"".join(part if isinstance(part, bytearray) else part.read() for part in parts)
        read = FetchResponse.decode(whole, version)
        assert told_sizes(read) == [TEN, 0]


def told_sizes(response: FetchResponse) -> list[int]:
    return [len(data.records) for topic in response.responses for data in topic.partitions]


async def test_the_answer_keeps_the_order_of_the_request() -> None:
    async with one_broker() as broker:
        await filled(broker)
        broker.create_topic("u")
        request = FetchRequest(
            topics=[
                FetchTopic(topic="t", partitions=[part(1)]),
                FetchTopic(topic="u", partitions=[part()]),
                FetchTopic(topic="t", partitions=[part(0), part(2)]),
            ]
        )
        response = broker.ask(request, 12)
        assert [topic.topic for topic in response.responses] == ["t", "u", "t"]
        assert [index for index, _, _ in told(response)] == [1, 0, 0, 2]


async def test_what_does_not_exist_is_told_behind_the_rest() -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        request = FetchRequest(
            topics=[
                FetchTopic(topic_id=topic_id, partitions=[part(9), part(0)]),
                FetchTopic(topic_id=b"u" * 16, partitions=[part()]),
                FetchTopic(topic_id=topic_id, partitions=[part(1)]),
            ]
        )
        assert [(index, code) for index, code, _ in told(broker.ask(request, 13))] == [
            (0, 0),
            (1, 0),
            (0, ErrorCode.UNKNOWN_TOPIC_ID),
            (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]


# Epochs


@pytest.mark.parametrize(
    ("current", "code"),
    [(-1, 0), (-2, 0), (2, 0), (1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
async def test_current_leader_epoch(current: int, code: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", leader_epoch=2)
        assert only(broker.ask(fetch(part(current_leader_epoch=current)), 12)).error_code == code


async def test_a_fenced_reader_is_told_the_leader() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", leader_epoch=2)
        for version, is_told in ((12, False), (15, False), (16, True), (18, True)):
            name = topic_id if version >= 13 else "t"
            response = broker.ask(fetch(part(current_leader_epoch=1), topic=name), version)
            leader = only(response).current_leader
            assert (leader.leader_id, leader.leader_epoch) == ((1, 2) if is_told else (-1, -1))
            nodes = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
            assert nodes == ([(1, "broker1.example", 9092)] if is_told else [])
        ahead = broker.ask(fetch(part(current_leader_epoch=3), topic=topic_id), 16)
        assert only(ahead).current_leader.leader_id == -1


@pytest.mark.parametrize(
    ("last_fetched", "offset", "outcome"),
    [
        (-1, 4, "records"),
        (-2, 4, "records"),
        (0, 3, "records"),
        (0, 4, (0, 3)),
        (1, 2, (0, 3)),
        (1, 4, (0, 3)),
        (2, 4, "records"),
        (2, 99, (2, 6)),
        (3, 4, "out of range"),
    ],
)
async def test_last_fetched_epoch(last_fetched: int, offset: int, outcome: object) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        broker.produce("t", some_batch(3))
        broker.change_leader(topic_id, 1)
        broker.change_leader(topic_id, 1)
        broker.produce("t", some_batch(3))
        data = only(broker.ask(fetch(part(offset=offset, last_fetched_epoch=last_fetched)), 12))
        if outcome == "records":
            assert (data.error_code, data.diverging_epoch) == (0, EpochEndOffset())
            assert size_of(data) > 0
        elif outcome == "out of range":
            assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == outcome
            assert (data.error_code, data.high_watermark, data.records) == (0, 6, b"")


# Followers


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
@pytest.mark.parametrize("replica_id", [1, 77])
async def test_a_partition_with_one_replica_has_no_followers(
    replica_id: int, epoch: int, code: ErrorCode
) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", leader_epoch=2)
        wanted = part(current_leader_epoch=epoch)
        assert only(broker.ask(fetch(wanted, replica_id=replica_id), 12)).error_code == code
        state = ReplicaState(replica_id=replica_id)
        response = broker.ask(fetch(wanted, topic=topic_id, replica_state=state), 17)
        assert only(response).error_code == code
        assert response.node_endpoints == []  # these are for consumers


async def test_negative_replica_ids_are_consumers() -> None:
    async with one_broker() as broker:
        await filled(broker)
        for replica_id in (-1, -2, -3):
            assert size_of(only(broker.ask(fetch(part(), replica_id=replica_id), 12))) == 5 * TEN


# Waiting


@pytest.mark.parametrize(
    ("request_", "sizes"),
    [
        (fetch(part(2), max_wait_ms=500, min_bytes=0), [0]),
        (fetch(part(2), max_wait_ms=500, min_bytes=-5), [0]),
        (fetch(part(2), max_wait_ms=0, min_bytes=1), [0]),
        (fetch(part(2), max_wait_ms=-5, min_bytes=1), [0]),
        (waiting_fetch(part(), min_bytes=10_000, max_bytes=TEN), [TEN]),  # the minimum is at most the maximum
        (waiting_fetch(part(9)), [0]),
        (waiting_fetch(part(offset=99)), [0]),
        (waiting_fetch(part(offset=99), part(2)), [0, 0]),
        (waiting_fetch(part(9), part(0)), [5 * TEN, 0]),
        (waiting_fetch(part(2, offset=3, last_fetched_epoch=0)), [0]),
        (waiting_fetch(), []),
    ],
)
async def test_what_is_answered_at_once(request_: FetchRequest, sizes: list[int]) -> None:
    async with one_broker() as broker:
        await filled(broker)
        response = broker.ask(request_, 12)
        assert isinstance(response, FetchResponse)
        assert [size for _, _, size in told(response)] == sizes


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (waiting_fetch(part(2)), [(2, 0, 0)]),
        (waiting_fetch(part(9), part(2)), [(2, 0, 0), (9, 3, 0)]),  # an unknown partition beside others
        (waiting_fetch(part(), min_bytes=10_000), [(0, 0, 5 * TEN)]),
        (waiting_fetch(part(2), min_bytes=10_000, max_bytes=10), [(2, 0, 0)]),
    ],
)
async def test_what_waits_for_its_time(
    request_: FetchRequest, answer: list[object], mock_clock: MockClock
) -> None:
    async with one_broker() as broker:
        await filled(broker)
        waiting = broker.ask(request_, 12)
        assert isinstance(waiting, Waiting)
        assert waiting.deadline == pytest.approx(trio.current_time() + 0.5)
        assert waiting.droppable
        await settle()
        assert not waiting.is_answered
        waiting.expire()
        assert told(waiting.result()) == answer


async def test_a_batch_wakes_who_waits_for_it() -> None:
    async with one_broker() as broker:
        await filled(broker)
        waiting = broker.ask(waiting_fetch(part(2), part(1, offset=3)), 12)
        other = broker.ask(waiting_fetch(part(1, offset=3)), 12)
        broker.produce("t", some_batch(10), partition=2)
        broker.produce("t", some_batch(10), partition=2)
        assert told(waiting.result()) == [(2, 0, 2 * TEN), (1, 0, 0)]  # read when its turn comes
        assert not other.is_answered


async def test_a_fetch_waits_for_as_many_bytes_as_it_wants() -> None:
    async with one_broker() as broker:
        await filled(broker)
        waiting = broker.ask(waiting_fetch(part(1), part(2), min_bytes=THREE + 2 * TEN), 12)
        for partition in (2, 1):
            assert not waiting.is_answered
            broker.produce("t", some_batch(10), partition=partition)
        assert told(waiting.result()) == [(1, 0, THREE + TEN), (2, 0, TEN)]


async def test_a_partition_s_own_limit_counts_while_waiting() -> None:
    async with one_broker() as broker:
        await filled(broker)
        waiting = broker.ask(waiting_fetch(part(2, max_bytes=TEN), min_bytes=2 * TEN), 12)
        for _ in range(3):
            broker.produce("t", some_batch(10), partition=2)
        assert not waiting.is_answered


async def test_a_partition_without_room_wakes_nobody() -> None:
    async with one_broker() as broker:
        await filled(broker)
        waiting = broker.ask(waiting_fetch(part(2, max_bytes=0)), 12)
        little = broker.ask(waiting_fetch(part(2, max_bytes=TEN - 2), min_bytes=TEN - 1), 12)
        enough = broker.ask(waiting_fetch(part(2, max_bytes=TEN - 1), min_bytes=TEN - 1), 12)
        broker.produce("t", some_batch(10), partition=2)
        assert [each.is_answered for each in (waiting, little, enough)] == [False, False, True]
        waiting.expire()
        assert told(waiting.result()) == [(2, 0, TEN)]


async def test_records_beyond_a_segment_s_end_wake_too() -> None:
    """One answer does not reach into the next segment, so waiting for more of it would be in vain."""
    async with one_broker() as broker:
        broker.create_topic("t", settings={"segment.bytes": "1048576"})
        broker.produce("t", some_batch(1, size=600_000))
        waiting = broker.ask(waiting_fetch(part(max_bytes=1 << 30), min_bytes=1_000_000), 12)
        broker.produce("t", some_batch(1, size=600_000))
        assert told(waiting.result())[0][2] < 700_000


async def test_a_fetch_that_is_given_up_is_not_woken() -> None:
    async with one_broker() as broker:
        await filled(broker)
        leader = broker.partitions.leader("t", 2)
        waiting = broker.ask(waiting_fetch(part(2)), 12)
        assert len(leader._watchers) == 1
        waiting.abandon()
        assert len(leader._watchers) == 0


async def test_nobody_watches_after_the_answer() -> None:
    async with one_broker() as broker:
        await filled(broker)
        leaders = [broker.partitions.leader("t", index) for index in (1, 2)]
        for end in ("time", "records"):
            offset = leaders[0].log.log_end
            waiting = broker.ask(waiting_fetch(part(1, offset=offset), part(2)), 12)
            if end == "time":
                waiting.expire()
            else:
                broker.produce("t", partition=1)
            assert waiting.is_answered
            assert [len(leader._watchers) for leader in leaders] == [0, 0]


async def test_a_deleted_topic_wakes() -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        by_name = broker.ask(waiting_fetch(part(2)), 12)
        by_id = broker.ask(waiting_fetch(part(2), topic=topic_id), 13)
        broker.delete_topic(topic_id)
        assert told(by_name.result()) == [(2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        assert told(by_id.result()) == [(2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]


async def test_a_fetch_sees_and_waits_for_what_is_committed() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"flush.messages": "1"})
        broker.partitions.leader("t", 0)
        await settle()
        broker.hold_threads()
        broker.ask(fetch(part()), 12)
        produced = broker.ask(produce_request("t", some_batch(10)), 9)
        assert told(broker.ask(fetch(part()), 12)) == [(0, 0, 0)]
        assert told(broker.ask(fetch(part(offset=10)), 12)) == [(0, 0, 0)]  # written, not committed: no error
        waiting = broker.ask(waiting_fetch(part()), 12)
        await settle()
        assert not waiting.is_answered
        broker.release_threads()
        await answer_of(produced)
        assert told(waiting.result()) == [(0, 0, TEN)]


# Sessions; their rules are tested with fetch_sessions


def opened(broker: OneBroker, *partitions: FetchPartition, **options: Any) -> int:
    response = broker.ask(fetch(*partitions, session_epoch=0, **options), 12)
    assert response.session_id > 0
    return int(response.session_id)


async def test_incremental_fetches() -> None:
    async with one_broker() as broker:
        await filled(broker)
        session_id = opened(broker, part(0, offset=50), part(1, offset=3), part(2))

        def poll(epoch: int, *changes: FetchPartition) -> list[tuple[int, int, int]]:
            response = broker.ask(fetch(*changes, session_id=session_id, session_epoch=epoch), 12)
            assert (response.error_code, response.session_id) == (0, session_id)
            return told(response)

        assert poll(1) == []
        broker.produce("t", some_batch(10), partition=2)
        assert poll(2) == poll(3) == [(2, 0, TEN)]
        assert poll(4, part(2, offset=10)) == []
        assert poll(5, part(9), part(0, offset=999)) == [(0, 1, 0), (9, 3, 0)]
        assert poll(6, part(0, offset=50)) == [(0, 0, 0), (9, 3, 0)]


async def test_partitions_take_turns() -> None:
    async with one_broker() as broker:
        await filled(broker)
        broker.produce("t", partition=2)
        session_id = opened(broker, part(0), part(1), part(2), max_bytes=1)
        order = []
        for epoch in range(1, 6):
            response = broker.ask(fetch(session_id=session_id, session_epoch=epoch, max_bytes=1), 12)
            order += [index for index, _, _ in told(response)]
        assert order == [0, 1, 2, 0, 1]


async def test_a_waiting_incremental_fetch() -> None:
    async with one_broker() as broker:
        await filled(broker)
        session_id = opened(broker, part(1, offset=3), part(2))
        waiting = broker.ask(waiting_fetch(session_id=session_id, session_epoch=1), 12)
        broker.produce("t", some_batch(10), partition=2)
        assert told(waiting.result()) == [(2, 0, TEN)]
        idle = broker.ask(waiting_fetch(part(2, offset=10), session_id=session_id, session_epoch=2), 12)
        idle.expire()
        assert told(idle.result()) == []


@pytest.mark.parametrize(
    ("session", "code"),
    [
        ({"session_id": 999, "session_epoch": 7}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session_id": 0, "session_epoch": 1}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
async def test_refused_sessions_are_answered_at_once(session: dict[str, int], code: ErrorCode) -> None:
    async with one_broker() as broker:
        await filled(broker)
        response = broker.ask(waiting_fetch(part(), **session), 12)
        assert (response.error_code, response.session_id, response.responses) == (code, 0, [])


async def test_nothing_can_be_told_behind_a_topic_that_has_no_id() -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        nameless = FetchTopic(topic_id=bytes(16), partitions=[part(0)])
        known = FetchTopic(topic_id=topic_id, partitions=[part(0)])
        answer = broker.ask(FetchRequest(topics=[nameless, known]), 13)
        assert [topic.topic_id for topic in answer.responses] == [topic_id, bytes(16)]
        nameless.partitions.append(part(1))
        with pytest.raises(KafkaError) as failure:
            broker.ask(FetchRequest(topics=[nameless, known]), 13)
        assert failure.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_session_survives_a_wrong_isolation_level() -> None:
    async with one_broker() as broker:
        await filled(broker)
        session_id = opened(broker, part(2))
        wrong = broker.ask(fetch(session_id=session_id, session_epoch=1, isolation_level=9), 12)
        assert (wrong.error_code, wrong.session_id, wrong.responses) == (-1, session_id, [])
        right = broker.ask(fetch(session_id=session_id, session_epoch=2), 12)
        assert (right.error_code, right.responses) == (0, [])
        assert broker.ask(fetch(part(), session_epoch=0, isolation_level=9), 12).session_id == 0


async def test_a_session_by_id_notices_that_the_topic_is_another() -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        request = fetch(part(0, offset=50), topic=topic_id, session_epoch=0)
        session_id = broker.ask(request, 13).session_id
        broker.delete_topic(topic_id)
        gone = broker.ask(fetch(session_id=session_id, session_epoch=1), 13)
        assert told(gone) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        broker.create_topic("t")
        again = broker.ask(fetch(session_id=session_id, session_epoch=2), 13)
        assert told(again) == [(0, ErrorCode.INCONSISTENT_TOPIC_ID, 0)]
        outside = broker.ask(fetch(part(), topic=topic_id), 13)
        assert told(outside) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]


async def test_a_session_by_name_follows_the_name_to_a_new_topic() -> None:
    async with one_broker() as broker:
        topic_id = await filled(broker)
        session_id = opened(broker, part(0, offset=50))
        broker.delete_topic(topic_id)
        gone = broker.ask(fetch(session_id=session_id, session_epoch=1), 12)
        assert told(gone) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        broker.create_topic("t")
        again = broker.ask(fetch(session_id=session_id, session_epoch=2), 12)
        assert told(again) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, 0)]


async def test_damage_is_answered_with_an_error_and_told_once() -> None:
    async with one_broker() as broker:
        await filled(broker)
        broker.file_system.open("/data/t-0/00000000000000000000.log").pwrite(b"\xee" * 20, 3 * TEN)
        broker.partitions.leader("t", 0).log._active._places.clear()  # as if it had been written long ago
        for _ in range(3):
            assert only(broker.ask(fetch(part(offset=35)), 12)).error_code == ErrorCode.CORRUPT_MESSAGE
        assert only(broker.ask(fetch(part(offset=51)), 12)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        (line,) = broker.lines.getvalue().splitlines()
        assert f"t-0 cannot be read: /data/t-0/00000000000000000000.log: at byte {3 * TEN}: " in line


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR),
        (12, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
async def test_older_consumers_are_not_told_that_a_directory_has_failed(
    version: int, code: ErrorCode
) -> None:
    async with one_broker(paths=("/a", "/b")) as broker:
        broker.create_topic("t", directory=directory_id("/b"))
        assert broker.produce("t").error_code == 0
        broker.file_system.refuse("write", errno.EIO, path_suffix="/b/t-0/00000000000000000000.log")
        assert broker.produce("t").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert only(broker.ask(fetch(part()), version)).error_code == code
