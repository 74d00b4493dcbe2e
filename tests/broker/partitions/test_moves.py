"""Replicas move between log directories while they are written to, whatever happens meanwhile."""

import errno
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker import limits
from broker.errors import ErrorCode, KafkaError
from broker.metadata.image import MetadataImage
from broker.partitions import moves
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.records.batch import RecordBatch, read_batches
from storage.errors import DiskFailure
from storage.memory_filesystem import MemoryFileSystem, PowerCut
from storage.partition_log import FlushJob, PartitionLog
from tests.broker.partitions.one_broker import (
    NODE_ID,
    OneBroker,
    answer_of,
    directory_id,
    one_broker,
    produce_request,
    settle,
    some_batch,
)

A, B, C = PATHS = ("/a", "/b", "/c")


def assigned(broker: OneBroker, topic: str = "t") -> bytes:
    return broker.image.topics[topic].partitions[0].directory_of(NODE_ID)


def home(broker: OneBroker, topic: str = "t") -> str:
    return broker.partitions.places.homes[topic, 0].path


def live(broker: OneBroker, path: str) -> list[str]:
    """Folders that are no rubbish; unique parts of names left out."""
    return sorted(
        name.partition(".")[0] + ("-" + name.rpartition("-")[2]) * ("." in name)
        for name in broker.file_system.list_directories(path)
        if not name.endswith("-delete")
    )


def records(broker: OneBroker, topic: str = "t") -> list[tuple[int, bytes]]:
    """Offset and value of all that can be read."""
    found = []
    log = broker.partitions.leader(topic, 0).log
    offset = log.log_start
    while (piece := log.read(offset, 1 << 20, upper=log.high_watermark)) is not None:
        for batch in read_batches(piece.read()):
            batch.check_crc()
            found += [
                (batch.base_offset + index, bytes(record.value or b""))
                for index, record in enumerate(batch.records())
            ]
            offset = batch.next_offset
    return found


async def move(broker: OneBroker, path: str, topic: str = "t", partition: int = 0) -> ErrorCode:
    try:
        await broker.partitions.moves.move((topic, partition), path)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


async def filled(broker: OneBroker, *, batches: int = 3, path: str = A, **settings: str) -> bytes:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    topic_id = broker.create_topic("t", directory=directory_id(path), settings=names)
    for number in range(batches):
        assert broker.produce("t", some_batch(2, size=10 + number)).error_code == 0
    await settle()
    return topic_id


async def test_a_replica_moves_with_all_it_has() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        before = records(broker)
        old = broker.partitions.leader("t", 0).log
        assert await move(broker, B) is ErrorCode.NONE
        await settle()
        assert (live(broker, A), live(broker, B)) == ([], ["t-0"])
        assert assigned(broker) == directory_id(B)
        assert records(broker) == before
        log = broker.partitions.leader("t", 0).log
        assert log is not old
        assert (log.directory, log.high_watermark, log.recovery_point) == ("/b/t-0", 6, 6)
        assert log.leader_epochs.entries == old.leader_epochs.entries
        assert log.active_producers() == old.active_producers()
        assert broker.produce("t").base_offset == 6
        assert [offset for offset, _ in records(broker)] == list(range(7))
        image, file_system = broker.image, broker.file_system
    async with one_broker(paths=PATHS, file_system=file_system, image=image) as broker:
        assert [offset for offset, _ in records(broker)] == list(range(7))
        assert home(broker) == B


async def test_it_may_go_back_and_on() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        before = records(broker)
        for path in (B, A, C, A, B):
            assert await move(broker, path) is ErrorCode.NONE
            await settle()
            assert (home(broker), assigned(broker)) == (path, directory_id(path))
        assert records(broker) == before


async def test_one_that_nobody_has_opened_moves_too() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        before = records(broker)
        image, file_system = broker.image, broker.file_system
    async with one_broker(paths=PATHS, file_system=file_system, image=image) as broker:
        assert await move(broker, B) is ErrorCode.NONE
        await settle()
        assert home(broker) == B
        assert records(broker) == before


