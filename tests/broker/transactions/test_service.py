"""The coordinator at work: markers reach partitions, time passes, disks fail, brokers crash."""

import errno
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing

from broker.metadata.image import MetadataImage
from broker.metadata.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from broker.network.waiting import Waiting
from broker.transactions.markers import MARKERS_BEFORE_YIELD, RETRY_SECONDS
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from protocol.records.builder import build_batch
from storage.errors import UnverifiedTransaction
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.groups.group_broker import (
    PARTITION_COUNT,
    START_MS,
    GroupBroker,
    as_read,
    group_broker,
)
from tests.storage.builders import batch, marker

TIMEOUT_MS = 60_000
COMMIT, ABORT = True, False


class Writer(NamedTuple):
    producer_id: int
    epoch: int


def disk() -> MemoryFileSystem:
    return MemoryFileSystem(now_ms=lambda: START_MS)


def make_topics(broker: GroupBroker, partition_count: int = 2) -> bytes:
    broker.broker.create_topic(TRANSACTION_STATE, PARTITION_COUNT)
    broker.make_offsets_topic()
    topic_id = broker.broker.create_topic("t", partition_count)
    broker.broker.make_missing()
    return topic_id


def initialize(broker: GroupBroker) -> Writer:
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=TIMEOUT_MS)
    given = broker.ask(request, InitProducerIdResponse, 5)
    assert given.error_code == 0, given
    return Writer(given.producer_id, given.producer_epoch)


def add(broker: GroupBroker, writer: Writer, partitions: Sequence[int] = (0,), topic: str = "t") -> int:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=writer.producer_id,
        v3_and_below_producer_epoch=writer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )
    answer = broker.ask(request, AddPartitionsToTxnResponse, 3)
    return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def end(broker: GroupBroker, writer: Writer, committed: bool, version: int = 4) -> int:
    request = EndTxnRequest(
        transactional_id="x",
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        committed=committed,
    )
    return broker.ask(request, EndTxnResponse, version).error_code


def produced(writer: Writer, sequence: int = 0, partition: int = 0) -> ProduceRequest:
    records = build_batch(
        [(START_MS, None, b"v", ())],
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        transactional_id="x",
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name="t", partition_data=[data])],
    )


def reply_of(answer: Any, version: int) -> PartitionProduceResponse:
    return as_read(answer, ProduceResponse, version).responses[0].partition_responses[0]


def produce(broker: GroupBroker, writer: Writer, sequence: int = 0, version: int = 9) -> int:
    return reply_of(broker.begin(produced(writer, sequence), version), version).error_code


def commit_offset(broker: GroupBroker, writer: Writer, version: int) -> int:
    place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[place])],
    )
    answer = broker.ask(request, TxnOffsetCommitResponse, version)
    return answer.topics[0].partitions[0].error_code


def state(broker: GroupBroker) -> str:
    request = DescribeTransactionsRequest(transactional_ids=["x"])
    (described,) = broker.ask(request, DescribeTransactionsResponse, 0).transaction_states
    return described.transaction_state or ErrorCode(described.error_code).name


def described_partitions(broker: GroupBroker) -> list[tuple[str, list[int]]]:
    request = DescribeTransactionsRequest(transactional_ids=["x"])
    (described,) = broker.ask(request, DescribeTransactionsResponse, 0).transaction_states
    return [(topic.topic, list(topic.partitions)) for topic in described.topics]


def listed(broker: GroupBroker) -> list[str] | int:
    answer = broker.ask(ListTransactionsRequest(), ListTransactionsResponse, 2)
    return answer.error_code or [found.transactional_id for found in answer.transaction_states]


def last_stable(broker: GroupBroker, partition: int = 0) -> int:
    return broker.broker.partitions.leader("t", partition).log.last_stable


async def test_markers_follow_the_decision() -> None:
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer, (0, 1)) == 0
        assert produce(broker, writer) == 0
        assert last_stable(broker) == 0
        assert end(broker, writer, COMMIT) == 0
        assert state(broker) == "PrepareCommit"
        assert end(broker, writer, COMMIT) == ErrorCode.CONCURRENT_TRANSACTIONS
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "CompleteCommit"
        assert [last_stable(broker, 0), last_stable(broker, 1)] == [2, 1]


