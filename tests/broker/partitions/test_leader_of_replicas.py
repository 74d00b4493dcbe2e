"""A leader that is not alone: what is acknowledged, who may fetch, and what the controller is asked."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.metadata.image import LeaderRecoveryState
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.produce import PartitionProduceResponse
from protocol.stored.metadata_records import PartitionChangeRecord
from tests.broker.partitions.one_broker import (
    answer_of,
    one_broker,
    produce_request,
    settle,
    some_batch,
)
from tests.broker.partitions.replicated import Replicated, replicated

SMALL = {"min.insync.replicas": "2"}


def reply_in(answer: Any) -> PartitionProduceResponse:
    reply = answer.responses[0].partition_responses[0]
    assert isinstance(reply, PartitionProduceResponse)
    return reply


# Acknowledgements


async def test_acks_all_waits_for_the_whole_in_sync_set() -> None:
    async with replicated() as cluster:
        waiting = cluster.produce()
        assert isinstance(waiting, Waiting)
        cluster.fetched(2, 1)
        assert not waiting.is_answered
        cluster.fetched(3, 1)
        assert reply_in(waiting.result()).base_offset == 0
        assert cluster.high_watermark == 1


@pytest.mark.parametrize("acks", [0, 1])
async def test_others_wait_for_nobody(acks: int) -> None:
    async with replicated() as cluster:
        answer = cluster.produce(acks=acks)
        if acks:
            assert reply_in(answer).error_code == 0
        else:
            assert answer is None
        assert (cluster.leader.log.log_end, cluster.high_watermark) == (1, 0)


async def test_acks_one_waits_for_this_brokers_own_disk() -> None:
    async with replicated(settings={"flush.messages": "1"}) as cluster:
        await settle()
        cluster.broker.hold_threads()
        waiting = cluster.produce(acks=1)
        await settle()
        assert isinstance(waiting, Waiting)
        assert not waiting.is_answered
        cluster.broker.release_threads()
        await settle()
        assert reply_in(waiting.result()).error_code == 0
        assert cluster.high_watermark == 0


async def test_acks_one_is_answered_though_the_other_replicas_go_before_the_flush_is_over() -> None:
    async with replicated(settings={"flush.messages": "1"}) as cluster:
        await settle()
        cluster.broker.hold_threads()
        waiting = cluster.produce(acks=1)
        await settle()
        assert isinstance(waiting, Waiting)
        cluster.change(replicas=[1], isr=[1])
        cluster.broker.release_threads()
        await settle()
        assert reply_in(waiting.result()).error_code == 0
        assert cluster.high_watermark == 1


async def test_what_this_broker_has_not_flushed_is_not_committed() -> None:
    async with replicated(settings={"flush.messages": "1"}) as cluster:
        await settle()
        cluster.broker.hold_threads()
        waiting = cluster.produce()
        await settle()
        cluster.fetched(2, 1)
        cluster.fetched(3, 1)
        assert cluster.high_watermark == 0
        cluster.broker.release_threads()
        await settle()
        assert reply_in(waiting.result()).error_code == 0


async def test_too_few_in_sync_refuse_acks_all_and_write_nothing() -> None:
    async with replicated(isr=(1,), settings=SMALL) as cluster:
        reply = reply_in(cluster.produce())
        assert (reply.error_code, reply.base_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert (reply.log_start_offset, reply.error_message) == (0, None)
        assert cluster.leader.log.log_end == 0
        assert reply_in(cluster.produce(acks=1)).error_code == 0
        assert (cluster.leader.log.log_end, cluster.high_watermark) == (1, 0)


async def test_with_fewer_required_the_high_watermark_moves() -> None:
    async with replicated(isr=(1,), settings=SMALL) as cluster:
        cluster.produce(acks=1)
        cluster.broker.change_settings("t", {"min.insync.replicas": "1"})
        assert cluster.high_watermark == 1


async def test_when_time_is_over_the_records_stay() -> None:
    async with replicated() as cluster:
        waiting = cluster.produce(timeout_ms=1000)
        assert waiting.deadline == pytest.approx(trio.current_time() + 1, abs=0.5)
        waiting.expire()
        reply = reply_in(waiting.result())
        assert (reply.error_code, reply.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        cluster.fetched(2, 1)
        cluster.fetched(3, 1)
        assert cluster.high_watermark == 1


async def test_one_partition_in_time_and_one_not() -> None:
    async with replicated() as cluster:
        cluster.broker.create_topic("alone")
        request = produce_request("t")
        request.topic_data += produce_request("alone").topic_data
        waiting = cluster.broker.ask(request, 9)
        waiting.expire()
        codes = [topic.partition_responses[0].error_code for topic in waiting.result().responses]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT, 0]


async def test_whoever_waits_hears_that_another_leads_now() -> None:
    async with replicated() as cluster:
        waiting = cluster.produce()
        cluster.change(leader=2)
        reply = reply_in(waiting.result())
        assert (reply.error_code, reply.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


async def test_a_repeated_batch_waits_like_the_first_one() -> None:
    async with replicated() as cluster:
        producer = {"producer_id": 7, "producer_epoch": 0}
        first, second, again = (
            cluster.broker.ask(produce_request("t", some_batch(base_sequence=number, **producer)), 9)
            for number in (0, 1, 0)
        )
        cluster.fetched(2, 1)
        cluster.fetched(3, 1)
        assert [each.is_answered for each in (first, second, again)] == [True, False, True]
        assert reply_in(again.result()).base_offset == 0


async def test_what_this_broker_writes_itself_is_refused_alike() -> None:
    from protocol.errors import KafkaError
    from protocol.records.batch import RecordBatch

    async with replicated(isr=(1,), settings=SMALL) as cluster:
        with pytest.raises(KafkaError) as refusal:
            cluster.leader.append_own(RecordBatch(some_batch()), cluster.broker.clock.now_ms())
        assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


# Leading


async def test_a_new_leader_begins_with_what_it_knew_as_a_follower() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        cluster.fetched(2, 1)
        cluster.fetched(3, 1)
        cluster.produce(acks=1)
        cluster.change(leader=2)
        cluster.change(leader=1)
        leader = cluster.broker.partitions.leader("t", 0)
        assert leader is not cluster.leader
        assert (leader.log.high_watermark, leader.log.log_end, leader.epoch_start) == (1, 2, 2)
        assert leader.log.leader_epochs.latest == 7
        assert leader.log.end_offset_for_epoch(5) == (5, 2)
        cluster.fetched(2, 2, epoch=7)
        cluster.fetched(3, 2, epoch=7)
        assert leader.log.high_watermark == 2


async def test_the_last_other_replica_goes() -> None:
    async with replicated() as cluster:
        waiting = cluster.produce()
        cluster.change(replicas=[1], isr=[1])
        assert cluster.leader.replication is None
        assert reply_in(waiting.result()).error_code == 0


async def test_a_replica_comes_to_one_that_was_alone() -> None:
    async with one_broker() as broker:
        broker.register(2)
        topic_id = broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        broker.produce("t")
        broker.apply(
            PartitionChangeRecord(partition_id=0, topic_id=topic_id, replicas=[1, 2], adding_replicas=[2])
        )
        assert leader.replication is not None
        assert leader.log.high_watermark == 1
        assert broker.produce("t").base_offset == 1
        assert leader.log.high_watermark == 2


# Fetches


async def test_followers_read_to_the_end_of_the_log() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        data = cluster.fetched(2, 0)
        assert (data.error_code, data.high_watermark, data.log_start_offset) == (0, 0, 0)
        assert len(data.records.read()) > 0
        assert data.aborted_transactions is None
        assert cluster.broker.fetch("t", 0).records == b""  # a consumer


async def test_a_waiting_follower_gets_what_is_appended() -> None:
    async with replicated() as cluster:
        waiting = cluster.fetch(2, 0, max_wait_ms=500)
        assert isinstance(waiting, Waiting)
        cluster.produce(acks=1)
        (topic,) = (await answer_of(waiting)).responses
        assert topic.partitions[0].records.size_bytes > 0


async def test_a_waiting_consumer_gets_what_is_committed() -> None:
    async with replicated() as cluster:
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=[
                FetchTopic(
                    topic="t",
                    partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
                )
            ],
        )
        waiting = cluster.broker.ask(request, 12)
        cluster.produce(acks=1)
        assert not waiting.is_answered
        cluster.fetched(2, 1)
        cluster.fetched(3, 1)
        assert (await answer_of(waiting)).responses[0].partitions[0].high_watermark == 1


@pytest.mark.parametrize(
    ("replica_id", "epoch", "code"),
    [
        (2, 5, ErrorCode.NONE),
        (2, -1, ErrorCode.NONE),
        (2, 4, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, 4, ErrorCode.FENCED_LEADER_EPOCH),
        (1, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_which_followers_may_fetch(replica_id: int, epoch: int, code: ErrorCode) -> None:
    async with replicated() as cluster:
        data = cluster.fetched(replica_id, 0, epoch=epoch)
        assert data.error_code == code
        assert data.high_watermark == (-1 if code else 0)


async def test_a_fetch_of_an_earlier_registration_is_refused() -> None:
    async with replicated() as cluster:
        epoch = cluster.broker.image.brokers[2].epoch
        assert cluster.fetched(2, 0, broker_epoch=epoch).error_code == 0
        cluster.broker.register(2)
        data = cluster.fetched(2, 0, broker_epoch=epoch)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("leads", "epoch", "code"),
    [
        (False, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (False, 6, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (False, 5, ErrorCode.FENCED_LEADER_EPOCH),
        (False, 7, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_who_does_not_lead_says_first_whose_epoch_is_wrong(
    leads: bool, epoch: int, code: ErrorCode
) -> None:
    async with replicated() as cluster:
        cluster.change(leader=2)
        assert cluster.fetched(3, 0, epoch=epoch).error_code == code


async def test_divergence_moves_nothing() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        assert cluster.fetched(2, 1, last_epoch=6).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        for offset, last_epoch, end_offset in ((1, 4, 0), (5, 5, 1)):
            data = cluster.fetched(2, offset, last_epoch=last_epoch)
            assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (last_epoch, end_offset)
        assert cluster.leader.replication is not None
        assert cluster.leader.replication.followers[2].log_end == -1


async def test_an_offset_out_of_range_moves_nothing() -> None:
    async with replicated() as cluster:
        assert cluster.fetched(2, 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert cluster.leader.replication is not None
        assert cluster.leader.replication.followers[2].log_end == -1


def session_request(cluster: Replicated, session_id: int, number: int, offset: int | None = None) -> Any:
    """A request of broker 2 that goes on with a session; it names the partition if it has got further."""
    wanted = FetchPartition(partition=0, fetch_offset=offset or 0, current_leader_epoch=5, log_start_offset=0)
    wanted.partition_max_bytes = 1 << 20
    topics = [FetchTopic(topic_id=cluster.topic_id, partitions=[wanted])]
    return FetchRequest(
        replica_state=ReplicaState(replica_id=2),
        min_bytes=1,
        session_id=session_id,
        session_epoch=number,
        topics=[] if offset is None else topics,
    )


async def test_a_follower_that_has_everything_stays_in_sync_without_saying_so_again(
    autojump_clock: MockClock,
) -> None:
    async with replicated(isr=(1, 2)) as cluster:
        session_id = cluster.broker.ask(session_request(cluster, 0, 0, 0), 17).session_id
        replication = cluster.leader.replication
        assert replication is not None
        for number in range(1, 8):
            cluster.broker.clock.wall_ms += 10_000
            answer = cluster.broker.ask(session_request(cluster, session_id, number), 17)
            assert (answer.error_code, answer.responses) == (0, [])
            assert replication.followers[2].last_caught_up_ms == cluster.broker.clock.wall_ms
        cluster.produce(acks=1)
        assert replication.propose_shrinking(1, cluster.broker.clock.wall_ms) is None
        (topic,) = cluster.broker.ask(session_request(cluster, session_id, 8), 17).responses
        assert topic.partitions[0].records != b""
        assert cluster.broker.ask(session_request(cluster, session_id, 9, 1), 17).responses == []
        (topic,) = cluster.broker.ask(session_request(cluster, session_id, 10), 17).responses
        assert (cluster.high_watermark, topic.partitions[0].high_watermark) == (1, 1)


async def test_a_session_without_news_hears_of_what_happens_to_its_partition() -> None:
    async with replicated(isr=(1, 2)) as cluster:
        session_id = cluster.broker.ask(session_request(cluster, 0, 0, 0), 17).session_id
        assert cluster.broker.ask(session_request(cluster, session_id, 1), 17).responses == []
        cluster.change(leader=1)  # in another epoch
        (topic,) = cluster.broker.ask(session_request(cluster, session_id, 2), 17).responses
        assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
        cluster.change(leader=2)
        (topic,) = cluster.broker.ask(session_request(cluster, session_id, 3), 17).responses
        assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
        cluster.broker.delete_topic(cluster.topic_id)
        (topic,) = cluster.broker.ask(session_request(cluster, session_id, 4), 17).responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_session_without_news_is_of_one_registration() -> None:
    async with replicated(isr=(1, 2)) as cluster:
        request = session_request(cluster, 0, 0, 0)
        request.replica_state.replica_epoch = cluster.broker.image.brokers[2].epoch
        session_id = cluster.broker.ask(request, 17).session_id
        assert cluster.leader.replication is not None
        cluster.change(isr=[1])
        cluster.broker.register(2)
        later = session_request(cluster, session_id, 1)
        later.replica_state.replica_epoch = request.replica_state.replica_epoch
        (topic,) = cluster.broker.ask(later, 17).responses
        assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# The in-sync set


async def test_who_has_caught_up_joins() -> None:
    async with replicated(isr=(1,)) as cluster:
        cluster.produce()
        epochs = {each: cluster.broker.image.brokers[each].epoch for each in (1, 2)}
        cluster.fetched(2, 1, broker_epoch=epochs[2])
        await settle()
        (request,) = cluster.controller.requests
        assert (request.broker_id, request.broker_epoch) == (1, epochs[1])
        (asked,) = request.topics[0].partitions
        assert {each.broker_id: each.broker_epoch for each in asked.new_isr_with_epochs} == epochs
        assert (asked.leader_epoch, asked.partition_epoch) == (5, 0)
        assert asked.leader_recovery_state == LeaderRecoveryState.RECOVERED
        assert cluster.leader.replication is not None
        assert cluster.leader.replication.isr == {1}
        cluster.controller.accept()
        await settle()
        assert cluster.leader.replication.isr == {1, 2}
        assert cluster.leader.replication.partition_epoch == 1
        waiting = cluster.produce()
        assert not waiting.is_answered


async def test_proposals_that_come_meanwhile_go_together() -> None:
    async with replicated(isr=(1,)) as cluster:
        others = [cluster.broker.create_topic(f"t{number}", replicas=(1, 2), isr=(1,)) for number in (1, 2)]
        cluster.fetched(2, 0)
        await settle()
        for name in ("t1", "t2"):
            leader = cluster.broker.partitions.leader(name, 0)
            leader.follower_fetched(2, 0, log_start=0, leader_end=0, broker_epoch=-1)
        await settle()
        assert len(cluster.controller.requests) == 1
        cluster.controller.accept()
        await settle()
        assert [topic.topic_id for topic in cluster.controller.requests[1].topics] == others


async def test_a_request_that_is_refused_as_a_whole_is_made_again(autojump_clock: MockClock) -> None:
    async with replicated(isr=(1,)) as cluster:
        cluster.fetched(2, 0)
        await settle()
        cluster.controller.refuse_all(ErrorCode.STALE_BROKER_EPOCH)
        await trio.sleep(0.1)
        assert len(cluster.controller.requests) == 2


@pytest.mark.parametrize(
    ("code", "requests", "pending"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, 1, False),
        (ErrorCode.INVALID_UPDATE_VERSION, 1, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, 2, True),
    ],
)
async def test_refused_proposals(
    autojump_clock: MockClock, code: ErrorCode, requests: int, pending: bool
) -> None:
    async with replicated(isr=(1,)) as cluster:
        cluster.fetched(2, 0)
        await settle()
        cluster.controller.refuse(code)
        await trio.sleep(0.1)
        assert len(cluster.controller.requests) == requests
        assert cluster.leader.replication is not None
        assert (cluster.leader.replication.pending is not None) is pending


@pytest.mark.acts("replica.lag.time.max.ms")
async def test_late_followers_are_let_go(autojump_clock: MockClock) -> None:
    async with replicated(of_broker={"replica.lag.time.max.ms": "10000"}) as cluster:
        waiting = cluster.produce()
        cluster.fetched(2, 1)
        await trio.sleep(5)
        assert cluster.controller.requests == []
        cluster.broker.clock.wall_ms += 10_001
        await trio.sleep(5)
        await settle()
        (asked,) = cluster.controller.requests[0].topics[0].partitions
        assert [each.broker_id for each in asked.new_isr_with_epochs] == [1, 2]
        assert not waiting.is_answered
        cluster.controller.accept()
        await settle()
        assert reply_in(waiting.result()).error_code == 0


async def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    async with replicated(isr=(1, 2)) as cluster:
        cluster.fetched(3, 0)
        await settle()
        cluster.change(isr=[1])
        cluster.controller.accept()
        await settle()
        assert cluster.leader.replication is not None
        assert cluster.leader.replication.isr == {1}


async def test_one_that_leads_no_longer_is_not_told() -> None:
    async with replicated(isr=(1, 2)) as cluster:
        cluster.fetched(3, 0)
        await settle()
        cluster.change(leader=2)
        cluster.controller.accept()
        await settle()
        assert cluster.leader.replication is not None
        assert cluster.leader.replication.isr == {1, 2}


# Offsets and deletion


def list_offsets(
    cluster: Replicated, timestamp: int, *, version: int = 7, replica_id: int = -1
) -> tuple[int, int]:
    """Error code and offset."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name="t", partitions=[wanted])], replica_id=replica_id
    )
    found = cluster.broker.ask(request, version).topics[0].partitions[0]
    return found.error_code, found.offset


