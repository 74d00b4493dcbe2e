"""Produce, against what Kafka 4.4 answered to the same requests."""

import errno
from typing import Any

import pytest

from broker.errors import CloseConnection
from broker.network.waiting import Waiting
from broker.transactions.service import open_transactions
from protocol.error_codes import ErrorCode
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.partitions.one_broker import (
    START_MS,
    answer_of,
    one_broker,
    produce_request,
    settle,
    some_batch,
)
from tests.protocol.records.produce_cases import NOW, TOPICS, produce_cases
from tests.protocol.records.test_validation import ANSWERS, DEVIATIONS, Answer

UNTOLD = -1
EVERY_RECORD = {"flush.messages": "1"}


def refusal(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    """The answer to what did not reach a log."""
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, error_message=message, log_start_offset=UNTOLD
    )


def several(
    *topics: tuple[str, list[tuple[int, bytes | bytearray | None]]],
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=index, records=data) for index, data in parts],
            )
            for name, parts in topics
        ],
    )


def codes(answer: ProduceResponse) -> dict[str, dict[int, int]]:
    return {
        topic.name: {reply.index: reply.error_code for reply in topic.partition_responses}
        for topic in answer.responses
    }


def transactional(producer_id: int = 7, **options: Any) -> bytearray:
    sequence = 0 if producer_id >= 0 else -1
    return some_batch(
        is_transactional=True, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, **options
    )


async def test_batches_get_consecutive_offsets() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        assert broker.produce("t", some_batch(2)) == PartitionProduceResponse(
            index=0, base_offset=0, log_append_time_ms=-1, log_start_offset=0
        )
        assert broker.produce("t", some_batch(3)).base_offset == 2
        assert broker.produce("t").base_offset == 5


