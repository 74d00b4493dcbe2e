"""Settings of share groups, their records and their state."""

import pytest
import trio
from trio.testing import MockClock

from broker.clock import BrokerClock
from broker.metadata.topic_names import GROUP_OFFSETS, SHARE_GROUP_STATE
from broker.share.partition import Acknowledgement
from broker.share.sessions import SessionKey, TopicPartition
from protocol.error_codes import ErrorCode
from protocol.messages.offset_commit import OffsetCommitResponse
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from protocol.records.batch import RecordBatch
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.stored.metadata_records import ConfigRecord
from tests.broker.config.acting.members import GROUPS, beat, coordinate
from tests.broker.config.acting.test_groups import commit, watched
from tests.broker.config.acting.whole_broker import whole_broker
from tests.broker.partitions.one_broker import START_MS, some_batch
from tests.broker.share.desk import ACCEPT, GROUP, Desk, desk
from tests.broker.share.test_dead_letters import make_queue, reject, set_up
from tests.broker.transactions.test_service import Writer, produce

RENEW = 4


def configure(it: Desk, **settings: str) -> None:
    """Settings of the group, written as ``share_isolation_level``."""
    it.broker.broker.apply(
        *[
            ConfigRecord(resource_type=GROUP, resource_name="g", name=name.replace("_", "."), value=value)
            for name, value in settings.items()
        ]
    )


@pytest.mark.acts("share.auto.offset.reset")
@pytest.mark.parametrize(("reset", "got"), [("earliest", 0), ("latest", 11), ("by_duration:PT1H", 10)])
async def test_where_a_group_begins(autojump_clock: MockClock, reset: str, got: int) -> None:
    async with desk() as it:
        configure(it, share_auto_offset_reset=reset)
        await trio.sleep(2 * 3600)
        now_ms = START_MS + 2 * 3_600_000
        one = it.broker.broker
        one.produce("t", build_batch([(now_ms, None, b"v", ())]))
        await it.enter("a")
        acquired = await it.fetch("a", 0)
        one.produce("t", build_batch([(now_ms, None, b"v", ())]))
        acquired += await it.fetch("a", 1)
        assert acquired[0][0] == got


@pytest.mark.acts("share.record.lock.duration.ms")
async def test_how_long_a_member_may_keep_a_record(autojump_clock: MockClock) -> None:
    async with desk() as it:
        configure(it, share_record_lock_duration_ms="20000")
        await it.enter("a")
        assert await it.fetch("a", 0) == [(0, 9, 1)]
        await trio.sleep(19)
        assert await it.fetch("b", 0) == []
        await trio.sleep(2)
        assert await it.fetch("b", 1) == [(0, 9, 2)]


@pytest.mark.acts("share.partition.max.record.locks")
@pytest.mark.parametrize(("locks", "held"), [("100", 110), ("2000", 310)])
async def test_how_many_records_may_be_out_at_once(autojump_clock: MockClock, locks: str, held: int) -> None:
    """But for whole batches."""
    async with desk() as it:
        configure(it, share_partition_max_record_locks=locks)
        for _ in range(3):
            it.broker.broker.produce("t", some_batch(100))
        await it.enter("a")
        acquired = [each for epoch in range(5) for each in await it.fetch("a", epoch)]
        assert sum(last + 1 - first for first, last, _ in acquired) == held


@pytest.mark.acts("share.isolation.level")
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
async def test_records_of_open_transactions(autojump_clock: MockClock, level: str) -> None:
    async with desk(transaction_partition_verification_enable="false") as it:
        configure(it, share_isolation_level=level)
        assert produce(it.broker, Writer(7, 0)) == 0
        await it.enter("a")
        got = await it.fetch("a", 0) + await it.fetch("a", 1)
        assert got[-1][1] == (10 if level == "read_uncommitted" else 9)


@pytest.mark.acts("share.renew.acknowledge.enable")
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_a_member_may_ask_to_keep_a_record(autojump_clock: MockClock, enabled: str) -> None:
    async with desk() as it:
        configure(it, share_renew_acknowledge_enable=enabled)
        await it.enter("a")
        await it.fetch("a", 0)
        batch = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[RENEW])
        partition = AcknowledgePartition(acknowledgement_batches=[batch])
        topic = AcknowledgeTopic(topic_id=it.topic_id, partitions=[partition])
        request = ShareAcknowledgeRequest(
            group_id="g", member_id="a", share_session_epoch=1, is_renew_ack=True, topics=[topic]
        )
        answer = await it.ask(request, 2)
        code = answer.responses[0].partitions[0].error_code
        assert code == (0 if enabled == "true" else ErrorCode.INVALID_RECORD_STATE)


@pytest.mark.acts("share.assignment.interval.ms")
async def test_how_soon_a_new_assignment_is_made(autojump_clock: MockClock) -> None:
    async with desk() as it:
        configure(it, share_assignment_interval_ms="9000")
        await it.enter("a")
        joined = await it.beat("b", 0)
        await trio.sleep(5)
        assert (await it.beat("b", joined.member_epoch)).member_epoch == joined.member_epoch
        await trio.sleep(5)
        assert (await it.beat("b", joined.member_epoch)).member_epoch > joined.member_epoch


