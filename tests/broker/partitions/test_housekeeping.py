"""What happens to logs as time goes by."""

import errno
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from broker.partitions.housekeeping import run_in_threads
from protocol.error_codes import ErrorCode
from protocol.records.batch import RecordBatch
from protocol.stored.metadata_records import ConfigRecord
from storage.errors import DiskFailure
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import FlushJob
from tests.broker.partitions.one_broker import (
    PATH,
    START_MS,
    OneBroker,
    answer_of,
    one_broker,
    produce_request,
    settle,
    some_batch,
)


async def pass_time(broker: OneBroker, milliseconds: int) -> None:
    broker.clock.wall_ms += milliseconds
    await trio.sleep(milliseconds / 1000 + 0.001)


def checkpoint(broker: OneBroker, name: str) -> list[str]:
    """The entries of a checkpoint file; none if there is no file."""
    path = f"{PATH}/{name}"
    if not broker.file_system.exists(path):
        return []
    return broker.file_system.read_file(path).decode().splitlines()[2:]


async def test_high_watermarks_are_written_when_they_have_moved(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(3))
        assert checkpoint(broker, "replication-offset-checkpoint") == []
        await pass_time(broker, 5000)
        assert checkpoint(broker, "replication-offset-checkpoint") == ["t 0 3"]
        syncs = broker.file_system.syncs
        await pass_time(broker, 20_000)
        assert broker.file_system.syncs == syncs
        broker.produce("t", some_batch(3))
        await pass_time(broker, 5000)
        assert checkpoint(broker, "replication-offset-checkpoint") == ["t 0 6"]


async def test_high_watermarks_that_move_in_opposite_ways_are_written(autojump_clock: MockClock) -> None:
    """That of a follower may go back: after a crash nothing counts as committed that is not."""
    async with one_broker() as broker:
        for topic in ("t", "u"):
            broker.create_topic(topic)
            broker.produce(topic, some_batch(3))
        await pass_time(broker, 5000)
        broker.partitions.leader("t", 0).log.follow_high_watermark(1)
        broker.produce("u", some_batch(2))
        await pass_time(broker, 5000)
        assert checkpoint(broker, "replication-offset-checkpoint") == ["t 0 1", "u 0 5"]


async def test_recovery_points_and_log_starts_are_written_soon_after_a_start_and_then_every_minute(
    autojump_clock: MockClock,
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(3))
        log = broker.partitions.leader("t", 0).log
        log.flush()
        log.delete_records_before(2)
        await pass_time(broker, 29_000)
        assert checkpoint(broker, "recovery-point-offset-checkpoint") == []
        await pass_time(broker, 1000)
        assert checkpoint(broker, "recovery-point-offset-checkpoint") == ["t 0 3"]
        assert checkpoint(broker, "log-start-offset-checkpoint") == ["t 0 2"]
        log.delete_records_before(3)
        await pass_time(broker, 59_000)
        assert checkpoint(broker, "log-start-offset-checkpoint") == ["t 0 2"]
        await pass_time(broker, 1000)
        assert checkpoint(broker, "log-start-offset-checkpoint") == ["t 0 3"]


@pytest.mark.acts("log.initial.task.delay.ms")
async def test_the_first_time_may_be_set(autojump_clock: MockClock) -> None:
    """Later than an interval, too."""
    async with one_broker({"log.initial.task.delay.ms": "50000", **RETENTION}) as broker:
        broker.create_topic("t", settings=LARGE)
        produce_segments(broker, "t", 3)
        broker.partitions.leader("t", 0).log.delete_records_before(1)
        await pass_time(broker, 49_000)
        assert bases(broker, "t") == [0, 1, 2]
        await pass_time(broker, 1000)
        assert bases(broker, "t") == [1, 2]


@pytest.mark.acts("log.flush.offset.checkpoint.interval.ms", "log.flush.start.offset.checkpoint.interval.ms")
@pytest.mark.parametrize("which", ["offset", "start.offset"])
async def test_the_shorter_of_both_checkpoint_intervals_holds(autojump_clock: MockClock, which: str) -> None:
    async with one_broker({f"log.flush.{which}.checkpoint.interval.ms": "1000"}) as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(3))
        await pass_time(broker, 1000)
        assert checkpoint(broker, "recovery-point-offset-checkpoint") == ["t 0 0"]