async def test_every_recorded_answer_of_kafka() -> None:
    """What the checks of ``protocol.records`` say reaches the answer, and the log start with it."""
    async with one_broker() as broker:
        broker.clock.wall_ms = NOW
        for name, topic in TOPICS.items():
            broker.create_topic(name, settings=topic.configs)
        different = {}
        for case in produce_cases():
            response = await answer_of(broker.ask(produce_request(case.topic, case.records), 9))
            reply = response.responses[0].partition_responses[0]
            errors = [[error.batch_index, error.batch_index_error_message] for error in reply.record_errors]
            answer = Answer(reply.error_code, reply.log_start_offset != UNTOLD, reply.error_message, errors)
            if answer != DEVIATIONS.get(case.name, ANSWERS[case.name]):
                different[case.name] = answer
        assert different == {}


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
@pytest.mark.parametrize("records", [some_batch(), b"", b"x"])
async def test_unknown_partitions_come_before_bad_records(
    topic: str, index: int, code: ErrorCode, records: bytes
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        assert broker.produce(topic, records, partition=index) == refusal(index, code)


async def test_null_records_are_refused() -> None:
    """Kafka never answers them."""
    async with one_broker() as broker:
        broker.create_topic("t")
        answer = broker.ask(several(("t", [(0, None)])), 9)
        assert answer.responses[0].partition_responses == [refusal(0, ErrorCode.INVALID_RECORD)]


async def test_topics_by_id() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t")
        request = ProduceRequest(
            acks=-1,
            topic_data=[
                TopicProduceData(topic_id=asked, partition_data=[PartitionProduceData(index=0, records=data)])
                for asked, data in ((topic_id, some_batch()), (b"x" * 16, some_batch()), (bytes(16), b""))
            ],
        )
        answer = broker.ask(request, 13)
        assert [topic.topic_id for topic in answer.responses] == [topic_id, b"x" * 16, bytes(16)]
        replies = [topic.partition_responses for topic in answer.responses]
        assert replies[0][0].base_offset == 0
        assert replies[1:] == [[refusal(0, ErrorCode.UNKNOWN_TOPIC_ID)]] * 2


async def test_each_partition_is_answered_for_itself() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=3)
        request = several(
            ("t", [(2, some_batch()), (9, some_batch()), (0, some_batch()[:-1])]),
            ("u", [(0, some_batch())]),
            ("t", [(1, some_batch(2))]),
        )
        answer = broker.ask(request, 9)
        assert [topic.name for topic in answer.responses] == ["t", "u"]
        assert [[reply.error_code for reply in topic.partition_responses] for topic in answer.responses] == [
            [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_RECORD, 0],
            [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        ]


async def test_of_a_partition_named_twice_the_last_batch_counts() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        answer = broker.ask(several(("t", [(0, some_batch(1)), (0, some_batch(4))])), 9)
        assert codes(answer) == {"t": {0: 0}}
        assert broker.partitions.leader("t", 0).log.log_end == 4


@pytest.mark.parametrize("acks", [2, -2, 7])
async def test_wrong_acks(acks: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        request = several(
            ("t", [(0, some_batch()), (1, some_batch())]), ("u", [(0, some_batch())]), acks=acks
        )
        assert codes(broker.ask(request, 9)) == {
            "t": {0: ErrorCode.INVALID_REQUIRED_ACKS, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
            "u": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        }
        assert broker.produce("t", b"", acks=acks).error_code == ErrorCode.INVALID_RECORD
        assert broker.ask(several(acks=acks), 9) == ProduceResponse()
        assert broker.partitions.leader("t", 0).log.log_end == 0


async def test_without_acknowledgement_there_is_no_answer() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        assert broker.ask(produce_request("t", acks=0), 9) is None
        assert broker.ask(several(acks=0), 9) is None
        assert broker.partitions.leader("t", 0).log.log_end == 1


async def test_without_acknowledgement_an_error_closes_the_connection() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        for request in (
            produce_request("u", acks=0),
            produce_request("t", some_batch()[:-1], acks=0),
            several(("t", [(0, None)]), acks=0),
            several(("t", [(0, some_batch()), (7, some_batch())]), acks=0),
            several(("t", [(0, transactional())]), acks=0),
            several(("t", [(0, bytes(61))]), acks=0),
        ):
            with pytest.raises(CloseConnection):
                broker.ask(request, 9)
        assert broker.partitions.leader("t", 0).log.log_end == 1


@pytest.mark.parametrize("version", [3, 6])
async def test_zstd_needs_version_7(version: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        batch = some_batch(compression=Compression.ZSTD)
        request = several(("t", [(0, batch), (1, some_batch())]))
        assert codes(broker.ask(request, version)) == {"t": {0: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 1: 0}}
        assert codes(broker.ask(request, 7)) == {"t": {0: 0, 1: 0}}


async def test_a_malformed_batch_refuses_the_whole_request() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        answer = broker.ask(several(("t", [(0, some_batch()), (1, bytes(61))])), 9)
        message = "Record size 0 is less than the minimum record overhead (14)"
        assert answer.responses[0].partition_responses == [
            refusal(index, ErrorCode.CORRUPT_MESSAGE, message) for index in (0, 1)
        ]
        assert broker.partitions.leader("t", 0).log.log_end == 0


@pytest.mark.parametrize("version", range(3, 14))
async def test_refusals_can_be_written_in_every_version(version: int) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings={"cleanup.policy": "compact"})
        keyless = build_batch([(START_MS, None, b"value", ())])
        request = produce_request("t", keyless)
        request.topic_data[0].topic_id = topic_id
        answer = broker.ask(request, version)
        written = ProduceResponse.decode(answer.encode(version), version)
        reply = written.responses[0].partition_responses[0]
        assert reply.error_code == ErrorCode.INVALID_RECORD
        if version >= 8:
            message = "Compacted topic cannot accept message without key in topic partition t-0"
            assert reply.record_errors == [
                BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=message)
            ]


# Time


async def test_append_time_is_told_where_the_topic_sets_it() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"message.timestamp.type": "LogAppendTime"})
        broker.clock.wall_ms = START_MS + 5000
        assert broker.produce("t").log_append_time_ms == START_MS + 5000


async def test_timestamps_too_far_ahead_are_refused_by_record() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        records = [(START_MS + offset, b"k", b"v", ()) for offset in (0, 7_200_000, 3_600_000)]
        reply = broker.produce("t", build_batch(records))
        assert reply.error_code == ErrorCode.INVALID_TIMESTAMP
        assert reply.log_start_offset == 0
        assert [error.batch_index for error in reply.record_errors] == [1]


# Size


@pytest.mark.parametrize(
    ("sizes", "compression", "code"),
    [
        ([492], Compression.GZIP, 0),
        ([493], Compression.GZIP, ErrorCode.INVALID_RECORD),
        ([10, 493], Compression.ZSTD, ErrorCode.INVALID_RECORD),
        ([300, 300, 300, 300], Compression.LZ4, 0),
        ([1000], Compression.NONE, 0),
    ],
)
@pytest.mark.acts("max.decompressed.message.bytes")
async def test_records_that_are_larger_than_they_came(
    sizes: list[int], compression: Compression, code: int
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"max.decompressed.message.bytes": "500"})
        records = [(START_MS, b"k", bytes(size), ()) for size in sizes]
        reply = broker.produce("t", build_batch(records, compression=compression))
        assert (reply.error_code, reply.log_start_offset, reply.record_errors) == (code, 0, [])


# Idempotence


