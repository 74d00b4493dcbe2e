"""Replicas that follow, where a broker has several log directories: moves, and disks that fail."""

import errno
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from broker.partitions import moves
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from storage.errors import DiskFailure
from storage.partition_log import FlushJob, PartitionLog
from tests.broker.partitions.one_broker import NODE_ID, directory_id, settle
from tests.broker.partitions.test_fetcher import LEADER, OTHER, Scene, same, scene
from tests.storage.builders import World

A, B = PATHS = ("/a", "/b")


@pytest.fixture
def clock(autojump_clock: MockClock) -> MockClock:
    return autojump_clock


async def followed(it: Scene, records: int = 3) -> bytes:
    """A topic whose replica here lies in the first directory."""
    for broker_id in (LEADER, OTHER):
        it.broker.register(broker_id)
    topic_id = it.create_topic("t", directory=directory_id(A))
    for number in range(records):
        it.leader.append((topic_id, 0), b"%d" % number)
    await settle()
    assert it.log("t").log_end == records
    return topic_id


def home(it: Scene) -> str:
    return it.broker.partitions.places.homes["t", 0].path


async def test_a_replica_moves_while_it_follows(clock: MockClock) -> None:
    async with scene(paths=PATHS) as it:
        topic_id = await followed(it)
        follower = it.follower("t")
        before = follower.log
        await it.broker.partitions.moves.move(("t", 0), B)
        await settle()
        assert home(it) == B
        assert it.follower("t") is follower
        assert follower.log is not before
        assert follower.log.high_watermark == 3
        it.leader.append((topic_id, 0), b"behind the move")
        await settle()
        assert same(it.log("t"), it.leader.logs[topic_id, 0])
        assert it.broker.image.topics["t"].partitions[0].directory_of(NODE_ID) == directory_id(B)


async def test_what_comes_while_it_is_copied_is_in_the_copy(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "COPY_BYTES", 100)
    async with scene(paths=PATHS) as it:
        topic_id = await followed(it, 30)
        await it.broker.partitions.moves.move(("t", 0), B)
        for number in range(20):
            it.leader.append((topic_id, 0), b"more %d" % number)
            await trio.lowlevel.checkpoint()
        await trio.sleep(5)
        assert home(it) == B
        assert same(it.log("t"), it.leader.logs[topic_id, 0])


