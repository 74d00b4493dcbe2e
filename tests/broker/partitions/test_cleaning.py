"""Compaction as a broker runs it: when, with what, and what readers see of it."""

import errno
from collections.abc import Mapping
from typing import Any

import pytest
from trio.testing import MockClock

from broker.partitions.cleaning import Limit, LocalWorker, SwapIn
from protocol.records.batch import read_batches
from protocol.records.builder import build_batch
from protocol.stored.metadata_records import ConfigRecord
from storage.checkpoints import read_offsets
from storage.cleaner import Cleanable, Cleaned, CleaningJob
from storage.errors import DiskFailure
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from tests.broker.partitions.one_broker import PATH, START_MS, OneBroker, one_broker
from tests.broker.partitions.test_housekeeping import pass_time

COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "1048576"}


def write_keys(broker: OneBroker, topic: str, count: int, *, size: int = 300_000) -> None:
    """``count`` records of two keys; three fill a segment."""
    for number in range(count):
        value = b"%d" % number + bytes(size)
        record = (broker.clock.now_ms(), b"key %d" % (number % 2), value, ())
        assert broker.produce(topic, build_batch([record])).error_code == 0


def offsets(broker: OneBroker, topic: str) -> list[int]:
    """Of everything that can be read."""
    found: list[int] = []
    log = broker.partitions.leader(topic, 0).log
    offset = log.log_start
    while (piece := log.read(offset, 1 << 20)) is not None:
        for batch in read_batches(piece.read()):
            found += [record.offset for record in batch.records()]
            offset = batch.next_offset
    return found


def checkpoint(broker: OneBroker) -> dict[tuple[str, int], int]:
    return read_offsets(broker.file_system, f"{PATH}/cleaner-offset-checkpoint")