async def test_producers_are_remembered() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker, batches=0)
        first = some_batch(2, producer_id=5, producer_epoch=0, base_sequence=0)
        assert broker.produce("t", bytearray(first)).base_offset == 0
        await move(broker, B)
        await settle()
        assert broker.produce("t", bytearray(first)).base_offset == 0, "a duplicate"
        later = some_batch(1, producer_id=5, producer_epoch=0, base_sequence=7)
        assert broker.produce("t", later).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_what_was_deleted_stays_deleted() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker, batches=4)
        log = broker.partitions.leader("t", 0).log
        log.delete_records_before(3)  # inside a batch
        await move(broker, B)
        await settle()
        log = broker.partitions.leader("t", 0).log
        assert (log.log_start, log.first_base, log.log_end) == (3, 2, 8)
        assert broker.fetch("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert broker.fetch("t", 3).error_code == 0


async def test_a_copy_that_has_diverged_goes_on_inside_the_batch_in_which_the_source_starts() -> None:
    """The source was cut, and begun anew there, before the broker stopped."""
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        image, file_system = broker.image, broker.file_system
        source = broker.partitions.leader("t", 0).log
        source.truncate_fully_and_start_at(2, now_ms=0)
        newer = RecordBatch(some_batch(3))
        newer.set_place(2, 7)
        source.append_as_follower(newer.buffer, now_ms=0)
        source.advance_high_watermark(5)
        source.delete_records_before(4)
        for directory in broker.partitions.places.online:
            directory.begin_checkpoint()()
    async with one_broker(paths=PATHS, file_system=file_system, image=image) as broker:
        await settle()
        assert home(broker) == B
        assert [offset for offset, _ in records(broker)] == [2, 3, 4]


async def test_an_empty_log_and_one_whose_end_is_compacted_away() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker, batches=0)
        await move(broker, B)
        await settle()
        assert home(broker) == B
        log = broker.partitions.leader("t", 0).log
        broker.produce("t", some_batch(2))
        log.skip_to(10, now_ms=broker.clock.now_ms())
        log.advance_high_watermark(10)
        await move(broker, C)
        await settle()
        log = broker.partitions.leader("t", 0).log
        assert (log.directory, log.log_end, log.high_watermark) == ("/c/t-0", 10, 10)
        assert broker.produce("t").base_offset == 10


async def test_appends_go_on_and_wait_only_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "COPY_BYTES", 200)
    async with one_broker(paths=PATHS) as broker:
        await filled(broker, batches=10)
        broker.hold_commands()
        assert await move(broker, B) is ErrorCode.NONE
        assert broker.produce("t", some_batch(1, size=50)).error_code == 0
        await settle()
        # All is copied, and the controller has not answered yet.
        waiting = broker.ask(produce_request("t", some_batch(1, size=60)), 9)
        await settle()
        assert not waiting.is_answered
        broker.release_commands()
        await settle()
        assert waiting.result().responses[0].partition_responses[0].base_offset == 21
        assert home(broker) == B
        assert [offset for offset, _ in records(broker)] == list(range(22))


async def test_what_the_broker_writes_itself_does_not_wait() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        leader = broker.partitions.leader("t", 0)
        leader.append_own(RecordBatch(some_batch(1)), broker.clock.now_ms())
        broker.release_commands()
        await settle()
        assert home(broker) == B
        assert len(records(broker)) == 7