@pytest.mark.parametrize("committed", [COMMIT, ABORT])
async def test_a_crash_between_the_decision_and_its_markers(committed: bool) -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer, (0, 1)) == 0
        assert produce(broker, writer) == 0
        assert end(broker, writer, committed) == 0
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == ("CompleteCommit" if committed else "CompleteAbort")
        assert last_stable(broker) == 2
        log = broker.broker.partitions.leader("t", 0).log
        found = log.read(0, 1000)
        assert found is not None
        assert len(log.aborted_transactions(found)) == (0 if committed else 1)


async def test_what_is_open_stays_open_over_a_crash() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        assert produce(broker, writer) == 0
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        assert state(broker) == "COORDINATOR_LOAD_IN_PROGRESS"
        assert listed(broker) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert add(broker, writer) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "Ongoing"
        assert listed(broker) == ["x"]
        assert produce(broker, writer, 1) == 0
        assert last_stable(broker) == 0
        assert end(broker, writer, COMMIT) == 0


async def test_while_the_coordinator_loads_producers_are_told_to_try_again() -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        broker.broker.hold_threads()
        reply = reply_of(broker.begin(produced(writer), 12), 12)
        assert reply.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert reply.error_message is not None
        assert reply.error_message.endswith("COORDINATOR_LOAD_IN_PROGRESS")
        broker.broker.release_threads()
        await trio.testing.wait_all_tasks_blocked()
        assert produce(broker, writer, version=12) == 0


async def test_without_a_coordinator_there_is_none() -> None:
    async with group_broker() as broker:
        broker.broker.create_topic("t")
        broker.broker.make_missing()
        reply = reply_of(broker.begin(produced(Writer(7, 0)), 12), 12)
        assert reply.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert reply.error_message is not None
        assert reply.error_message.endswith("COORDINATOR_NOT_AVAILABLE")
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=TIMEOUT_MS)
        assert broker.ask(request, InitProducerIdResponse, 5).error_code == ErrorCode.NOT_COORDINATOR


async def test_time_runs_out(autojump_clock: trio.testing.MockClock) -> None:
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        assert produce(broker, writer) == 0
        await trio.sleep(TIMEOUT_MS / 1000 - 1)
        assert state(broker) == "Ongoing"
        await trio.sleep(12)
        assert state(broker) == "CompleteAbort"
        assert last_stable(broker) == 2
        assert produce(broker, writer, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert end(broker, writer, COMMIT) == ErrorCode.PRODUCER_FENCED


@pytest.mark.acts("transactional.id.expiration.ms")
async def test_an_id_expires(autojump_clock: trio.testing.MockClock) -> None:
    settings = {"transactional.id.expiration.ms": "3600000"}
    async with group_broker(settings) as broker:
        make_topics(broker)
        initialize(broker)
        await trio.sleep(2 * 3600 + 1)
        assert state(broker) == "TRANSACTIONAL_ID_NOT_FOUND"
        assert listed(broker) == []


async def test_a_disk_that_refuses_a_marker_is_asked_again(autojump_clock: trio.testing.MockClock) -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer, (0, 1)) == 0
        assert produce(broker, writer) == 0
        file_system.refuse("write", errno.EIO, path_suffix="t-0/00000000000000000000.log")
        assert end(broker, writer, COMMIT) == 0
        await trio.sleep(RETRY_SECONDS / 2)
        assert state(broker) == "PrepareCommit"
        assert last_stable(broker) == 0
        await trio.sleep(2)
        assert state(broker) == "CompleteCommit"
        assert [last_stable(broker, 0), last_stable(broker, 1)] == [2, 1], "each has one marker"


