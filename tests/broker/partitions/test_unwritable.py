"""A broker whose only disk is full: others lead what they have in sync, until there is room again."""

import errno
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from broker.metadata.image import PartitionImage
from broker.partitions.unwritable import CHECK_SECONDS, ROOM_BYTES
from protocol.error_codes import ErrorCode
from protocol.stored.metadata_records import (
    FenceBrokerRecord,
    PartitionChangeRecord,
)
from protocol.uuids import LOST_DIRECTORY, ZERO_UUID
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.partitions.one_broker import NODE_ID, answer_of, directory_id, produce_request, settle
from tests.broker.partitions.test_fetcher import LEADER, OTHER, Scene, scene

HOME, SPARE = PATHS = ("/a", "/b")
"""The first holds the metadata log, so the broker cannot do without it."""


@pytest.fixture
def clock(autojump_clock: MockClock) -> MockClock:
    return autojump_clock


class FullDisk(Scene):
    """Partition 0 of a topic on this broker, which leads it, and on another one."""

    topic_id: bytes

    def partition(self, topic: str = "t") -> PartitionImage:
        return self.broker.image.topics[topic].partitions[0]

    @property
    def place(self) -> bytes:
        """Where the replica here lies, as far as the controller knows."""
        return self.partition().directory_of(NODE_ID)

    async def produce(self, *, acks: int = 1) -> int:
        answer = await answer_of(self.broker.ask(produce_request("t", acks=acks), 9))
        await settle()
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    @property
    def disk(self) -> MemoryFileSystem:
        return self.broker.file_system

    def give(self, *isr: int, **more: Any) -> None:
        """The in-sync set, as the controller has it, and perhaps more."""
        self.broker.apply(
            PartitionChangeRecord(partition_id=0, topic_id=self.topic_id, isr=list(isr), **more)
        )


@asynccontextmanager
async def full_disk(leader: int = NODE_ID) -> AsyncGenerator[FullDisk]:
    async with scene(paths=PATHS) as plain:
        it = FullDisk(plain.broker, plain.nodes)
        for broker_id in (LEADER, OTHER):
            it.broker.register(broker_id)
        it.topic_id = it.create_topic("t", leader=leader, directory=directory_id(HOME))
        await settle()
        yield it


async def test_who_cannot_write_lets_others_lead(clock: MockClock) -> None:
    async with full_disk() as it:
        assert await it.produce() == 0
        it.disk.fill()
        assert await it.produce() == ErrorCode.KAFKA_STORAGE_ERROR
        after = it.partition()
        assert (after.leader, after.isr, it.place) == (LEADER, (LEADER,), LOST_DIRECTORY)
        assert await it.produce() == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert it.follower("t").leader_id == LEADER
        assert "t-0 is left to its other replicas until it can be written to" in it.broker.lines.getvalue()


async def test_it_comes_back_when_there_is_room(clock: MockClock) -> None:
    async with full_disk() as it:
        it.disk.fill()
        await it.produce()
        it.disk.fill(ROOM_BYTES - 1)
        await trio.sleep(10 * CHECK_SECONDS)
        assert it.place == LOST_DIRECTORY
        it.disk.fill(ROOM_BYTES)
        await trio.sleep(CHECK_SECONDS)
        assert it.place == directory_id(HOME)
        it.give(LEADER, NODE_ID)
        it.change_leader(it.topic_id, NODE_ID)
        await settle()
        assert await it.produce() == 0


