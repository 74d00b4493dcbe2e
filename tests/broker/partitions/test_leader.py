"""Order and commitment of appends, and who is told of them."""

import errno
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.partitions.append import belongs_aside
from broker.partitions.leader import Leader, PendingAppend
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.limits import RECORDS_SIZE_MAX
from protocol.records.batch import RecordBatch
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.errors import RecordsTooLarge
from protocol.records.validation import RefusedBatch
from storage.errors import DiskFailure, OutOfOrderSequence
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import Appended
from tests.broker.partitions.one_broker import START_MS, one_broker, settle, some_batch

EVERY_RECORD = {"flush.messages": "1"}


def append(leader: Leader, count: int = 1, **options: Any) -> Appended:
    return leader.append(RecordBatch(some_batch(count, **options)), START_MS)


def large_batch(**options: Any) -> RecordBatch:
    """One that may be checked in a thread."""
    records = [(START_MS, b"%d" % index, bytes(range(256)), ()) for index in range(200)]
    return RecordBatch(build_batch(records, compression=Compression.GZIP, level=1, **options))


class Told:
    """Collects what callbacks are told."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []

    def __call__(self, outcome: Any = None) -> None:
        self.outcomes.append(outcome)


async def test_an_append_is_committed_at_once() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        told = Told()
        appended = append(leader, 3)
        leader.when_committed(3, told)
        assert (appended.base_offset, appended.last_offset) == (0, 2)
        assert leader.log.high_watermark == 3
        assert told.outcomes == [None]


async def test_a_refused_batch_leaves_the_log_as_it_was() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        with pytest.raises(RefusedBatch):
            leader.append(RecordBatch(some_batch(is_control=True)), START_MS)
        assert leader.log.log_end == 0


async def test_batches_wait_behind_one_that_is_checked_in_a_thread() -> None:
    """The second one's sequence follows from the first one's: written in front of it, it would be refused."""
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        first, second = Told(), Told()
        broker.hold_threads()
        producer = {"producer_id": 7, "producer_epoch": 0}
        leader.append_in_turn(large_batch(base_sequence=0, **producer), START_MS, first, check_aside=True)
        assert leader.has_pending
        following = RecordBatch(some_batch(base_sequence=200, **producer))
        leader.append_in_turn(following, START_MS, second, check_aside=False)
        await settle()
        assert first.outcomes == second.outcomes == []
        assert leader.log.log_end == 0
        broker.release_threads()
        await settle()
        assert [told.outcomes[0].base_offset for told in (first, second)] == [0, 200]
        assert leader.log.high_watermark == 201
        assert not leader.has_pending


async def test_checks_in_threads_may_end_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        told = [Told(), Told()]
        pending: list[PendingAppend] = []
        monkeypatch.setattr(broker.partitions, "check_aside", pending.append)
        for one in told:
            leader.append_in_turn(large_batch(), START_MS, one, check_aside=True)
        for one_pending in reversed(pending):
            one_pending.check()
            leader.settle()
        assert [one.outcomes[0].base_offset for one in told] == [0, 200]


async def test_a_refusal_in_a_thread_does_not_hold_up_what_is_behind() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        first, second = Told(), Told()
        broken = bytearray(large_batch().data)
        broken[-20] ^= 1
        leader.append_in_turn(RecordBatch(broken), START_MS, first, check_aside=True)
        leader.append_in_turn(RecordBatch(some_batch()), START_MS, second, check_aside=False)
        await settle()
        assert first.outcomes[0].code == ErrorCode.CORRUPT_MESSAGE
        assert second.outcomes[0].base_offset == 0


async def test_what_storage_refuses_is_told_to_whoever_waited() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        append(leader, producer_id=7, producer_epoch=0, base_sequence=0)
        told = Told()
        gap = RecordBatch(some_batch(producer_id=7, producer_epoch=0, base_sequence=5))
        leader.append_in_turn(gap, START_MS, told, check_aside=False)
        assert isinstance(told.outcomes[0], OutOfOrderSequence)


async def test_one_fsync_commits_all_that_was_written_before_it() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=EVERY_RECORD)
        leader = broker.partitions.leader("t", 0)
        await settle()
        broker.hold_threads()
        runs_before = broker.threads_run
        told = [Told() for _ in range(3)]
        for index in range(3):
            append(leader)
            leader.when_committed(index + 1, told[index])
        assert leader.log.high_watermark == 0
        await settle()
        broker.release_threads()
        await settle()
        assert [one.outcomes for one in told] == [[None]] * 3
        assert leader.log.high_watermark == leader.log.recovery_point == 3
        assert broker.threads_run - runs_before == 1


async def test_what_comes_during_an_fsync_waits_for_the_next_one() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=EVERY_RECORD)
        leader = broker.partitions.leader("t", 0)
        await settle()
        broker.hold_threads()
        append(leader)
        await settle()  # the first fsync has begun
        append(leader)
        ends = []
        leader.watch(lambda leader: ends.append(leader.log.high_watermark))
        broker.release_threads()
        await settle()
        assert ends == [1, 2]


async def test_fewer_unflushed_records_than_asked_for_are_committed_without_fsync() -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"flush.messages": "3"})
        leader = broker.partitions.leader("t", 0)
        append(leader, 2)
        assert (leader.log.high_watermark, leader.log.recovery_point) == (2, 0)
        append(leader)
        assert leader.log.high_watermark == 2
        await settle()
        assert (leader.log.high_watermark, leader.log.recovery_point) == (3, 3)


async def test_records_are_on_disk_when_they_are_committed() -> None:
    file_system = MemoryFileSystem(now_ms=lambda: START_MS)
    async with one_broker(file_system=file_system) as broker:
        file_system.sync_everything()  # the log directory itself was made long ago
        broker.create_topic("t", settings=EVERY_RECORD)
        leader = broker.partitions.leader("t", 0)
        append(leader, 5)
        await settle()
        committed = leader.log.high_watermark
        image = broker.image
    file_system.lose_power()
    async with one_broker(file_system=file_system, image=image) as broker:
        assert broker.partitions.leader("t", 0).log.log_end == committed == 5


async def test_a_failing_fsync_ends_the_broker_and_commits_nothing(autojump_clock: MockClock) -> None:
    file_system = MemoryFileSystem(now_ms=lambda: START_MS)
    told = Told()
    with pytest.RaisesGroup(DiskFailure):
        async with one_broker(file_system=file_system) as broker:
            broker.create_topic("t", settings=EVERY_RECORD)
            leader = broker.partitions.leader("t", 0)
            await settle()
            file_system.refuse("sync", errno.EIO, path_suffix=".log")
            append(leader)
            leader.when_committed(1, told)
            await trio.sleep_forever()
    (refusal,) = told.outcomes
    assert isinstance(refusal, KafkaError)
    assert refusal.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert leader.log.high_watermark == 0


async def test_a_full_disk_refuses_and_says_so_in_the_log() -> None:
    file_system = MemoryFileSystem(now_ms=lambda: START_MS)
    async with one_broker(file_system=file_system) as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        for _ in range(3):
            file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
            with pytest.raises(DiskFailure):
                append(leader)
        assert broker.lines.getvalue().count("t-0 was not written to") == 1
        assert append(leader).base_offset == 0


async def test_watchers_are_told_of_each_step_until_they_leave() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        told = Told()
        leader.watch(told)
        append(leader)
        append(leader)
        leader.unwatch(told)
        append(leader)
        assert told.outcomes == [leader, leader]


async def test_a_duplicate_is_no_news() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        append(leader, **options)
        told = Told()
        leader.watch(told)
        assert append(leader, **options).is_duplicate
        assert told.outcomes == []


async def test_everybody_who_waits_is_told_when_leadership_ends() -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings=EVERY_RECORD)
        leader = broker.partitions.leader("t", 0)
        await settle()
        broker.hold_threads()
        committed, appended, watcher = Told(), Told(), Told()
        append(leader)
        leader.when_committed(1, committed)
        leader.append_in_turn(large_batch(), START_MS, appended, check_aside=True)
        leader.watch(watcher)
        broker.delete_topic(topic_id)
        assert committed.outcomes[0].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert watcher.outcomes == [leader]
        assert appended.outcomes == []  # the thread still reads the batch
        broker.release_threads()
        await settle()
        assert appended.outcomes[0].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        late = Told()
        leader.when_committed(9, late)
        assert late.outcomes[0].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError):
            append(leader)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, None),
        (3, None),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_leader_epochs(epoch: int, code: ErrorCode | None) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", leader_epoch=3)
        leader = broker.partitions.leader("t", 0)
        if code is None:
            leader.check_epoch(epoch)
        else:
            with pytest.raises(KafkaError) as refusal:
                leader.check_epoch(epoch)
            assert refusal.value.code == code


BOMB_BYTES = {"producer": 600_000, "uncompressed": 30_000}
"""More than the loop unpacks, or packs, in one go."""


def bomb(size: int, compression: Compression, **options: Any) -> RecordBatch:
    """One record that is packed very small."""
    records = [(START_MS, b"key", bytes(size), ())]
    return RecordBatch(build_batch(records, compression=compression, **options))


@pytest.mark.parametrize("compression", [each for each in Compression if each])
@pytest.mark.parametrize("kept_as", BOMB_BYTES)
async def test_what_unpacks_to_very_much_is_checked_in_a_thread(
    kept_as: str, compression: Compression
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"compression.type": kept_as})
        leader = broker.partitions.leader("t", 0)
        size = BOMB_BYTES[kept_as]
        assert not belongs_aside(bomb(size, compression), leader.policy)
        with pytest.raises(RecordsTooLarge):
            leader.append(bomb(size, compression), START_MS)
        assert leader.log.log_end == 0
        told, following = Told(), Told()
        leader.append_in_turn(bomb(size, compression), START_MS, told, check_aside=False)
        assert leader.has_pending
        leader.append_in_turn(RecordBatch(some_batch()), START_MS, following, check_aside=False)
        await settle()
        assert [outcome.base_offset for outcome in (*told.outcomes, *following.outcomes)] == [0, 1]
        assert leader.append(bomb(20_000, compression), START_MS).base_offset == 2


async def test_what_unpacks_to_more_than_may_be_is_refused() -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        leader = broker.partitions.leader("t", 0)
        told = Told()
        size = RECORDS_SIZE_MAX + 1
        leader.append_in_turn(bomb(size, Compression.ZSTD), START_MS, told, check_aside=False)
        await settle()
        assert [outcome.code for outcome in told.outcomes] == [ErrorCode.MESSAGE_TOO_LARGE]


@pytest.mark.parametrize(
    ("kept_as", "compression", "count", "is_aside"),
    [
        ("producer", Compression.NONE, 4000, False),
        ("producer", Compression.LZ4, 10, False),
        ("producer", Compression.LZ4, 4000, True),
        ("producer", Compression.GZIP, 4000, True),
        ("gzip", Compression.GZIP, 10, False),
        ("zstd", Compression.NONE, 10, False),
        ("zstd", Compression.NONE, 400, True),
        ("uncompressed", Compression.GZIP, 4000, True),
    ],
)
async def test_what_belongs_aside(kept_as: str, compression: Compression, count: int, is_aside: bool) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"compression.type": kept_as})
        policy = broker.partitions.leader("t", 0).policy
        batch = some_batch(count, size=100, compression=compression)
        assert belongs_aside(RecordBatch(batch), policy) is is_aside