async def test_of_a_transaction_that_ends_the_partitions_without_marker_are_described(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An operator sees which one a transaction hangs in."""
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer, (0, 1)) == 0
        assert described_partitions(broker) == [("t", [0, 1])]
        file_system.refuse("write", errno.EIO, path_suffix="t-0/00000000000000000000.log")
        assert end(broker, writer, COMMIT) == 0
        assert described_partitions(broker) == [("t", [0, 1])]
        await trio.sleep(RETRY_SECONDS / 2)
        assert state(broker) == "PrepareCommit"
        assert described_partitions(broker) == [("t", [0])]
        await trio.sleep(2)
        assert state(broker) == "CompleteCommit"
        assert described_partitions(broker) == []


async def test_a_record_of_the_end_that_cannot_be_written_is_tried_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        assert end(broker, writer, COMMIT) == 0
        for partition in range(PARTITION_COUNT):
            path = f"{TRANSACTION_STATE}-{partition}/00000000000000000000.log"
            file_system.refuse("write", errno.EIO, path_suffix=path)
        await trio.sleep(RETRY_SECONDS / 2)
        assert state(broker) == "PrepareCommit"
        assert described_partitions(broker) == []
        await trio.sleep(5)
        assert state(broker) == "CompleteCommit"


async def test_a_transaction_in_many_partitions_lets_others_have_their_turn() -> None:
    partitions = range(5 * MARKERS_BEFORE_YIELD)
    async with group_broker() as broker:
        make_topics(broker, len(partitions))
        leaders = [broker.broker.partitions.leader("t", partition) for partition in partitions]
        writer = initialize(broker)
        assert add(broker, writer, partitions) == 0
        assert end(broker, writer, COMMIT) == 0
        written = [0]
        while state(broker) != "CompleteCommit":
            await trio.lowlevel.checkpoint()
            written.append(sum(leader.log.log_end for leader in leaders))
        steps = [after - before for before, after in pairwise(written)]
        assert sum(steps) == len(partitions)
        assert max(steps) <= 2 * MARKERS_BEFORE_YIELD, "Trio may run both tasks in either order"


async def test_markers_wait_for_logs_that_are_being_made() -> None:
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        broker.broker.hold_threads()
        broker.broker.create_topic("u", 1)
        assert add(broker, writer, topic="u") == 0
        assert end(broker, writer, COMMIT) == 0
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "PrepareCommit"
        broker.broker.release_threads()
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "CompleteCommit"
        assert broker.broker.partitions.leader("u", 0).log.log_end == 1


async def test_a_topic_that_is_deleted_needs_no_marker() -> None:
    async with group_broker() as broker:
        topic_id = make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        assert produce(broker, writer) == 0
        broker.broker.delete_topic(topic_id)
        assert end(broker, writer, COMMIT) == 0
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "CompleteCommit"


async def test_a_later_coordinator_s_partition_is_left_alone() -> None:
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        later = marker(commit=False, producer_id=writer.producer_id, coordinator_epoch=9)
        broker.broker.partitions.leader("t", 0).append_own(later, START_MS)
        assert end(broker, writer, COMMIT) == 0
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "PrepareCommit"
        assert "t-0 refuses its marker with TRANSACTION_COORDINATOR_FENCED" in broker.lines


async def test_a_producer_that_is_quicker_than_the_markers(autojump_clock: trio.testing.MockClock) -> None:
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert produce(broker, writer, version=12) == 0
        assert end(broker, writer, COMMIT, version=5) == 0
        waiting = broker.begin(produced(Writer(writer.producer_id, 1)), 12)
        assert isinstance(waiting, Waiting)
        assert waiting.exclusive, "the batch must stay where it is"
        await trio.sleep(0.1)
        assert reply_of(waiting, 12).error_code == 0
        assert state(broker) == "Ongoing"


async def test_a_producer_is_not_kept_waiting_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert produce(broker, writer, version=12) == 0
        file_system.refuse("write", errno.EIO, path_suffix="t-0/00000000000000000000.log")
        assert end(broker, writer, COMMIT, version=5) == 0
        waiting = broker.begin(produced(Writer(writer.producer_id, 1)), 12)
        await trio.sleep(0.2)
        assert reply_of(waiting, 12).error_code == ErrorCode.CONCURRENT_TRANSACTIONS


async def test_an_answer_that_comes_after_the_end_opens_nothing() -> None:
    """KIP-890: the verification of one transaction is no good for the next."""
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        log = broker.broker.partitions.leader("t", 0).log
        verification = log.producers.begin_verification(*writer, 0, starts_at_zero=False, now_ms=START_MS)
        assert end(broker, writer, ABORT) == 0
        await trio.testing.wait_all_tasks_blocked()
        assert state(broker) == "CompleteAbort"
        late = batch(
            b"late", producer_id=writer.producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        with pytest.raises(UnverifiedTransaction):
            broker.broker.partitions.leader("t", 0).append(late, START_MS, verification)
        assert last_stable(broker) == log.log_end


async def test_a_fenced_producer_is_told_so_by_the_log_whatever_the_coordinator_knows() -> None:
    """Its transactional id may have got another producer id meanwhile, or have expired."""
    async with group_broker() as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert produce(broker, writer, version=12) == 0
        assert commit_offset(broker, writer, version=5) == 0
        assert end(broker, writer, ABORT, version=5) == 0
        await trio.testing.wait_all_tasks_blocked()
        partition = broker.transactions.partition_for("x")
        machine = broker.transactions._shards[partition].machine
        assert machine is not None
        machine.transactions.clear()
        assert produce(broker, writer, 1, version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert commit_offset(broker, writer, version=5) == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.acts("transaction.partition.verification.enable")
async def test_verification_can_be_turned_off() -> None:
    async with group_broker({"transaction.partition.verification.enable": "false"}) as broker:
        make_topics(broker)
        assert produce(broker, Writer(7, 0)) == 0
        assert last_stable(broker) == 0


async def test_without_verification_partitions_are_added_all_the_same() -> None:
    """Nobody else does it for producers of transactions v2, and what is not added gets no marker."""
    async with group_broker({"transaction.partition.verification.enable": "false"}) as broker:
        make_topics(broker)
        writer = initialize(broker)
        assert produce(broker, writer, version=12) == 0
        assert commit_offset(broker, writer, version=5) == 0
        assert end(broker, writer, COMMIT, version=5) == 0
        await trio.testing.wait_all_tasks_blocked()
        assert last_stable(broker) == 2
        offsets = broker.broker.partitions.leader(GROUP_OFFSETS, broker.groups.partition_for("g")).log
        assert offsets.last_stable == offsets.log_end


async def test_offsets_of_a_group_that_is_not_loaded_yet(autojump_clock: trio.testing.MockClock) -> None:
    file_system = disk()
    async with group_broker(file_system=file_system) as broker:
        make_topics(broker)
        writer = initialize(broker)
        announced = AddOffsetsToTxnRequest(
            transactional_id="x",
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            group_id="g",
        )
        assert broker.ask(announced, AddOffsetsToTxnResponse, 4).error_code == 0
        assert commit_offset(broker, writer, version=4) == 0
        assert end(broker, writer, COMMIT) == 0
        image = broker.image
    async with group_broker(file_system=file_system, image=image) as broker:
        await trio.sleep(3)
        assert state(broker) == "CompleteCommit"
        partition = broker.groups.partition_for("g")
        leader = broker.broker.partitions.leader(GROUP_OFFSETS, partition)
        assert leader.log.last_stable == leader.log.log_end
        machine = broker.groups._shards[partition].machine
        assert machine is not None
        committed = machine.offsets.get("g", "t", 0)
        assert committed is not None
        assert committed.offset == 5
        assert not machine.offsets.is_pending("g", "t", 0)


async def test_identities_wait_for_the_next_block_of_ids() -> None:
    async with group_broker() as broker:
        make_topics(broker)
        broker.broker.producer_ids.at_hand = 0
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=TIMEOUT_MS)
        first, second = broker.begin(request, 5), broker.begin(request, 5)
        assert isinstance(first, Waiting)
        ready_first, ready_second = broker.broker.producer_ids.waiting
        broker.broker.producer_ids.at_hand = 1
        ready_first(0)
        given = as_read(first, InitProducerIdResponse, 5)
        assert (given.error_code, given.producer_id, given.producer_epoch) == (0, 0, 0)
        ready_second(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        refused = as_read(second, InitProducerIdResponse, 5)
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_partition_that_moves_away_is_coordinated_elsewhere() -> None:
    async with group_broker() as broker:
        topic_id = broker.broker.create_topic(TRANSACTION_STATE, PARTITION_COUNT)
        broker.make_offsets_topic()
        broker.broker.create_topic("t", 2)
        writer = initialize(broker)
        assert add(broker, writer) == 0
        image: MetadataImage = broker.image
        assert image.topics[TRANSACTION_STATE].id == topic_id
        for partition in range(PARTITION_COUNT):
            broker.broker.change_leader(topic_id, 2, partition)
        assert add(broker, writer) == ErrorCode.NOT_COORDINATOR
        assert end(broker, writer, COMMIT) == ErrorCode.NOT_COORDINATOR
        assert listed(broker) == []