async def test_it_does_not_wait_for_a_moment_in_which_the_broker_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        leader = broker.partitions.leader("t", 0)
        run_blocking = broker.run_blocking
        flushed = 0

        async def run(function: Callable[..., Any], *arguments: object) -> Any:
            nonlocal flushed
            if isinstance(getattr(function, "__self__", None), FlushJob):
                flushed += 1
                assert flushed < 100, "it would never end"
                leader.append_own(RecordBatch(some_batch(1)), broker.clock.now_ms())
            return await run_blocking(function, *arguments)

        monkeypatch.setattr(broker, "run_blocking", run)
        await move(broker, B)
        await settle()
        assert home(broker) == B
        assert len(records(broker)) == 6 + flushed


async def test_what_waits_for_its_fsync_has_one_in_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker, batches=0, flush_messages="1")
        leader = broker.partitions.leader("t", 0)
        source = leader.log
        run_blocking = broker.run_blocking
        may_flush = trio.Event()

        async def run(function: Callable[..., Any], *arguments: object) -> Any:
            job = getattr(function, "__self__", None)
            if isinstance(job, FlushJob):
                assert leader.own_end <= leader.log.recovery_point
                if job._log is source:
                    await may_flush.wait()
            return await run_blocking(function, *arguments)

        monkeypatch.setattr(broker, "run_blocking", run)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        leader.append_own(RecordBatch(some_batch(1)), broker.clock.now_ms())
        await settle()
        broker.release_commands()
        await settle()
        assert home(broker) == B
        assert leader.own_end == 0
        may_flush.set()
        await settle()
        assert leader.own_end == leader.log.recovery_point == 1


@pytest.mark.acts("replica.alter.log.dirs.io.max.bytes.per.second")
async def test_it_keeps_to_its_rate(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "COPY_BYTES", 1000)
    async with one_broker(paths=PATHS) as broker:
        for _ in range(1):
            await filled(broker, batches=0)
        for _ in range(10):
            broker.produce("t", some_batch(1, size=900))
        broker.config.apply_dynamic({"replica.alter.log.dirs.io.max.bytes.per.second": "500"}, {})
        await move(broker, B)
        await trio.sleep(10)
        assert home(broker) == A
        future = broker.partitions.moves._moves["t", 0].future
        assert 4 <= future.log_end <= 6
        broker.config.apply_dynamic({}, {})
        await trio.sleep(2)
        assert home(broker) == B


async def test_no_rate_at_all_is_a_slow_one(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "COPY_BYTES", 1000)
    async with one_broker(paths=PATHS) as broker:
        await filled(broker, batches=0)
        for _ in range(3):
            broker.produce("t", some_batch(1, size=900))
        broker.config.apply_dynamic({"replica.alter.log.dirs.io.max.bytes.per.second": "0"}, {})
        await move(broker, B)
        await trio.sleep(10)
        assert broker.partitions.moves._moves["t", 0].future.log_end == 1
        await trio.sleep(30)
        assert home(broker) == B


@pytest.mark.acts(
    "alter.log.dirs.replication.quota.window.num", "alter.log.dirs.replication.quota.window.size.seconds"
)
@pytest.mark.parametrize(("samples", "seconds"), [("2", "3"), ("3", "2")])
async def test_what_was_copied_is_forgotten_in_time(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, samples: str, seconds: str
) -> None:
    monkeypatch.setattr(moves, "COPY_BYTES", 1000)
    settings = {
        "alter.log.dirs.replication.quota.window.num": samples,
        "alter.log.dirs.replication.quota.window.size.seconds": seconds,
    }
    async with one_broker(settings, paths=PATHS) as broker:
        await filled(broker, batches=0)
        for _ in range(3):
            broker.produce("t", some_batch(1, size=900))
        broker.config.apply_dynamic({"replica.alter.log.dirs.io.max.bytes.per.second": "1"}, {})
        await move(broker, B)
        await trio.sleep(5.5)
        assert broker.partitions.moves._moves["t", 0].future.log_end == 1
        await trio.sleep(6)
        assert broker.partitions.moves._moves["t", 0].future.log_end == 2
        await trio.sleep(7)
        assert home(broker) == B