async def test_until_a_new_leader_knows_what_is_committed_it_does_not_say_where_that_ends() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        cluster.change(leader=2)
        cluster.change(leader=1)
        for timestamp in (-1, 0, -3):
            assert list_offsets(cluster, timestamp) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert list_offsets(cluster, -1, version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert list_offsets(cluster, -2) == (0, 0)
        assert list_offsets(cluster, -1, replica_id=2) == (0, 1)
        for follower in (2, 3):
            cluster.fetched(follower, 1, epoch=7)
        for timestamp, offset in ((-1, 1), (0, 0), (-3, 0)):
            assert list_offsets(cluster, timestamp) == (0, offset)


async def test_a_follower_answers_debuggers_only() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        cluster.change(leader=2)
        assert list_offsets(cluster, -1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert list_offsets(cluster, -1, replica_id=-2) == (0, 1)


def delete_records(cluster: Replicated, offset: int) -> Any:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=[partition])
    return cluster.broker.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)


async def test_records_are_deleted_when_all_live_replicas_have_let_go_of_them() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        for follower in (2, 3):
            cluster.fetched(follower, 1)
        waiting = delete_records(cluster, 1)
        assert cluster.leader.log.log_start == 1
        cluster.fetched(2, 1, log_start=1)
        assert not waiting.is_answered
        cluster.fetched(3, 1, log_start=1)
        result = waiting.result().topics[0].partitions[0]
        assert (result.error_code, result.low_watermark) == (0, 1)