@pytest.mark.acts("errors.deadletterqueue.topic.name.prefix")
async def test_a_queue_must_be_named_as_it_is_wanted(autojump_clock: MockClock) -> None:
    async with desk(errors_deadletterqueue_topic_name_prefix="dead.") as it:
        set_up(it)
        make_queue(it)
        await it.enter("a")
        await it.fetch("a", 0)
        await reject(it, (0, 0))
        await trio.sleep(1)
        assert "does not begin with errors.deadletterqueue.topic.name.prefix=dead." in it.broker.lines


# What is kept of it.


@pytest.mark.acts("share.coordinator.write.timeout.ms")
async def test_how_long_a_write_of_state_may_take(autojump_clock: MockClock) -> None:
    """Until it is given up, which it is after some tries."""
    given_up_after = []
    for timeout_ms in (3000, 7000):
        async with desk(share_coordinator_write_timeout_ms=str(timeout_ms)) as it:
            await it.enter("a")
            await it.fetch("a", 0)
            await trio.sleep(1)
            one = it.broker.broker
            one.change_settings(SHARE_GROUP_STATE, {"flush.messages": "1"})
            one.hold_threads()
            told = one.services.share.service.acknowledge(
                SessionKey("g", "a"), TopicPartition(it.topic_id, 0), [Acknowledgement(0, 3, [ACCEPT])]
            )
            began = trio.current_time()
            settled = trio.Event()
            told.then(settled.set)
            await settled.wait()
            assert told.outcome.error is not ErrorCode.NONE
            given_up_after.append(trio.current_time() - began)
            one.release_threads()
    assert given_up_after[1] - given_up_after[0] >= 4


@pytest.mark.acts("offsets.commit.timeout.ms")
async def test_how_long_a_commit_may_take(autojump_clock: MockClock) -> None:
    async with desk(offsets_commit_timeout_ms="7000") as it:
        one = it.broker.broker
        it.broker.begin(commit(), 9)
        await trio.sleep(1)
        one.change_settings(GROUP_OFFSETS, {"flush.messages": "1"})
        one.hold_threads()
        waiting = it.broker.begin(commit(), 9)
        await trio.sleep(6)
        assert not waiting.is_answered
        await trio.sleep(2)
        answer: OffsetCommitResponse = waiting.result()
        assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        one.release_threads()


# Of a whole broker.


@pytest.mark.acts("group.share.max.share.sessions")
async def test_there_are_so_many_share_sessions(clock: BrokerClock) -> None:
    settings = {**GROUPS, "group.share.max.size": "1", "group.share.max.share.sessions": "1"}
    async with whole_broker(clock, settings) as broker:
        codes = []
        for group in ("g", "h"):
            request = ShareFetchRequest(group_id=group, member_id="m", max_wait_ms=0, max_records=1)
            client = await broker.connect()
            codes.append((await client.ask(request, ShareFetchResponse, 1)).error_code)
        assert codes == [0, ErrorCode.SHARE_SESSION_LIMIT_REACHED]


SMALL = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.segment.bytes": "2000000",
    "share.coordinator.state.topic.compression.codec": "4",
}


@pytest.mark.acts(
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.segment.bytes",
    "share.coordinator.state.topic.compression.codec",
    "share.coordinator.load.buffer.size",
    "share.coordinator.state.topic.prune.interval.ms",
    "share.coordinator.snapshot.update.records.per.snapshot",
    "share.coordinator.cold.partition.snapshot.interval.ms",
)
async def test_the_topic_of_state_is_made_and_used_as_it_is_wanted(
    clock: BrokerClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with whole_broker(clock, GROUPS | SMALL) as broker:
        await broker.create(partitions=8)
        await coordinate(broker)
        await beat(broker, "share")
        await broker.until(lambda: SHARE_GROUP_STATE in broker.services.image.topics)
        leaders = [broker.services.partitions.leader(SHARE_GROUP_STATE, index) for index in range(2)]
        assert leaders[0].settings["segment.bytes"] == 2_000_000
        await broker.until(lambda: sum(leader.log.log_end for leader in leaders) >= 8)
        leader = max(leaders, key=lambda leader: leader.log.log_end)
        found = leader.log.read(0, 1 << 20)
        assert found is not None
        assert RecordBatch(bytearray(found.read())).codec_number == Compression.ZSTD
    reads = watched(monkeypatch)
    settings = (
        GROUPS
        | SMALL
        | {
            "share.coordinator.load.buffer.size": "77",
            "share.coordinator.state.topic.prune.interval.ms": "120000",
            "share.coordinator.cold.partition.snapshot.interval.ms": "60000",
            "share.coordinator.snapshot.update.records.per.snapshot": "0",
        }
    )
    async with whole_broker(clock, settings, file_system=broker.file_system) as broker:
        shard = broker.services.share_coordinator.shard(leader.partition)
        assert shard is not None
        await broker.until(lambda: shard.machine is not None)
        assert 77 in reads
        log = broker.services.partitions.leader(SHARE_GROUP_STATE, leader.partition).log
        before = log.log_end
        await broker.pass_time(61_000)
        await broker.until(lambda: log.log_end > before)
        assert log.log_start == 0
        await broker.pass_time(61_000)
        await broker.until(lambda: log.log_start > 0)