@pytest.mark.acts("replica.high.watermark.checkpoint.interval.ms")
async def test_how_often_high_watermarks_are_written_can_be_set(autojump_clock: MockClock) -> None:
    async with one_broker({"replica.high.watermark.checkpoint.interval.ms": "9000"}) as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(3))
        await pass_time(broker, 8900)
        assert checkpoint(broker, "replication-offset-checkpoint") == []
        await pass_time(broker, 100)
        assert checkpoint(broker, "replication-offset-checkpoint") == ["t 0 3"]


async def test_a_checkpoint_that_cannot_be_written_is_only_late(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t")
        broker.produce("t")
        await trio.testing.wait_all_tasks_blocked()
        broker.file_system.refuse("write", errno.ENOSPC)
        await pass_time(broker, 5000)
        assert "a checkpoint is late" in broker.lines.getvalue()
        assert broker.produce("t").error_code == 0


async def test_a_sealed_segment_is_fsynced_soon(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"segment.bytes": "1048576"})
        for _ in range(2):
            broker.produce("t", some_batch(size=600_000))
        log = broker.partitions.leader("t", 0).log
        unflushed = [log.has_unflushed_segment]
        await pass_time(broker, 5000)
        assert [*unflushed, log.has_unflushed_segment] == [True, False]
        assert log.recovery_point >= 1


async def test_a_failing_fsync_in_the_background_ends_the_broker(autojump_clock: MockClock) -> None:
    with pytest.RaisesGroup(DiskFailure, flatten_subgroups=True):
        async with one_broker() as broker:
            broker.create_topic("t", settings={"segment.bytes": "1048576"})
            for _ in range(2):
                broker.produce("t", some_batch(size=600_000))
            broker.file_system.refuse("sync", errno.EIO, path_suffix=".log")
            await pass_time(broker, 5000)


async def test_who_waits_for_an_fsync_that_fails_is_told_before_the_broker_ends(
    autojump_clock: MockClock,
) -> None:
    told = None
    with pytest.RaisesGroup(DiskFailure, flatten_subgroups=True):
        async with one_broker() as broker:
            broker.create_topic("t", settings={"flush.messages": "1"})
            await settle()
            broker.partitions.leader("t", 0)
            broker.file_system.refuse("sync", errno.EIO, path_suffix=".log")
            told = await answer_of(broker.ask(produce_request("t"), 9))
            await trio.sleep_forever()
    assert told is not None
    assert told.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_fsync_that_lacks_a_descriptor_comes_later(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings={"segment.bytes": "1048576"})
        for _ in range(2):
            broker.produce("t", some_batch(size=600_000))
        log = broker.partitions.leader("t", 0).log
        while broker.directory.services.descriptors.make_room():
            pass
        for _ in range(3):
            broker.file_system.refuse("open", errno.EMFILE, path_suffix=".log")
        await pass_time(broker, 5000)
        unflushed = [log.has_unflushed_segment]
        assert "an fsync is late" in broker.lines.getvalue()
        await pass_time(broker, 5000)
        assert [*unflushed, log.has_unflushed_segment] == [True, False]
        assert broker.produce("t").error_code == 0


async def test_a_flush_without_room_for_the_epochs_comes_later(autojump_clock: MockClock) -> None:
    """The record was written, and what keeps it from being safe may pass: the broker goes on."""
    async with one_broker() as broker:
        broker.create_topic("t", settings={"flush.messages": "1"})
        await settle()
        log = broker.partitions.leader("t", 0).log
        for _ in range(3):
            broker.file_system.refuse("write", errno.ENOSPC, path_suffix="leader-epoch-checkpoint.tmp")
        asked = broker.ask(produce_request("t"), 9)
        await pass_time(broker, 2500)
        assert log.recovery_point == 0
        assert "t-0 is not flushed yet: cannot write" in broker.lines.getvalue()
        await pass_time(broker, 1000)
        assert log.recovery_point == 1
        told = await answer_of(asked)
        assert told.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.acts("flush.ms", "log.flush.scheduler.interval.ms")
async def test_records_are_fsynced_when_they_are_as_old_as_the_topic_says(autojump_clock: MockClock) -> None:
    async with one_broker({"log.flush.scheduler.interval.ms": "1000"}) as broker:
        broker.create_topic("t", settings={"flush.ms": "3000"})
        broker.create_topic("u", settings={"flush.ms": "3600000"})
        logs = [broker.partitions.leader(topic, 0).log for topic in ("t", "u")]
        for topic in ("t", "u"):
            broker.produce(topic, some_batch(4))
        seconds = []
        for second in range(1, 7):
            await pass_time(broker, 1000)
            seconds += [second] if logs[0].recovery_point else []
        assert seconds[0] in (3, 4)  # counted from when they were first seen
        assert [log.recovery_point for log in logs] == [4, 0]