async def test_when_they_do_not_in_time_the_answer_says_how_far_they_are() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        for follower in (2, 3):
            cluster.fetched(follower, 1)
        waiting = delete_records(cluster, 1)
        waiting.expire()
        result = waiting.result().topics[0].partitions[0]
        assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        cluster.fetched(2, 1, log_start=1)
        cluster.fetched(3, 1, log_start=1)


async def test_a_leadership_that_ends_ends_the_wait_for_deletion() -> None:
    async with replicated() as cluster:
        cluster.produce(acks=1)
        for follower in (2, 3):
            cluster.fetched(follower, 1)
        waiting = delete_records(cluster, 1)
        cluster.change(leader=2)
        result = waiting.result().topics[0].partitions[0]
        assert (result.error_code, result.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


# Throttled followers

THROTTLED = {"leader.replication.throttled.replicas": "0:1"}


@pytest.mark.acts(
    "leader.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "replication.quota.window.num",
    "replication.quota.window.size.seconds",
)
async def test_a_throttled_follower_that_is_out_of_sync_gets_no_more_than_its_rate() -> None:
    windows = {"replication.quota.window.num": "2", "replication.quota.window.size.seconds": "10"}
    async with replicated(isr=(1, 3), settings=THROTTLED, of_broker=windows) as cluster:
        cluster.broker.config.apply_dynamic({"leader.replication.throttled.rate": "1"}, {})
        cluster.produce(acks=1)
        assert cluster.fetched(2, 0).records != b""  # nothing has been copied yet
        assert cluster.fetched(2, 0).records == b""
        assert cluster.fetched(3, 0).records != b""  # it is in sync
        waiting = cluster.fetch(2, 0, max_wait_ms=500)
        cluster.produce(acks=1)
        assert not waiting.is_answered
        cluster.broker.clock.wall_ms += 20_001
        waiting.expire()
        assert (await answer_of(waiting)).responses[0].partitions[0].records != b""