@pytest.mark.acts("num.replica.alter.log.dirs.threads")
@pytest.mark.parametrize(("threads", "at_once"), [("1", 1), ("2", 2)])
async def test_so_many_move_at_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, threads: str, at_once: int
) -> None:
    monkeypatch.setattr(moves, "COPY_BYTES", 1000)
    async with one_broker({"num.replica.alter.log.dirs.threads": threads}, paths=PATHS) as broker:
        broker.config.apply_dynamic({"replica.alter.log.dirs.io.max.bytes.per.second": "1"}, {})
        for topic in ("t", "u"):
            broker.create_topic(topic, directory=directory_id(A))
            await settle()
            for _ in range(3):
                broker.produce(topic, some_batch(1, size=900))
            await move(broker, B, topic)
        await trio.sleep(1)
        copied = [move.future.log_end for move in broker.partitions.moves._moves.values()]
        assert sum(map(bool, copied)) == at_once


async def test_described_while_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk:
        f_blocks = f_frsize = f_bavail = 1

    monkeypatch.setattr("os.statvfs", lambda _: Disk)
    async with one_broker(paths=(A, B)) as broker:
        await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        response = await answer_of(broker.ask(DescribeLogDirsRequest(topics=None), 5))
        assert isinstance(response, DescribeLogDirsResponse)
        told = [
            (result.log_dir, part.partition_size, part.offset_lag, part.is_future_key)
            for result in response.results
            for topic in result.topics
            for part in topic.partitions
        ]
        size = broker.partitions.leader("t", 0).log.size_bytes
        assert told == [(A, size, 0, False), (B, size, 0, True)]


async def test_aimed_elsewhere_on_the_way() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        assert live(broker, B) == ["t-0-future"]
        assert await move(broker, C) is ErrorCode.NONE
        await settle()
        assert (live(broker, B), live(broker, C)) == ([], ["t-0-future"])
        broker.release_commands()
        await settle()
        assert (home(broker), assigned(broker)) == (C, directory_id(C))
        assert broker.produce("t").error_code == 0


async def test_called_back_on_the_way() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        assert await move(broker, A) is ErrorCode.NONE
        broker.release_commands()
        await settle()
        assert (home(broker), assigned(broker)) == (A, directory_id(A))
        assert (live(broker, A), live(broker, B)) == (["t-0"], [])
        assert broker.produce("t").error_code == 0


async def test_asked_for_twice_it_moves_once() -> None:
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        broker.hold_commands()
        assert [await move(broker, B), await move(broker, B)] == [ErrorCode.NONE] * 2
        assert live(broker, B) == ["t-0-future"]


async def test_a_topic_deleted_on_the_way() -> None:
    async with one_broker(paths=PATHS) as broker:
        topic_id = await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        broker.delete_topic(topic_id)
        await settle()
        assert (live(broker, A), live(broker, B)) == ([], [])
        broker.release_commands()
        await settle()
        broker.create_topic("t", directory=directory_id(B))
        assert broker.produce("t").base_offset == 0
        assert home(broker) == B


async def test_no_leader_no_difference() -> None:
    async with one_broker(paths=PATHS) as broker:
        topic_id = await filled(broker)
        broker.change_leader(topic_id, -1)
        assert await move(broker, B) is ErrorCode.NONE
        await settle()
        assert home(broker) == B
        broker.change_leader(topic_id, NODE_ID)
        assert len(records(broker)) == 6