async def test_it_comes_back_when_writes_get_on(clock: MockClock) -> None:
    """What the system says of the room may be of no use: some is kept for root, or a quota is over."""
    async with full_disk() as it:
        it.disk.fill()
        await it.produce()
        it.leader.append((it.topic_id, 0), b"a")
        await trio.sleep(3 * CHECK_SECONDS)
        assert it.log("t").log_end == 0
        it.disk.fill(ROOM_BYTES // 2)
        for _ in range(4):
            await trio.sleep(CHECK_SECONDS / 2)
            it.leader.append((it.topic_id, 0), b"a")
        await trio.sleep(CHECK_SECONDS)
        assert it.log("t").log_end == 5
        assert it.place == directory_id(HOME)


async def test_it_does_not_come_back_while_its_writes_fail(clock: MockClock) -> None:
    """A disk that refuses all writes has room, too."""
    async with full_disk() as it:
        for _ in range(1000):
            it.disk.refuse("write", errno.EIO, path_suffix=".log")
        await it.produce()
        assert it.partition().leader == LEADER
        it.leader.append((it.topic_id, 0), b"a")
        await trio.sleep(10 * CHECK_SECONDS)
        assert it.place == LOST_DIRECTORY
        it.disk.refuse_nothing()
        await trio.sleep(2 * CHECK_SECONDS)
        assert it.place == directory_id(HOME)


@pytest.mark.parametrize("isr", [(NODE_ID,), (NODE_ID, LEADER)], ids=["left", "fenced"])
async def test_who_is_alone_goes_on(clock: MockClock, isr: Sequence[int]) -> None:
    async with full_disk() as it:
        it.give(*isr)
        if LEADER in isr:
            it.broker.apply(
                FenceBrokerRecord(id=LEADER, epoch=it.broker.image.brokers[LEADER].epoch),
            )
        it.disk.fill()
        for _ in range(2):
            assert await it.produce() == ErrorCode.KAFKA_STORAGE_ERROR
        assert (it.partition().leader, it.place) == (NODE_ID, directory_id(HOME))
        it.disk.fill(10_000)
        assert await it.produce() == 0


async def test_a_follower_leaves_the_in_sync_set_at_once(clock: MockClock) -> None:
    async with full_disk(LEADER) as it:
        it.disk.fill()
        it.leader.append((it.topic_id, 0), b"a")
        await settle()
        assert (it.partition().leader, it.partition().isr) == (LEADER, (LEADER,))
        it.give(LEADER, NODE_ID)  # Kafka's leaders let it join while nothing more comes
        await trio.sleep(2 * CHECK_SECONDS)
        assert (it.place, it.partition().isr) == (LOST_DIRECTORY, (LEADER, NODE_ID)), "once is enough"
        it.disk.fill(2 * ROOM_BYTES)
        await trio.sleep(2 * CHECK_SECONDS)
        assert it.place == directory_id(HOME)
        assert it.log("t").log_end == 1


async def test_who_is_needed_after_all_leads_again(clock: MockClock) -> None:
    """The other one has left the in-sync set before the controller heard of this."""
    async with full_disk() as it:
        it.broker.hold_commands()
        it.disk.fill()
        assert await it.produce() == ErrorCode.KAFKA_STORAGE_ERROR
        it.give(NODE_ID)
        it.broker.release_commands()
        await settle()
        assert (it.partition().leader, it.place) == (NODE_ID, directory_id(HOME))
        assert await it.produce() == ErrorCode.KAFKA_STORAGE_ERROR
        assert it.partition().leader == NODE_ID
        await trio.sleep(3 * CHECK_SECONDS)
        it.disk.fill(10_000)
        assert await it.produce() == 0


@pytest.mark.parametrize("since", ["this run", "an earlier run"])
async def test_kafka_elects_who_is_needed_when_it_is_told_again(clock: MockClock, since: str) -> None:
    """The first time its controller still goes by where the replica was."""
    async with full_disk() as it:
        if since == "this run":
            it.disk.refuse("write", errno.ENOSPC, path_suffix=".log")
            await it.produce()
        it.broker.hold_commands()
        it.give(NODE_ID, leader=-1, directories=[LOST_DIRECTORY, ZERO_UUID])
        await settle()
        assert it.broker._submitted is not None
        assert len(it.broker._submitted) == 1
        it.broker._submitted.pop()[1]([ErrorCode.NONE])
        it.give(NODE_ID, leader=-1, directories=[directory_id(HOME), ZERO_UUID])
        await trio.sleep(1.5 * CHECK_SECONDS)
        assert len(it.broker._submitted) == 1
        it.broker.release_commands()
        assert (it.partition().leader, it.place) == (NODE_ID, directory_id(HOME))
        await trio.sleep(1.5 * CHECK_SECONDS)
        assert not it.broker.partitions.unwritable._told


async def test_the_controller_hears_of_it_once(clock: MockClock) -> None:
    async with full_disk() as it:
        it.broker.hold_commands()
        it.disk.fill()
        for _ in range(5):
            assert await it.produce() == ErrorCode.KAFKA_STORAGE_ERROR
        assert it.broker._submitted is not None
        assert len(it.broker._submitted) == 1
        it.broker.release_commands()
        assert it.partition().leader == LEADER


@pytest.mark.parametrize("home", PATHS)
async def test_what_cannot_be_made_is_led_by_others(clock: MockClock, home: str) -> None:
    """It is made where there is room, or when there is."""
    async with full_disk() as it:
        if home == HOME:
            it.broker.partitions.places.cordoned = (directory_id(SPARE),)
        for _ in range(5):
            it.disk.refuse("write", errno.ENOSPC, path_suffix="/a/new-0/partition.metadata.tmp")
        it.create_topic("new", leader=NODE_ID, directory=directory_id(HOME))
        await settle()
        assert it.partition("new").leader == LEADER
        it.disk.refuse_nothing()
        await trio.sleep(3 * CHECK_SECONDS)
        assert it.partition("new").directory_of(NODE_ID) == directory_id(home)
        assert it.follower("new").leader_id == LEADER


async def test_a_topic_that_is_deleted_meanwhile_is_forgotten(clock: MockClock) -> None:
    async with full_disk() as it:
        it.disk.fill()
        await it.produce()
        it.broker.delete_topic(it.topic_id)
        await trio.sleep(2 * CHECK_SECONDS)
        assert not it.broker.partitions.unwritable._told


async def test_a_directory_that_can_be_spared_goes_offline(clock: MockClock) -> None:
    async with full_disk() as it:
        it.topic_id = it.create_topic("u", leader=NODE_ID, directory=directory_id(SPARE))
        await settle()
        it.disk.refuse("write", errno.ENOSPC, path_suffix="u-0/00000000000000000000.log")
        assert it.broker.produce("u", acks=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert [directory.path for directory in it.broker.partitions.directories] == [HOME]
        assert it.partition("u").directory_of(NODE_ID) == directory_id(SPARE)