@pytest.mark.acts("log.retention.check.interval.ms")
async def test_segments_that_nobody_can_read_are_dropped(autojump_clock: MockClock) -> None:
    async with one_broker({"log.retention.check.interval.ms": "10000"}) as broker:
        broker.create_topic("t", settings={"segment.bytes": "1048576"})
        for _ in range(3):
            broker.produce("t", some_batch(size=600_000))
        log = broker.partitions.leader("t", 0).log
        log.delete_records_before(2)
        assert len(log.segments) == 3
        await pass_time(broker, 10_000)
        assert [segment.base_offset for segment in log.segments] == [2]


RETENTION = {"log.retention.check.interval.ms": "10000"}
LARGE = {"segment.bytes": "1048576"}


def produce_segments(broker: OneBroker, topic: str, count: int) -> None:
    for _ in range(count):
        assert broker.produce(topic, some_batch(size=600_000)).error_code == 0


def bases(broker: OneBroker, topic: str) -> list[int]:
    return [segment.base_offset for segment in broker.partitions.leader(topic, 0).log.segments]


@pytest.mark.acts("retention.ms")
async def test_old_segments_go_and_readers_are_told(autojump_clock: MockClock) -> None:
    async with one_broker(RETENTION) as broker:
        broker.create_topic("t", settings=LARGE | {"retention.ms": "60000"})
        broker.create_topic("u", settings=LARGE)
        for topic in ("t", "u"):
            produce_segments(broker, topic, 3)
        await pass_time(broker, 60_000)
        assert (bases(broker, "t"), bases(broker, "u")) == ([0, 1, 2], [0, 1, 2])
        await pass_time(broker, 10_000)
        assert (bases(broker, "t"), bases(broker, "u")) == ([3], [0, 1, 2])
        assert broker.fetch("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert broker.fetch("t", 3).log_start_offset == 3
        assert "t-0 starts at offset 3 now; segments deleted: " in broker.lines.getvalue()
        assert broker.produce("t").base_offset == 3


@pytest.mark.acts("retention.bytes", "cleanup.policy")
async def test_retention_follows_the_settings_of_topic_and_broker(autojump_clock: MockClock) -> None:
    async with one_broker(RETENTION | {"log.retention.bytes": "1300000"}) as broker:
        broker.create_topic("t", settings=LARGE | {"retention.bytes": "-1"})
        broker.create_topic("u", settings=LARGE)
        broker.create_topic("v", settings=LARGE | {"cleanup.policy": ""})
        for topic in ("t", "u", "v"):
            produce_segments(broker, topic, 4)
        await pass_time(broker, 10_000)
        assert [len(bases(broker, topic)) for topic in ("t", "u", "v")] == [4, 3, 4]
        broker.apply(ConfigRecord(resource_type=2, resource_name="t", name="retention.bytes", value="700000"))
        await pass_time(broker, 10_000)
        assert [len(bases(broker, topic)) for topic in ("t", "u", "v")] == [2, 3, 4]


async def test_more_segments_than_go_at_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.partitions.housekeeping.DELETED_AT_ONCE", 2)
    async with one_broker(RETENTION) as broker:
        broker.create_topic("t", settings=LARGE | {"retention.ms": "1000"})
        produce_segments(broker, "t", 5)
        await pass_time(broker, 10_000)
        assert bases(broker, "t") == [5]


async def test_retention_opens_a_log_only_to_shorten_it(autojump_clock: MockClock) -> None:
    async with one_broker(RETENTION) as broker:
        for topic, retention_ms in (("t", "60000"), ("u", "600000")):
            broker.create_topic(topic, settings=LARGE | {"retention.ms": retention_ms})
            produce_segments(broker, topic, 3)
        broker.directory.close()
    async with one_broker(RETENTION, file_system=broker.file_system, image=broker.image) as broker:
        assert broker.directory.logs == []
        await pass_time(broker, 50_000)
        assert broker.directory.logs == []
        await pass_time(broker, 20_000)
        assert [log.topic for log in broker.directory.logs] == ["t"]
        assert bases(broker, "t") == [3]


async def test_retention_of_logs_that_only_recovery_has_opened(autojump_clock: MockClock) -> None:
    """Nobody has led them since: their high watermark is what a checkpoint said, if there was one."""
    async with one_broker(RETENTION) as broker:
        for topic in ("t", "u"):
            broker.create_topic(topic, settings=LARGE | {"retention.ms": "3600000"})
            produce_segments(broker, topic, 3)
        await settle()
    async with one_broker(RETENTION, file_system=broker.file_system, image=broker.image) as broker:
        t, u = broker.directory.log("t", 0), broker.directory.log("u", 0)
        assert t is not None
        assert u is not None
        broker.apply(ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="60000"))
        await pass_time(broker, 80_000)
        assert [len(log.segments) for log in (t, u)] == [1, 3]
        await pass_time(broker, 3_600_000)
        assert [len(log.segments) for log in (t, u)] == [1, 1]