async def test_a_dirty_log_is_cleaned_after_the_pause(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        broker.create_topic("u", settings=COMPACTED | {"cleanup.policy": "delete"})
        for topic in ("t", "u"):
            write_keys(broker, topic, 7)
        await pass_time(broker, 14_000)
        assert offsets(broker, "t") == [0, 1, 2, 3, 4, 5, 6]
        await pass_time(broker, 1500)
        assert offsets(broker, "t") == [4, 5, 6]
        assert offsets(broker, "u") == [0, 1, 2, 3, 4, 5, 6]
        assert checkpoint(broker) == {("t", 0): 6}
        assert "t-0 is compacted up to offset 6" in broker.lines.getvalue()
        assert broker.fetch("t", 0).error_code == 0
        assert broker.produce("t", build_batch([(START_MS, b"k", b"v", ())])).base_offset == 7


async def test_a_clean_log_is_left_alone_until_it_is_dirty_enough(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
        told = broker.lines.getvalue()
        await pass_time(broker, 100_000)
        assert broker.lines.getvalue() == told
        write_keys(broker, "t", 3)
        await pass_time(broker, 16_000)
        assert broker.lines.getvalue() != told


@pytest.mark.acts("min.cleanable.dirty.ratio")
async def test_the_topic_says_how_dirty_is_dirty_enough(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED | {"min.cleanable.dirty.ratio": "1.0"})
        write_keys(broker, "t", 7)
        await pass_time(broker, 60_000)
        assert len(offsets(broker, "t")) == 7
        broker.apply(
            ConfigRecord(resource_type=2, resource_name="t", name="min.cleanable.dirty.ratio", value="0.1")
        )
        await pass_time(broker, 16_000)
        assert len(offsets(broker, "t")) == 3


@pytest.mark.acts("min.compaction.lag.ms")
async def test_young_records_are_left_alone(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED | {"min.compaction.lag.ms": "60000"})
        write_keys(broker, "t", 7)
        await pass_time(broker, 50_000)
        assert len(offsets(broker, "t")) == 7
        await pass_time(broker, 40_000)
        assert len(offsets(broker, "t")) == 3


@pytest.mark.acts("max.compaction.lag.ms")
async def test_old_dirt_is_cleaned_even_if_there_is_little(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        settings = {"min.cleanable.dirty.ratio": "1.0", "max.compaction.lag.ms": "60000"}
        broker.create_topic("t", settings=COMPACTED | settings)
        write_keys(broker, "t", 7)
        await pass_time(broker, 50_000)
        assert len(offsets(broker, "t")) == 7
        await pass_time(broker, 40_000)
        assert len(offsets(broker, "t")) == 3


@pytest.mark.acts("cleanup.policy")
async def test_compacted_logs_may_be_shortened_too(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        settings = {"cleanup.policy": "compact,delete", "retention.ms": "60000"}
        broker.create_topic("t", settings=COMPACTED | settings)
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
        assert offsets(broker, "t") == [4, 5, 6]
        await pass_time(broker, 60_000)
        assert offsets(broker, "t") == []
        assert broker.partitions.leader("t", 0).log.log_start == 7


@pytest.mark.parametrize(
    "settings",
    [{"log.cleaner.enable": "false"}, {"log.cleaner.threads": "0"}, {"log.cleaner.backoff.ms": "999999"}],
)
@pytest.mark.acts("log.cleaner.enable", "log.cleaner.threads", "log.cleaner.backoff.ms")
async def test_the_cleaner_can_be_kept_off(settings: Mapping[str, str], autojump_clock: MockClock) -> None:
    async with one_broker(settings) as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        await pass_time(broker, 100_000)
        assert len(offsets(broker, "t")) == 7


@pytest.mark.acts("log.cleaner.dedupe.buffer.size")
async def test_small_memory_takes_more_rounds(autojump_clock: MockClock) -> None:
    async with one_broker({"log.cleaner.dedupe.buffer.size": "1"}) as broker:
        broker.create_topic("t", settings=COMPACTED | {"min.cleanable.dirty.ratio": "0.0"})
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
        assert offsets(broker, "t") == [4, 5, 6]
        assert broker.lines.getvalue().count("is compacted up to") > 2


@pytest.mark.acts("delete.retention.ms")
@pytest.mark.parametrize(("retention_ms", "is_kept"), [("0", False), ("3600000", True)])
async def test_how_long_a_deleted_key_is_told_of(
    autojump_clock: MockClock, retention_ms: str, is_kept: bool
) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED | {"delete.retention.ms": retention_ms})
        broker.produce("t", build_batch([(broker.clock.now_ms(), b"deleted", None, ())]))
        for _ in range(3):
            write_keys(broker, "t", 7)
            await pass_time(broker, 16_000)
        assert (0 in offsets(broker, "t")) == is_kept


@pytest.mark.acts("log.cleaner.io.buffer.load.factor", "log.cleaner.io.max.bytes.per.second")
async def test_memory_and_disk_are_shared_by_the_threads(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = []
    begin = PartitionLog.begin_cleaning

    def noted(log: PartitionLog, *arguments: Any, **how: Any) -> CleaningJob:
        jobs.append((how["keys_max"], how["bytes_per_second"]))
        return begin(log, *arguments, **how)

    monkeypatch.setattr(PartitionLog, "begin_cleaning", noted)
    settings = {
        "log.cleaner.threads": "2",
        "log.cleaner.dedupe.buffer.size": "48000",
        "log.cleaner.io.buffer.load.factor": "0.5",
        "log.cleaner.io.max.bytes.per.second": "3000000",
    }
    async with one_broker(settings) as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
    assert jobs == [(60, 1_500_000.0)]


@pytest.mark.parametrize("factor", ["NaN", "Infinity", "1e308", "-1", "0"])
async def test_a_factor_that_makes_no_sense_ends_nothing(autojump_clock: MockClock, factor: str) -> None:
    async with one_broker({"log.cleaner.io.buffer.load.factor": factor}) as broker:
        broker.create_topic("t", settings=COMPACTED | {"min.cleanable.dirty.ratio": "0.0"})
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
        assert offsets(broker, "t") == [4, 5, 6]


async def test_a_log_that_nobody_asked_for_is_cleaned_as_well(autojump_clock: MockClock) -> None:
    async with one_broker({"log.cleaner.threads": "0"}) as broker:
        for topic, count in (("t", 7), ("u", 1)):
            broker.create_topic(topic, settings=COMPACTED)
            write_keys(broker, topic, count)
        broker.directory.close()
    async with one_broker(file_system=broker.file_system, image=broker.image) as broker:
        await pass_time(broker, 16_000)
        assert [log.topic for log in broker.directory.logs] == ["t"]
        assert offsets(broker, "t") == [4, 5, 6]


async def test_the_checkpoint_is_remembered_and_goes_with_the_topic(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
        broker.directory.close()
    async with one_broker(file_system=broker.file_system, image=broker.image) as broker:
        assert broker.directory.cleaner_offset("t", 0) == 6
        broker.partitions.leader("t", 0)
        await pass_time(broker, 60_000)
        assert "is compacted" not in broker.lines.getvalue()
        broker.delete_topic(topic_id)
        assert broker.directory.cleaner_offset("t", 0) is None


async def test_what_is_truncated_is_dirty_again(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        await pass_time(broker, 16_000)
        log = broker.partitions.leader("t", 0).log
        log.truncate_to(5, now_ms=0)
        assert broker.directory.cleaner_offset("t", 0) == 5
        broker.directory.begin_checkpoint()()
        assert checkpoint(broker) == {("t", 0): 5}
        assert broker.directory.cleaner_offset("t", 0) == 5


async def test_a_topic_may_be_deleted_while_it_is_cleaned(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And made anew: the cleaner's checkpoint is not that of the new one."""
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)

        async def clean(worker: LocalWorker, job: CleaningJob, swap_in: SwapIn, limit: Limit) -> Cleaned:
            broker.delete_topic(topic_id)
            broker.create_topic("t", settings=COMPACTED)
            broker.partitions.leader("t", 0)
            await swap_in(job.bases[:1])
            return Cleaned(6, 1, 1)

        monkeypatch.setattr(LocalWorker, "clean", clean)
        await pass_time(broker, 16_000)
        assert broker.directory.cleaner_offset("t", 0) is None
        assert "compacted" not in broker.lines.getvalue()


async def test_the_log_s_start_is_on_the_device_before_the_cleaner_goes_by_it(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a crash would take back records of transactions whose markers it lets go."""
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        broker.partitions.leader("t", 0).log.delete_records_before(2)
        stored: list[dict[tuple[str, int], int]] = []
        right = LocalWorker.clean

        async def clean(worker: LocalWorker, job: CleaningJob, swap_in: SwapIn, limit: Limit) -> Cleaned:
            stored.append(read_offsets(broker.file_system, f"{PATH}/log-start-offset-checkpoint"))
            return await right(worker, job, swap_in, limit)

        monkeypatch.setattr(LocalWorker, "clean", clean)
        broker.file_system.refuse("open", errno.ENOSPC, path_suffix="log-start-offset-checkpoint.tmp")
        await pass_time(broker, 16_000)
        assert stored == []
        assert "t-0 is not compacted now: cannot write" in broker.lines.getvalue()
        await pass_time(broker, 16_000)
        assert stored == [{("t", 0): 2}]


async def test_a_topic_may_be_deleted_while_it_is_flushed(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with one_broker() as broker:
        topic_id = broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)

        async def flush(log: PartitionLog) -> bool:
            broker.delete_topic(topic_id)
            return True

        monkeypatch.setattr(broker.partitions, "flush", flush)
        await pass_time(broker, 31_000)
        assert "compacted" not in broker.lines.getvalue()


async def test_logs_that_only_recovery_has_opened_are_compacted(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
    async with one_broker(file_system=broker.file_system, image=broker.image) as broker:
        assert broker.directory.log("t", 0) is not None
        await pass_time(broker, 31_000)
        assert "t-0 is compacted" in broker.lines.getvalue()


async def test_all_that_was_dirty_may_be_deleted_before_it_is_cleaned(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By retention, say, if the topic is not compacted any more."""
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        right = PartitionLog.begin_cleaning

        def begin_cleaning(log: PartitionLog, cleanable: Cleanable, **settings: Any) -> CleaningJob:
            log.delete_records_before(log.segments[-1].base_offset)
            log.delete_expired_segments(now_ms=broker.clock.now_ms())
            return right(log, cleanable, **settings)

        monkeypatch.setattr(PartitionLog, "begin_cleaning", begin_cleaning)
        await pass_time(broker, 31_000)
        assert "compacted" not in broker.lines.getvalue()
        assert len(offsets(broker, "t")) == 1


async def test_a_disk_that_cannot_be_read_now_is_tried_again(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED | {"max.compaction.lag.ms": "60000"})
        write_keys(broker, "t", 7)
        await pass_time(broker, 14_000)
        log = broker.partitions.leader("t", 0).log
        for segment in log._segments:
            segment._first_timestamp = None
            segment.close()
        broker.file_system.refuse("open", errno.EMFILE, path_suffix=f"{0:020d}.log")
        await pass_time(broker, 1500)
        assert "t-0 is not compacted now" in broker.lines.getvalue()
        assert len(offsets(broker, "t")) == 7
        await pass_time(broker, 16_000)
        assert len(offsets(broker, "t")) == 3


async def test_a_full_disk_is_tried_again(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        broker.create_topic("t", settings=COMPACTED)
        write_keys(broker, "t", 7)
        for _ in range(3):
            broker.file_system.refuse("write", errno.ENOSPC, path_suffix=".log.cleaned")
            await pass_time(broker, 16_000)
            assert not broker.file_system.refuses
        assert broker.lines.getvalue().count("t-0 is not compacted now") == 1, "it is told seldom"
        assert len(offsets(broker, "t")) == 7
        await pass_time(broker, 16_000)
        assert len(offsets(broker, "t")) == 3


async def test_a_damaged_log_is_left_alone_and_the_others_go_on(autojump_clock: MockClock) -> None:
    async with one_broker() as broker:
        for topic in ("t", "u"):
            broker.create_topic(topic, settings=COMPACTED)
            write_keys(broker, topic, 7)
        path = f"{PATH}/t-0/{0:020d}.log"
        broker.file_system.open(path).pwrite(b"\xff", 1000)
        await pass_time(broker, 60_000)
        assert f"t-0 is not compacted any more until the next start: {path}" in broker.lines.getvalue()
        assert broker.lines.getvalue().count("not compacted any more") == 1
        assert len(offsets(broker, "u")) == 3


async def test_a_swap_that_fails_half_way_ends_the_broker_and_the_next_start_completes_it(
    autojump_clock: MockClock,
) -> None:
    file_system = MemoryFileSystem(now_ms=lambda: START_MS)
    with pytest.RaisesGroup(DiskFailure, flatten_subgroups=True):
        async with one_broker(file_system=file_system) as broker:
            broker.create_topic("t", settings=COMPACTED)
            write_keys(broker, "t", 7)
            file_system.refuse("rename", errno.EIO, path_suffix=".timeindex.swap")
            await pass_time(broker, 16_000)
    async with one_broker(file_system=file_system, image=broker.image) as broker:
        left = offsets(broker, "t")
        assert left[-3:] == [4, 5, 6]
        assert not [name for name in file_system.list_names(f"{PATH}/t-0") if name.endswith(".swap")]
