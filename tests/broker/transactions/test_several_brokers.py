"""Transactions whose coordinator, partitions and groups are on different brokers."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.network.waiting import Waiting
from broker.transactions.markers import MARKERS_BEFORE_YIELD, RETRY_SECONDS
from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from protocol.messages.produce import (
    PartitionProduceData,
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
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.records.builder import build_batch
from tests.broker.coordination.several_brokers import (
    GROUP_OFFSETS,
    TRANSACTION_STATE,
    Cluster,
    several_brokers,
)
from tests.broker.groups.group_broker import START_MS, as_read

COMMIT, ABORT = True, False


class Producer:
    """A transactional producer that knows who leads what."""

    def __init__(self, cluster: Cluster, transactional_id: str = "x") -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[int, int] = {}

    @property
    def coordinator(self) -> int:
        one = self.cluster.brokers[1]
        partition = one.transactions.partition_for(self.transactional_id)
        return self.cluster.image.topics[TRANSACTION_STATE].partitions[partition].leader

    async def ask(self, broker_id: int, request: Any, response: Any, version: int) -> Any:
        answer = self.cluster.brokers[broker_id].begin(request, version)
        if isinstance(answer, Waiting):
            with trio.fail_after(60):
                answer = await answer.wait()
        return as_read(answer, response, version)

    async def initialize(self) -> int:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        given = await self.ask(self.coordinator, request, InitProducerIdResponse, 5)
        self.producer_id, self.epoch = given.producer_id, given.producer_epoch
        self.sequences.clear()
        return int(given.error_code)

    async def add(self, partitions: Sequence[int]) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=list(partitions))],
        )
        answer = await self.ask(self.coordinator, request, AddPartitionsToTxnResponse, 3)
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def produced(self, partition: int) -> ProduceRequest:
        sequence = self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + 1
        records = build_batch(
            [(START_MS, None, b"v", ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="t",
                    topic_id=self.cluster.image.topics["t"].id,
                    partition_data=[PartitionProduceData(index=partition, records=records)],
                )
            ],
        )

    async def produce(self, partition: int, version: int = 13) -> int:
        leader = self.cluster.image.topics["t"].partitions[partition].leader
        answer = await self.ask(leader, self.produced(partition), ProduceResponse, version)
        return int(answer.responses[0].partition_responses[0].error_code)

    async def end(self, committed: bool, version: int = 5) -> int:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        answer = await self.ask(self.coordinator, request, EndTxnResponse, version)
        if version >= 5 and not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    async def state(self) -> str:
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        answer = await self.ask(self.coordinator, request, DescribeTransactionsResponse, 0)
        (described,) = answer.transaction_states
        return str(described.transaction_state or ErrorCode(described.error_code).name)

    async def commit_offset(self, group_id: str, offset: int, version: int = 5) -> int:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        answer = await self.ask(group_coordinator(self.cluster), request, TxnOffsetCommitResponse, version)
        return int(answer.topics[0].partitions[0].error_code)

    async def offset(self, group_id: str) -> tuple[int, int]:
        """Offset and error."""
        asked = OffsetFetchRequestGroup(
            group_id=group_id, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        request = OffsetFetchRequest(groups=[asked], require_stable=True)
        answer = await self.ask(group_coordinator(self.cluster), request, OffsetFetchResponse, 8)
        (partition,) = answer.groups[0].topics[0].partitions
        return partition.committed_offset, partition.error_code


def group_coordinator(cluster: Cluster) -> int:
    return cluster.image.topics[GROUP_OFFSETS].partitions[0].leader


def last_stable(cluster: Cluster, partition: int) -> int:
    leader = cluster.image.topics["t"].partitions[partition].leader
    return cluster.brokers[leader].broker.partitions.leader("t", partition).log.last_stable


def log_end(cluster: Cluster, partition: int) -> int:
    leader = cluster.image.topics["t"].partitions[partition].leader
    return cluster.brokers[leader].broker.partitions.leader("t", partition).log.log_end


def make_topics(cluster: Cluster, leaders: Sequence[int] = (1, 2)) -> None:
    """Broker 1 looks after all transactions, broker 2 after all groups."""
    cluster.create_topic(TRANSACTION_STATE, [1])
    cluster.create_topic(GROUP_OFFSETS, [2])
    cluster.create_topic("t", leaders)


@asynccontextmanager
async def producing(
    count: int = 2, leaders: Sequence[int] = (1, 2)
) -> AsyncGenerator[tuple[Cluster, Producer]]:
    """Brokers 1 to ``count``, with topics, and a producer that has its id."""
    async with several_brokers(count) as cluster:
        make_topics(cluster, leaders)
        producer = Producer(cluster)
        await producer.initialize()
        yield cluster, producer


@pytest.mark.parametrize("committed", [COMMIT, ABORT])
async def test_a_transaction_spans_brokers(committed: bool, autojump_clock: MockClock) -> None:
    async with several_brokers(3) as cluster:
        make_topics(cluster, [1, 2, 3])
        producer = Producer(cluster)
        for transaction in (1, 2):
            if transaction == 1:
                await producer.initialize()
            for partition in range(3):
                assert await producer.produce(partition) == 0, "the coordinator is asked, wherever it is"
                assert last_stable(cluster, partition) == 2 * (transaction - 1)
            assert await producer.end(committed) == 0
            await trio.sleep(1)
            assert await producer.state() == ("CompleteCommit" if committed else "CompleteAbort")
            assert [last_stable(cluster, each) for each in range(3)] == [2 * transaction] * 3
        assert {broker_id for broker_id, _ in cluster.asked_of(WriteTxnMarkersRequest)} == {2, 3}
        assert {broker_id for broker_id, _ in cluster.asked_of(AddPartitionsToTxnRequest)} == {1}


async def test_older_producers_are_verified_by_the_other_broker(autojump_clock: MockClock) -> None:
    async with producing() as (cluster, producer):
        assert await producer.produce(1, version=11) == ErrorCode.TRANSACTION_ABORTABLE
        producer.sequences.clear()
        assert await producer.produce(1, version=9) == ErrorCode.INVALID_TXN_STATE
        producer.sequences.clear()
        assert await producer.add([1]) == 0
        assert await producer.produce(1, version=11) == 0
        assert await producer.produce(1, version=11) == 0
        asked = cluster.asked_of(AddPartitionsToTxnRequest)
        assert len(asked) == 3, "once it is open in the log nobody is asked"
        assert all(each.verify_only for _, request in asked for each in request.transactions)
        assert await producer.end(COMMIT, version=4) == 0
        await trio.sleep(1)
        assert last_stable(cluster, 1) == 3


async def test_a_fenced_producer_is_told_so_by_the_other_broker(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        old, new = Producer(cluster), Producer(cluster)
        await old.initialize()
        await new.initialize()
        assert await old.produce(1) == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_an_unreachable_coordinator_means_try_again(autojump_clock: MockClock) -> None:
    async with producing() as (cluster, producer):
        cluster.unreachable.add(1)
        assert await producer.produce(1) == ErrorCode.NOT_ENOUGH_REPLICAS
        cluster.unreachable.clear()
        producer.sequences.clear()
        assert await producer.produce(1) == 0


async def test_without_a_leader_of_its_partition_there_is_no_coordinator(autojump_clock: MockClock) -> None:
    async with producing() as (cluster, producer):
        cluster.take_away(TRANSACTION_STATE, 0, 2)
        assert await producer.produce(1) == ErrorCode.NOT_ENOUGH_REPLICAS


async def test_questions_that_come_meanwhile_go_together(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        producers = [Producer(cluster, name) for name in ("a", "b", "c", "d")]
        for producer in producers:
            await producer.initialize()
        cluster.held = trio.Event()
        codes: list[int] = []

        async def produce(producer: Producer) -> None:
            codes.append(await producer.produce(1))

        async with trio.open_nursery() as nursery:
            for producer in producers:
                nursery.start_soon(produce, producer)
                await trio.testing.wait_all_tasks_blocked()
            held, cluster.held = cluster.held, None
            held.set()
        assert codes == [0] * 4
        asked = [len(request.transactions) for _, request in cluster.asked_of(AddPartitionsToTxnRequest)]
        assert asked == [1, 3]


async def test_a_marker_may_come_while_the_coordinator_is_asked(autojump_clock: MockClock) -> None:
    """The question about the next transaction is under way when the last one's marker is written."""
    async with producing() as (cluster, producer):
        assert await producer.produce(1) == 0
        cluster.held_kind = WriteTxnMarkersRequest
        cluster.held = trio.Event()
        assert await producer.end(COMMIT) == 0
        markers = cluster.held
        cluster.held_kind = AddPartitionsToTxnRequest
        cluster.held = trio.Event()
        questions = cluster.held
        codes: list[int] = []

        async def produce() -> None:
            codes.append(await producer.produce(1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            await trio.testing.wait_all_tasks_blocked()
            markers.set()
            await trio.testing.wait_all_tasks_blocked()
            assert await producer.state() == "CompleteCommit"
            cluster.held = None
            questions.set()
        assert codes == [0]
        assert await producer.end(COMMIT) == 0
        await trio.sleep(1)
        assert log_end(cluster, 1) == 4


async def test_a_marker_may_come_while_the_coordinator_is_asked_about_offsets(
    autojump_clock: MockClock,
) -> None:
    """The same where the next transaction begins with the offsets of a group."""
    async with producing(2, [1]) as (cluster, producer):
        assert await producer.commit_offset("g", 5) == 0
        cluster.held_kind = WriteTxnMarkersRequest
        cluster.held = trio.Event()
        assert await producer.end(COMMIT) == 0
        markers = cluster.held
        cluster.held_kind = AddPartitionsToTxnRequest
        cluster.held = trio.Event()
        questions = cluster.held
        codes: list[int] = []

        async def commit_offset() -> None:
            codes.append(await producer.commit_offset("g", 6))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit_offset)
            await trio.testing.wait_all_tasks_blocked()
            markers.set()
            await trio.testing.wait_all_tasks_blocked()
            assert await producer.state() == "CompleteCommit"
            cluster.held = None
            questions.set()
        assert codes == [0]
        assert await producer.end(COMMIT) == 0
        await trio.sleep(1)
        assert await producer.offset("g") == (6, 0)


async def test_markers_wait_for_a_broker_that_cannot_be_reached(autojump_clock: MockClock) -> None:
    async with producing(3, [1, 2, 3]) as (cluster, producer):
        for partition in range(3):
            assert await producer.produce(partition) == 0
        cluster.unreachable.add(3)
        assert await producer.end(COMMIT) == 0, "it is decided, whoever can be reached"
        await trio.sleep(5)
        assert await producer.state() == "PrepareCommit"
        assert [last_stable(cluster, each) for each in range(3)] == [2, 2, 0]
        cluster.unreachable.clear()
        await trio.sleep(2 * RETRY_SECONDS)
        assert await producer.state() == "CompleteCommit"
        assert [log_end(cluster, each) for each in range(3)] == [2, 2, 2], "each has one marker"


async def test_markers_follow_a_partition_to_its_new_leader(autojump_clock: MockClock) -> None:
    async with producing(3, [2]) as (cluster, producer):
        assert await producer.produce(0) == 0
        content = cluster.take_away("t", 0, 3)
        assert await producer.end(COMMIT) == 0
        await trio.sleep(1)
        assert await producer.state() == "PrepareCommit", "nobody leads the partition"
        log = cluster.brokers[3].broker.partitions.local_log("t", 0)
        log.append_as_follower(content, now_ms=START_MS)
        cluster.give_leadership("t", 0, 3)
        await trio.sleep(2 * RETRY_SECONDS)
        assert await producer.state() == "CompleteCommit"
        assert last_stable(cluster, 0) == 2


async def test_a_new_coordinator_goes_on_with_what_was_decided(autojump_clock: MockClock) -> None:
    async with producing(3, [2, 3]) as (cluster, producer):
        assert [await producer.produce(0), await producer.produce(1)] == [0, 0]
        cluster.unreachable.update((2, 3))
        assert await producer.end(COMMIT) == 0
        await trio.sleep(1)
        cluster.unreachable.clear()
        cluster.move(TRANSACTION_STATE, 0, 3)
        await trio.sleep(1)
        assert producer.coordinator == 3
        assert await producer.state() == "CompleteCommit"
        assert [last_stable(cluster, 0), last_stable(cluster, 1)] == [2, 2]
        assert await producer.produce(0) == 0, "the next transaction"
        old = (
            cluster.brokers[1]
            .begin(DescribeTransactionsRequest(transactional_ids=["x"]), 0)
            .transaction_states
        )
        assert old[0].error_code == ErrorCode.NOT_COORDINATOR


async def test_the_coordinator_before_cannot_end_what_its_successor_knows(autojump_clock: MockClock) -> None:
    async with producing(3, [2]) as (cluster, producer):
        assert await producer.produce(0) == 0
        cluster.move(TRANSACTION_STATE, 0, 3)
        assert await producer.end(ABORT) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await trio.sleep(1)
        assert await producer.end(ABORT) == 0
        await trio.sleep(1)
        (writing,) = [request for _, request in cluster.asked_of(WriteTxnMarkersRequest)]
        late = writing.markers[0]
        late.coordinator_epoch -= 1
        answer = await producer.ask(2, writing, WriteTxnMarkersResponse, 2)
        assert (
            answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
        )


async def test_a_transaction_is_timed_out_by_the_new_coordinator(autojump_clock: MockClock) -> None:
    async with producing(3, [2]) as (cluster, producer):
        assert await producer.produce(0) == 0
        cluster.move(TRANSACTION_STATE, 0, 3)
        await trio.sleep(80)
        assert await producer.state() == "CompleteAbort"
        assert last_stable(cluster, 0) == 2


async def test_offsets_are_committed_with_a_marker_from_another_broker(autojump_clock: MockClock) -> None:
    async with producing(2, [1]) as (cluster, producer):
        assert await producer.produce(0) == 0
        assert await producer.commit_offset("g", 5) == 0
        assert await producer.offset("g") == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await producer.end(COMMIT) == 0
        await trio.sleep(1)
        assert await producer.offset("g") == (5, 0)
        assert await producer.commit_offset("g", 6) == 0
        cluster.move(GROUP_OFFSETS, 0, 1)
        await trio.sleep(1)
        assert await producer.offset("g") == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await producer.end(ABORT) == 0
        await trio.sleep(1)
        assert await producer.offset("g") == (5, 0)


async def test_an_unreachable_transaction_coordinator_is_loading_for_offsets(
    autojump_clock: MockClock,
) -> None:
    async with producing(2, [1]) as (cluster, producer):
        cluster.unreachable.add(1)
        assert await producer.commit_offset("g", 5) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_transactions_are_listed_by_who_looks_after_them(autojump_clock: MockClock) -> None:
    async with several_brokers(2) as cluster:
        cluster.create_topic(TRANSACTION_STATE, [1, 2])
        producers = [Producer(cluster, name) for name in "abcdef"]
        for producer in producers:
            assert await producer.initialize() == 0

        async def listed(broker_id: int) -> set[str]:
            answer = await producers[0].ask(broker_id, ListTransactionsRequest(), ListTransactionsResponse, 1)
            return {each.transactional_id for each in answer.transaction_states}

        found = [await listed(1), await listed(2)]
        assert all(found)
        assert not found[0] & found[1]
        assert found[0] | found[1] == set("abcdef")
        cluster.move(TRANSACTION_STATE, 1, 1)
        await trio.sleep(1)
        assert [await listed(1), await listed(2)] == [set("abcdef"), set()]


async def test_many_markers_of_one_request_are_written_in_turns(autojump_clock: MockClock) -> None:
    count = 3 * MARKERS_BEFORE_YIELD
    async with several_brokers(2) as cluster:
        cluster.create_topic("t", [1] * count + [2])
        topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(range(count + 2)))
        marker = WritableTxnMarker(producer_id=7, producer_epoch=0, topics=[topic])
        request = WriteTxnMarkersRequest(markers=[marker])
        answer = cluster.brokers[1].begin(request, 2)
        assert isinstance(answer, Waiting)
        assert log_end(cluster, count - 1) == 0
        written = await answer.wait()
        codes = [each.error_code for each in written.markers[0].topics[0].partitions]
        assert codes == [0] * count + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
        assert log_end(cluster, count - 1) == 1