async def test_segments_that_cannot_be_renamed_stay_until_next_time(autojump_clock: MockClock) -> None:
    async with one_broker(RETENTION) as broker:
        broker.create_topic("t", settings=LARGE | {"retention.ms": "1000"})
        produce_segments(broker, "t", 3)
        broker.file_system.refuse("rename", errno.EIO, path_suffix=".log")
        await pass_time(broker, 10_000)
        assert "old segments of t-0 stay" in broker.lines.getvalue()
        assert broker.produce("t").error_code == 0
        await pass_time(broker, 10_000)
        assert bases(broker, "t") == [4]


@pytest.mark.acts("producer.id.expiration.ms", "producer.id.expiration.check.interval.ms")
async def test_idle_producers_are_forgotten(autojump_clock: MockClock) -> None:
    intervals = {"producer.id.expiration.check.interval.ms": "1000", "producer.id.expiration.ms": "60000"}
    async with one_broker(intervals) as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(producer_id=7, producer_epoch=0, base_sequence=0))
        log = broker.partitions.leader("t", 0).log
        await pass_time(broker, 59_000)
        assert len(log.active_producers()) == 1
        await pass_time(broker, 2000)
        assert log.active_producers() == []


async def test_how_soon_idle_producers_are_forgotten_may_change(autojump_clock: MockClock) -> None:
    async with one_broker({"producer.id.expiration.check.interval.ms": "1000"}) as broker:
        broker.create_topic("t")
        broker.produce("t", some_batch(producer_id=7, producer_epoch=0, base_sequence=0))
        log = broker.partitions.leader("t", 0).log
        broker.config.apply_dynamic({"producer.id.expiration.ms": "10000"}, {})
        await pass_time(broker, 9000)
        assert len(log.active_producers()) == 1
        await pass_time(broker, 2000)
        assert log.active_producers() == []


@pytest.mark.acts("file.delete.delay.ms")
async def test_deleted_folders_are_removed_when_their_time_has_come(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings={"file.delete.delay.ms": "20000"})
        broker.produce("t")
        await trio.testing.wait_all_tasks_blocked()
        broker.delete_topic(topic_id)
        await pass_time(broker, 15_000)
        assert len(broker.file_system.list_directories(PATH)) == 1
        await pass_time(broker, 10_000)
        assert broker.file_system.list_directories(PATH) == []


async def test_removal_that_fails_is_reported(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings={"file.delete.delay.ms": "1000"})
        broker.produce("t")
        await trio.testing.wait_all_tasks_blocked()
        broker.delete_topic(topic_id)
        broker.file_system.refuse("remove", errno.EACCES)
        await pass_time(broker, 10_000)
        assert "stay" in broker.lines.getvalue()


class StubJob:
    def __init__(self, failure: Exception | None = None) -> None:
        self.runs = 0
        self._failure = failure

    def run(self) -> None:
        self.runs += 1
        if self._failure is not None:
            raise self._failure


def test_closing_runs_all_flushes() -> None:
    jobs = [StubJob() for _ in range(20)]
    run_in_threads(cast("list[FlushJob]", jobs))
    assert [job.runs for job in jobs] == [1] * 20
    run_in_threads([])


def test_closing_tells_of_a_failure() -> None:
    jobs = [StubJob(), StubJob(OSError("no"))]
    with pytest.raises(OSError, match="no"):
        run_in_threads(cast("list[FlushJob]", jobs))


async def test_a_closed_directory_needs_no_recovery(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", partitions=3)
        for index in range(3):
            broker.partitions.leader("t", index).append(RecordBatch(some_batch(4)), START_MS)
        await trio.testing.wait_all_tasks_blocked()
        broker.directory.close(run_jobs=run_in_threads)
        disk: MemoryFileSystem = broker.file_system
        disk.lose_power()
        image = broker.image
    async with one_broker(file_system=disk, image=image) as broker:
        assert broker.directory.was_clean
        assert [broker.partitions.leader("t", index).log.log_end for index in range(3)] == [4, 4, 4]