async def test_a_duplicate_is_answered_with_its_first_offset_and_its_time() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        batch = some_batch(2, producer_id=7, producer_epoch=0, base_sequence=10)
        first = broker.produce("t", batch)
        again = broker.produce("t", batch)
        assert (first.base_offset, first.log_append_time_ms) == (0, -1)
        assert (again.base_offset, again.log_append_time_ms, again.error_code) == (0, START_MS, 0)
        assert broker.partitions.leader("t", 0).log.log_end == 2


@pytest.mark.parametrize(
    ("sequence", "epoch", "code"),
    [
        (12, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (10, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # with another count
        (3, 5, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, -1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (-1, 0, ErrorCode.INVALID_RECORD),
    ],
)
async def test_what_does_not_follow_is_refused_inside_the_log(
    sequence: int, epoch: int, code: ErrorCode
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(producer_id=7, producer_epoch=0, base_sequence=10))
        reply = broker.produce(
            "t", some_batch(2, producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        )
        assert (reply.error_code, reply.base_offset, reply.log_start_offset) == (code, -1, 0)
        assert reply.error_message is None


# Transactions, as far as they show while none are served


async def test_a_transactional_batch_without_transactional_id_refuses_the_whole_request() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        for batch in (transactional(), transactional(producer_id=-1)):
            answer = broker.ask(several(("t", [(0, batch), (1, some_batch())]), ("u", [(0, batch)])), 9)
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert codes(answer) == {"t": {0: code, 1: code}, "u": {0: code}}


async def test_it_does_so_even_if_something_else_is_wrong_with_it() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        two_batches = transactional() + transactional()
        answer = broker.ask(several(("t", [(0, two_batches), (1, some_batch())])), 9)
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert codes(answer) == {"t": {0: code, 1: code}}
        request = several(("t", [(0, two_batches), (1, some_batch())]), transactional_id="id")
        assert codes(broker.ask(request, 9)) == {"t": {0: ErrorCode.INVALID_RECORD, 1: 0}}


async def test_a_codec_that_older_producers_cannot_know_refuses_the_whole_request() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        unknown = some_batch()
        unknown[22] |= 5
        request = several(("t", [(0, unknown), (1, some_batch())]))
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        assert codes(broker.ask(request, 6)) == {"t": {0: code, 1: code}}
        assert codes(broker.ask(request, 7)) == {"t": {0: ErrorCode.CORRUPT_MESSAGE, 1: 0}}


async def test_a_transaction_without_coordinator() -> None:
    async with one_broker() as broker, open_transactions(broker.services) as transactions:
        broker.transactions = transactions  # type: ignore[attr-defined]
        broker.create_topic("t", partitions=3)
        request = several(
            ("t", [(0, transactional()), (1, some_batch()), (2, transactional(producer_id=-1))]),
            ("u", [(0, transactional())]),
            transactional_id="id",
        )
        answer = broker.ask(request, 9)
        assert codes(answer) == {
            "t": {0: ErrorCode.NOT_ENOUGH_REPLICAS, 1: 0, 2: 0},
            "u": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        }


async def test_two_producers_in_one_transactional_request() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        request = several(("t", [(0, transactional(7)), (1, transactional(8))]), transactional_id="id")
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        message = "Transactional records contained more than one producer ID"
        assert broker.ask(request, 9).responses[0].partition_responses == [
            refusal(0, code, message),
            refusal(1, code, message),
        ]


async def test_internal_topics_are_closed_to_clients() -> None:
    async with one_broker() as broker:
        broker.create_topic("__consumer_offsets")
        assert broker.produce("__consumer_offsets") == refusal(0, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert broker.produce("__consumer_offsets", some_batch()[:-1]) == refusal(0, ErrorCode.INVALID_RECORD)


# Who leads


async def test_what_is_wrong_anyway_is_said_first() -> None:
    """Of a partition that is led elsewhere."""
    async with one_broker() as broker:
        broker.create_topic("t", leader=2)
        broker.create_topic("__consumer_offsets", leader=2)
        assert broker.produce("__consumer_offsets") == refusal(0, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert broker.produce("t", some_batch()[:-1]) == refusal(0, ErrorCode.INVALID_RECORD)
        answer = broker.ask(several(("t", [(0, some_batch()), (7, some_batch())]), acks=2), 9)
        assert codes(answer) == {
            "t": {0: ErrorCode.INVALID_REQUIRED_ACKS, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        }


async def test_a_partition_without_leader_says_so() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", leader=-1)
        assert broker.produce("t") == refusal(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        request = produce_request("t")
        request.topic_data[0].topic_id = topic_id
        reply = broker.ask(request, 13).responses[0].partition_responses[0]
        assert (reply.current_leader.leader_id, reply.current_leader.leader_epoch) == (-1, 0)


async def test_a_partition_led_elsewhere_says_where() -> None:
    async with one_broker() as broker:
        broker.register(2)
        broker.create_topic("t", leader=2, leader_epoch=4)
        answer = broker.ask(produce_request("t"), 10)
        reply = answer.responses[0].partition_responses[0]
        assert reply.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (reply.current_leader.leader_id, reply.current_leader.leader_epoch) == (2, 4)
        assert [(node.node_id, node.host) for node in answer.node_endpoints] == [(2, "broker2.example")]
        assert broker.ask(produce_request("t"), 9).node_endpoints == []


# Waiting


def large_batch(**options: Any) -> bytearray:
    """One that is checked in a thread."""
    return some_batch(4000, size=50, compression=Compression.GZIP, level=1, **options)


async def test_a_large_compressed_batch_is_checked_in_a_thread() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=2)
        broker.hold_threads()
        waiting = broker.ask(several(("t", [(0, large_batch()), (1, some_batch())])), 9)
        assert isinstance(waiting, Waiting)
        uses_bytes = [waiting.exclusive]
        assert broker.partitions.leader("t", 1).log.log_end == 1
        await settle()
        broker.release_threads()
        answer = await waiting.wait()
        assert codes(answer) == {"t": {0: 0, 1: 0}}
        assert [*uses_bytes, waiting.exclusive] == [True, False]
        assert broker.partitions.leader("t", 0).log.log_end == 4000


async def test_another_connection_s_batch_waits_behind_it() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.hold_threads()
        first = broker.ask(produce_request("t", large_batch()), 9)
        second = broker.ask(produce_request("t", some_batch()), 9)
        assert second.exclusive
        await settle()
        broker.release_threads()
        answers = [await answer_of(first), await answer_of(second)]
        offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
        assert offsets == [0, 4000]


async def test_a_small_batch_that_holds_very_much_is_checked_in_a_thread() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.hold_threads()
        records = build_batch([(START_MS, None, bytes(1_000_000), ())], compression=Compression.ZSTD)
        assert len(records) < 200
        waiting = broker.ask(several(("t", [(0, records)])), 9)
        assert isinstance(waiting, Waiting)
        await settle()
        assert not waiting.is_answered
        broker.release_threads()
        assert (await waiting.wait()).responses[0].partition_responses[0].base_offset == 0


async def test_a_refusal_in_a_thread() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broken = large_batch()
        broken[-30] ^= 1
        answer = await answer_of(broker.ask(produce_request("t", broken), 9))
        assert answer.responses[0].partition_responses == [refusal(0, ErrorCode.CORRUPT_MESSAGE)]
        without_answer = broker.ask(produce_request("t", broken, acks=0), 9)
        with pytest.raises(CloseConnection):
            await answer_of(without_answer)
        assert await answer_of(broker.ask(produce_request("t", large_batch(), acks=0), 9)) is None


@pytest.mark.parametrize("acks", [-1, 1])
async def test_the_answer_waits_for_the_fsync_that_the_topic_asks_for(acks: int) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=EVERY_RECORD)
        broker.partitions.leader("t", 0)
        await settle()
        broker.hold_threads()
        waiting = broker.ask(produce_request("t", acks=acks), 9)
        await settle()
        assert not waiting.is_answered
        assert not waiting.exclusive  # the bytes are written: the next request may start
        broker.release_threads()
        answer = await waiting.wait()
        assert answer.responses[0].partition_responses[0].base_offset == 0
        assert broker.partitions.leader("t", 0).log.recovery_point == 1


async def test_without_acknowledgement_nobody_waits_for_an_fsync() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=EVERY_RECORD)
        broker.hold_threads()
        assert broker.ask(produce_request("t", acks=0), 9) is None


async def test_a_topic_that_is_deleted_meanwhile() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings=EVERY_RECORD)
        broker.hold_threads()
        unflushed = broker.ask(produce_request("t"), 9)
        unchecked = broker.ask(produce_request("t", large_batch()), 9)
        broker.delete_topic(topic_id)
        await settle()
        broker.release_threads()
        for waiting in (unflushed, unchecked):
            answer = await answer_of(waiting)
            assert codes(answer) == {"t": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}


async def test_a_disk_that_refuses() -> None:
    file_system = MemoryFileSystem(now_ms=lambda: START_MS)
    async with one_broker(file_system=file_system) as broker:
        broker.create_topic("t")
        broker.produce("t")
        file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        assert broker.produce("t") == refusal(0, ErrorCode.KAFKA_STORAGE_ERROR)
        assert broker.produce("t").base_offset == 1