async def test_a_replica_moves_though_something_comes_during_each_fsync(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(paths=PATHS) as it:
        topic_id = await followed(it)
        run_blocking = it.broker.run_blocking

        async def run(function: Callable[..., Any], *arguments: object) -> Any:
            if isinstance(getattr(function, "__self__", None), FlushJob):
                it.leader.append((topic_id, 0), b"more")
                await trio.sleep(0.1)
            return await run_blocking(function, *arguments)

        monkeypatch.setattr(it.broker, "run_blocking", run)
        await it.broker.partitions.moves.move(("t", 0), B)
        await trio.sleep(10)
        assert home(it) == B
        assert same(it.log("t"), it.leader.logs[topic_id, 0])


@pytest.mark.parametrize("refused", [None, "before the cut", "behind the cut", "behind the move"])
async def test_a_copy_follows_what_is_cut(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch, refused: str | None
) -> None:
    """Also if a checkpoint cannot be written at first, because descriptors are short for a moment."""
    monkeypatch.setattr(moves, "COPY_BYTES", 100)
    async with scene(paths=PATHS) as it:
        topic_id = await followed(it, 30)
        other = it.nodes.leaders[OTHER]
        for number in range(10):
            other.append((topic_id, 0), b"%d" % number)
        for number in range(40):
            other.append((topic_id, 0), b"other %d" % number, epoch=1)
        it.broker.hold_commands()
        await it.broker.partitions.moves.move(("t", 0), B)
        future: PartitionLog | None = None
        while future is None or future.log_end < 30:
            await trio.sleep(0.1)
            future = it.broker.partitions.places.at(B).future_log("t", 0)
        assert home(it) == A, "all is copied, and the controller has yet to say yes"
        if refused is not None:
            it.broker.file_system.refuse(
                "open",
                errno.EMFILE,
                path_suffix="/b/recovery-point-offset-checkpoint.tmp",
                after=["before the cut", "behind the cut", "behind the move"].index(refused),
            )
        it.change_leader(topic_id, OTHER)
        await trio.sleep(1)
        assert same(it.log("t"), other.logs[topic_id, 0])
        it.broker.release_commands()
        await trio.sleep(5)
        assert not it.broker.file_system.refuses
        assert home(it) == B
        assert same(it.log("t"), other.logs[topic_id, 0])


@pytest.mark.parametrize("batches_at_once", [1, 100])
async def test_what_comes_anew_where_a_log_was_cut_while_it_moved_is_not_clean(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch, batches_at_once: int
) -> None:
    async with scene(paths=PATHS) as it:
        topic_id = await followed(it, 30)
        places = it.broker.partitions.places
        places.at(A).note_cleaned("t", 0, 25)
        if batches_at_once == 1:  # then the copy has not come so far before the cut
            monkeypatch.setattr(moves, "COPY_BYTES", 100)
        other = it.nodes.leaders[OTHER]
        for number in range(10):
            other.append((topic_id, 0), b"%d" % number)
        for number in range(40):
            other.append((topic_id, 0), b"other %d" % number, epoch=1)
        it.broker.hold_commands()
        await it.broker.partitions.moves.move(("t", 0), B)
        await settle()
        it.change_leader(topic_id, OTHER)
        await trio.sleep(1)
        it.broker.release_commands()
        await trio.sleep(5)
        assert home(it) == B
        assert same(it.log("t"), other.logs[topic_id, 0])
        assert places.at(B).cleaner_offset("t", 0) == 10


async def test_a_log_that_moves_while_it_is_about_to_be_cut_is_cut_where_it_is_then(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(paths=PATHS) as it:
        topic_id = await followed(it)
        run_blocking = it.broker.run_blocking
        may_write = trio.Event()

        async def run(function: Callable[..., Any], *arguments: object) -> Any:
            if it.follower("t").is_busy:
                await may_write.wait()
            return await run_blocking(function, *arguments)

        monkeypatch.setattr(it.broker, "run_blocking", run)
        it.broker.hold_commands()
        await it.broker.partitions.moves.move(("t", 0), B)
        await settle()
        it.leader.logs[topic_id, 0] = World().create()
        it.leader.append((topic_id, 0), b"0")
        it.leader.append((topic_id, 0), b"another", epoch=1)
        it.change_leader(topic_id, LEADER)
        await settle()
        assert it.follower("t").is_busy
        it.broker.release_commands()
        await settle()
        assert home(it) == B
        may_write.set()
        await trio.sleep(5)
        assert same(it.log("t"), it.leader.logs[topic_id, 0])


async def test_a_disk_that_fails_takes_what_follows_on_it_offline(clock: MockClock) -> None:
    async with scene(paths=PATHS) as it:
        topic_id = it.create_topic("t", directory=directory_id(B))
        await settle()
        follower = it.follower("t")
        it.broker.file_system.refuse("write", errno.EIO, path_suffix=".log")
        it.leader.append((topic_id, 0), b"a")
        await settle()
        assert follower.ended is not None
        assert [directory.path for directory in it.broker.partitions.directories] == [A]
        with pytest.raises(KafkaError) as refused:
            it.follower("t")
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert it.leader.closed == 1
        it.change_leader(topic_id, LEADER)
        await settle()
        assert not it.broker.partitions.open_followers


async def test_a_disk_that_fails_while_a_log_is_cut_goes_offline(clock: MockClock) -> None:
    async with scene(paths=PATHS) as it:
        topic_id = it.create_topic("t", directory=directory_id(B))
        for number in range(3):
            it.leader.append((topic_id, 0), b"%d" % number)
        await settle()
        it.nodes.leaders[OTHER].logs[topic_id, 0].assign_leader_epoch(1)
        it.broker.file_system.refuse("truncate", errno.EIO, path_suffix=".log")
        it.change_leader(topic_id, OTHER)
        await settle()
        assert [directory.path for directory in it.broker.partitions.directories] == [A]


async def test_the_last_disk_that_fails_while_a_log_is_cut_ends_the_broker(clock: MockClock) -> None:
    with pytest.RaisesGroup(DiskFailure, flatten_subgroups=True):
        async with scene() as it:
            topic_id = it.create_topic("t")
            for number in range(3):
                it.leader.append((topic_id, 0), b"%d" % number)
            await settle()
            it.nodes.leaders[OTHER].logs[topic_id, 0].assign_leader_epoch(1)
            it.broker.file_system.refuse("truncate", errno.EIO, path_suffix=".log")
            it.change_leader(topic_id, OTHER)
            await trio.sleep(1)