class TestRefusals:
    async def test_codes(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker)
            assert await move(broker, "/nowhere") is ErrorCode.LOG_DIR_NOT_FOUND
            assert await move(broker, "b") is ErrorCode.LOG_DIR_NOT_FOUND
            assert await move(broker, B, partition=1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert await move(broker, B, "x" * 214) is ErrorCode.INVALID_TOPIC_EXCEPTION
            broker.partitions.places.cordoned = (directory_id(B),)
            assert await move(broker, B) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert home(broker) == A

    async def test_a_replica_of_another_broker(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            topic_id = await filled(broker)
            broker.register(2)
            broker.move_replicas(topic_id, [2])
            assert await move(broker, B) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_while_a_directory_is_offline(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker)
            broker.create_topic("c", directory=directory_id(C))
            await settle()
            broker.file_system.refuse("write", errno.EIO, path_suffix="c-0/00000000000000000000.log")
            broker.produce("c")
            assert await move(broker, C) is ErrorCode.KAFKA_STORAGE_ERROR
            assert await move(broker, A, "c") is ErrorCode.KAFKA_STORAGE_ERROR
            assert await move(broker, B) is ErrorCode.KAFKA_STORAGE_ERROR, "it may lie there already"

    async def test_a_target_that_takes_nothing(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker)
            broker.file_system.refuse("write", errno.EROFS, path_suffix="-future")
            assert await move(broker, B) is ErrorCode.KAFKA_STORAGE_ERROR
            assert list(broker.partitions.places.offline) == [B]
            assert broker.produce("t").error_code == 0


class TestWishes:
    async def test_a_partition_is_made_where_it_was_wanted_before_it_existed(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            assert await move(broker, C) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            broker.create_topic("t", directory=directory_id(A))
            await settle()
            assert (home(broker), assigned(broker)) == (C, directory_id(C))

    async def test_one_that_is_about_to_be_made(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            broker.hold_threads()
            broker.create_topic("t", directory=directory_id(A))
            assert await move(broker, C) is ErrorCode.NONE
            assert home(broker) == C
            broker.release_threads()

    async def test_wishes_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "WANTED_DIRECTORIES_MAX", 2)
        async with one_broker(paths=PATHS) as broker:
            for topic in ("first", "second", "third"):
                await move(broker, C, topic)
            assert list(broker.partitions.places.wanted) == [("second", 0), ("third", 0)]


class TestFailures:
    async def test_of_the_target(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker)
            broker.hold_threads()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(move, broker, B)
                await settle()
                broker.file_system.refuse("write", errno.EIO, path_suffix="0000.log")
                broker.release_threads()
            await settle()
            assert list(broker.partitions.places.offline) == [B]
            assert (home(broker), assigned(broker)) == (A, directory_id(A))
            assert broker.produce("t").error_code == 0

    async def test_of_the_source(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker, path=B)
            broker.hold_commands()
            await move(broker, C)
            await settle()
            broker.file_system.refuse("write", errno.EIO, path_suffix="/b/t-0/00000000000000000000.log")
            leader = broker.partitions.leader("t", 0)
            with pytest.raises(DiskFailure):
                leader.append_own(RecordBatch(some_batch(1)), broker.clock.now_ms())
            await settle()
            assert live(broker, C) == ["t-0-future"], "a later start may need it"
            broker.release_commands()
            await settle()
            assert broker.produce("t").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            image, file_system = broker.image, broker.file_system
        assert image.topics["t"].partitions[0].directory_of(NODE_ID) == directory_id(C)
        async with one_broker(paths=PATHS, offline=(B,), file_system=file_system, image=image) as broker:
            assert (home(broker), live(broker, C)) == (C, ["t-0"])
            broker.change_leader(broker.image.topics["t"].id, NODE_ID)
            assert len(records(broker)) == 6

    async def test_a_full_disk_of_the_metadata_directory_ends_the_move_only(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker, path=B)
            await move(broker, A)
            broker.file_system.refuse("write", errno.ENOSPC, path_suffix="0000.log")
            await settle()
            assert broker.partitions.places.offline == {}
            assert (home(broker), live(broker, A)) == (B, [])
            assert "stays where it is" in broker.lines.getvalue()

    async def test_of_the_first_write_leave_nothing_behind(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker, path=B)
            broker.file_system.refuse("write", errno.ENOSPC, path_suffix="0000.log")
            assert await move(broker, A) is ErrorCode.KAFKA_STORAGE_ERROR
            assert (home(broker), live(broker, A)) == (B, [])

    async def test_damaged_records_stay_where_they_are(self) -> None:
        async with one_broker(paths=PATHS) as broker:
            await filled(broker)
            broker.file_system.open("/a/t-0/00000000000000000000.log").pwrite(b"\xff", 80)
            await move(broker, B)
            await settle()
            assert (home(broker), live(broker, B)) == (A, [])
            assert "t-0 stays where it is" in broker.lines.getvalue()


async def test_what_the_source_has_lost_goes_from_the_copy_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recovery point first: a power cut may leave a part of what is truncated."""
    async with one_broker(paths=PATHS) as broker:
        await filled(broker)
        broker.hold_commands()
        await move(broker, B)
        await settle()
        log = broker.partitions.leader("t", 0).log
        piece = log.read(0, 1)
        assert piece is not None
        for directory in broker.partitions.places.online:
            directory.begin_checkpoint()()
        image, file_system = broker.image, broker.file_system
    assert file_system.read_file("/b/recovery-point-offset-checkpoint") == b"0\n1\nt 0 6\n"
    file_system.open("/a/t-0/00000000000000000000.log").truncate(piece.size_bytes)
    noted: list[bytes] = []
    truncate_to = PartitionLog.truncate_to

    def note(log: PartitionLog, offset: int, *, now_ms: int) -> bool:
        noted.append(file_system.read_file("/b/recovery-point-offset-checkpoint"))
        return truncate_to(log, offset, now_ms=now_ms)

    monkeypatch.setattr(PartitionLog, "truncate_to", note)
    async with one_broker(paths=PATHS, file_system=file_system, image=image) as broker:
        await settle()
        assert home(broker) == B
        assert [offset for offset, _ in records(broker)] == [0, 1]
    assert noted == [b"0\n1\nt 0 2\n"]


async def write_and_move(file_system: MemoryFileSystem, step: int, images: list[MetadataImage]) -> int:
    """What is acknowledged when the power fails at the given step; -1 if it is over before that."""
    acknowledged = 0
    try:
        async with one_broker(paths=(A, B), file_system=file_system) as broker:
            await filled(broker, batches=0, flush_messages="1")

            async def write(count: int) -> None:
                nonlocal acknowledged
                for _ in range(count):
                    answer = await answer_of(broker.ask(produce_request("t", some_batch(1)), 9))
                    acknowledged = answer.responses[0].partition_responses[0].base_offset + 1

            await write(3)
            broker.listeners.append(lambda image, _: images.append(image))
            images.append(broker.image)
            file_system.sync_everything()
            file_system.stop_after = step
            await move(broker, B)
            await write(4)
            await settle()
            return -1
    except* PowerCut:
        pass
    return acknowledged


@pytest.mark.parametrize("is_torn", [False, True])
async def test_a_power_cut_at_any_step_loses_nothing(is_torn: bool) -> None:
    """With an fsync per batch everything acknowledged is there afterwards, where the metadata say."""
    step = 0
    acknowledged = 0
    while acknowledged >= 0:
        step += 1
        file_system = MemoryFileSystem()
        images: list[MetadataImage] = []
        acknowledged = await write_and_move(file_system, step, images)
        file_system.lose_power(Random(step) if is_torn else None)
        async with one_broker(paths=(A, B), file_system=file_system, image=images[-1]) as broker:
            await settle()
            found = [offset for offset, _ in records(broker)]
            assert found == list(range(len(found))), step
            assert len(found) >= acknowledged, step
            assert directory_id(home(broker)) == assigned(broker), step
            folders = live(broker, A) + live(broker, B)
            assert folders == ["t-0"] or (is_torn and sorted(folders) == ["t-0", "t-0-stray"]), step
    assert step > 20
