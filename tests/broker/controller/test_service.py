"""Commands on their way: in order, together, answered after the fsync, and never when it failed."""

import errno
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from broker.controller.automatic_topics import topic_defaults
from broker.controller.decision import Command, Decision, LongDecision
from broker.controller.topics import NewTopic, TopicResult, create_topics
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import MetadataChanges
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import TopicRecord
from storage.errors import DiskFailure
from tests.broker.controller.node import METADATA, ControllerNode, InlineServices


class SlowDisk(InlineServices):
    """Every fsync waits until it is let go."""

    def __init__(self) -> None:
        self.waiting = 0
        self.go = trio.Event()

    async def run_blocking(self, function: Callable[..., Any], *arguments: object) -> Any:
        self.waiting += 1
        await self.go.wait()
        self.go = trio.Event()
        return function(*arguments)


def creation(node: ControllerNode, name: str) -> Command[dict[str, TopicResult]]:
    return lambda image: create_topics(image, [NewTopic(name, 1, 1)], topic_defaults(node.services))


@asynccontextmanager
async def running(node: ControllerNode) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        yield
        nursery.cancel_scope.cancel()


@pytest.fixture
def node() -> ControllerNode:
    started = ControllerNode()
    started.start()
    return started


@pytest.fixture
def slow() -> ControllerNode:
    started = ControllerNode()
    disk = SlowDisk()
    disk.__dict__.update(started.services.__dict__)
    disk.waiting = 0
    started.services = disk
    started.start()
    return started


async def test_a_reply_comes_when_listeners_have_seen_the_image(node: ControllerNode) -> None:
    seen: list[tuple[list[str], list[str], bool]] = []
    node.raft.feed.on_publish(
        lambda image, changes: seen.append(
            (list(image.topics), [topic.name for topic in changes.topics.values()], node.image is image)
        )
    )
    async with running(node):
        reply = await node.controller.perform(creation(node, "a"))
        assert "a" in reply
        assert seen == [(["a"], ["a"], True)]
        await node.controller.perform(creation(node, "b"))
        assert seen[1] == (["a", "b"], ["b"], True)


async def test_commands_that_wait_share_one_fsync_and_see_each_other(slow: ControllerNode) -> None:
    disk = slow.services
    assert isinstance(disk, SlowDisk)
    order: list[str] = []
    seen: list[list[str]] = []
    slow.raft.feed.on_publish(lambda image, _: seen.append(list(image.topics)))
    async with running(slow):
        slow.controller.submit(creation(slow, "a"), lambda _: order.append("a"))
        await trio.testing.wait_all_tasks_blocked()
        slow.controller.submit(creation(slow, "b"), lambda _: order.append("b"))
        slow.controller.submit(creation(slow, "b"), lambda outcome: order.append(repr(outcome["b"])))  # type: ignore[index]
        slow.controller.submit(creation(slow, "c"), lambda _: order.append("c"))
        await trio.testing.wait_all_tasks_blocked()
        assert order == []
        assert slow.image.topics == {}
        assert disk.waiting == 1
        disk.go.set()
        await trio.testing.wait_all_tasks_blocked()
        assert order == ["a"]
        assert disk.waiting == 2
        disk.go.set()
        await trio.testing.wait_all_tasks_blocked()
        assert order == [
            "a",
            "b",
            repr(KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'b' already exists.")),
            "c",
        ]
        assert seen == [["a"], ["a", "b"], ["a", "b", "c"]]


async def test_a_decision_without_records_is_answered_in_its_turn(slow: ControllerNode) -> None:
    disk = slow.services
    assert isinstance(disk, SlowDisk)
    order: list[object] = []

    def count(image: MetadataImage) -> Decision[int]:
        return Decision([], len(image.topics))

    async with running(slow):
        slow.controller.submit(count, order.append)
        await trio.testing.wait_all_tasks_blocked()
        assert order == [0]
        slow.controller.submit(creation(slow, "a"), lambda _: order.append("a"))
        slow.controller.submit(count, order.append)
        await trio.testing.wait_all_tasks_blocked()
        assert order == [0]
        disk.go.set()
        await trio.testing.wait_all_tasks_blocked()
        assert order == [0, "a", 1]


async def test_refusals_reach_who_asked(node: ControllerNode) -> None:
    async with running(node):
        with pytest.raises(KafkaError, match="too much"):
            await node.controller.perform(_refuse)
        await node.controller.perform(creation(node, "a"))


def _refuse(image: MetadataImage) -> Decision[None]:
    raise KafkaError(ErrorCode.POLICY_VIOLATION, "too much")


async def test_a_fault_in_a_command_is_logged_and_the_next_one_goes_on(node: ControllerNode) -> None:
    def fail(image: MetadataImage) -> Decision[None]:
        raise ZeroDivisionError("somewhere")

    async with running(node):
        with pytest.raises(KafkaError) as raised:
            await node.controller.perform(fail)
        assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert "a command of the controller failed" in node.lines.getvalue()
        assert "ZeroDivisionError: somewhere" in node.lines.getvalue()
        await node.controller.perform(creation(node, "a"))


async def test_a_full_disk_refuses_one_command_and_loses_nothing(node: ControllerNode) -> None:
    async with running(node):
        node.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        with pytest.raises(KafkaError) as raised:
            await node.controller.perform(creation(node, "a"))
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert "No space left on device" in node.lines.getvalue()
        await node.controller.perform(creation(node, "b"))
    node.kill()
    assert list(node.start().topics) == ["b"]


async def test_an_fsync_that_lacks_a_descriptor_is_only_late(
    node: ControllerNode, autojump_clock: MockClock
) -> None:
    async with running(node):
        node.file_system.refuse("sync", errno.EMFILE, path_suffix=".log")
        await node.controller.perform(creation(node, "a"))
    assert list(node.image.topics) == ["a"]
    assert "an fsync is late" in node.lines.getvalue()


async def test_after_a_failed_fsync_nothing_is_acknowledged(node: ControllerNode) -> None:
    answered: list[object] = []
    node.controller.submit(creation(node, "a"), answered.append)
    node.file_system.refuse("sync", errno.EIO, path_suffix=".log")
    with pytest.raises(DiskFailure):
        await node.controller.run()
    assert answered == []
    assert node.image.topics == {}


async def test_after_a_failed_fsync_of_a_full_segment_nothing_is_acknowledged() -> None:
    node = ControllerNode({"internal.metadata.log.segment.bytes": "2500"})
    node.start()
    answered: list[object] = []
    for number in range(30):
        node.controller.submit(creation(node, f"t{number}"), answered.append)
    node.file_system.refuse("sync", errno.EIO, path_suffix=".log")
    with pytest.raises(DiskFailure):
        await node.controller.run()
    assert answered == []


class TestAnswers:
    async def test_the_answer_to_a_request(self, node: ControllerNode) -> None:
        async with running(node):
            waiting = node.controller.answer(creation(node, "a"), _code, timeout_ms=1000)
            assert isinstance(waiting, Waiting)
            assert await waiting.wait() is ErrorCode.NONE

    @pytest.mark.parametrize("timeout_ms", [0, -1])
    async def test_no_time_is_not_enough(self, node: ControllerNode, timeout_ms: int) -> None:
        async with running(node):
            answer = node.controller.answer(creation(node, "a"), _code, timeout_ms=timeout_ms)
            assert answer is ErrorCode.REQUEST_TIMED_OUT
            await trio.testing.wait_all_tasks_blocked()
        assert node.image.topics == {}

    async def test_time_that_runs_out_before_the_command_is_begun(
        self, slow: ControllerNode, autojump_clock: trio.testing.MockClock
    ) -> None:
        disk = slow.services
        assert isinstance(disk, SlowDisk)
        async with running(slow):
            first = slow.controller.answer(creation(slow, "a"), _code, timeout_ms=50)
            await trio.testing.wait_all_tasks_blocked()
            second = slow.controller.answer(creation(slow, "b"), _code, timeout_ms=50)
            assert isinstance(first, Waiting)
            assert isinstance(second, Waiting)
            assert first.deadline == second.deadline == trio.current_time() + 0.05
            for waiting in (first, second):
                waiting.expire()
                assert await waiting.wait() is ErrorCode.REQUEST_TIMED_OUT
            disk.go.set()
            await trio.testing.wait_all_tasks_blocked()
        # The first was on its way to the disk already.
        assert list(slow.image.topics) == ["a"]


def _code(outcome: object) -> ErrorCode:
    return outcome.code if isinstance(outcome, KafkaError) else ErrorCode.NONE


async def test_snapshots_are_made_in_passing() -> None:
    node = ControllerNode({"metadata.log.max.record.bytes.between.snapshots": "2000"})
    node.start()
    async with running(node):
        for number in range(20):
            await node.controller.perform(creation(node, f"t{number}"))
        await trio.testing.wait_all_tasks_blocked()
    names = [name for name in node.file_system.list_names(METADATA) if name.endswith("1.checkpoint")]
    assert len(names) >= 2
    node.kill()
    assert len(node.start().topics) == 20


async def test_the_broker_goes_on_without_a_snapshot() -> None:
    node = ControllerNode({"metadata.log.max.record.bytes.between.snapshots": "2000"})
    node.start()
    node.file_system.refuse("write", errno.ENOSPC, path_suffix=".part")
    async with running(node):
        for number in range(40):
            await node.controller.perform(creation(node, f"t{number}"))
            await trio.testing.wait_all_tasks_blocked()
    assert node.lines.getvalue().count("no snapshot of the metadata log could be made") == 1
    names = [name for name in node.file_system.list_names(METADATA) if name.endswith("1.checkpoint")]
    assert names  # the next one
    node.kill()
    assert len(node.start().topics) == 40


async def test_a_fault_in_building_an_answer_is_the_connection_s_affair(node: ControllerNode) -> None:
    def fail(outcome: object) -> int:
        raise ZeroDivisionError("somewhere")

    async with running(node):
        waiting = node.controller.answer(creation(node, "a"), fail, timeout_ms=1000)
        assert isinstance(waiting, Waiting)
        with pytest.raises(ZeroDivisionError):
            await waiting.wait()
        await node.controller.perform(creation(node, "b"))


def test_finalized_features_include_the_one_that_no_record_holds(node: ControllerNode) -> None:
    assert node.raft.feed.finalized_features == {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
        "kraft.version": 1,
    }


async def test_a_long_decision_becomes_several_batches(
    node: ControllerNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.controller.service.RECORDS_PER_BATCH", 3)
    sizes: list[int] = []
    append = node.raft.append

    def noted(records: Sequence[VersionedRecord]) -> tuple[MetadataImage, MetadataChanges]:
        sizes.append(len(records))
        return append(records)

    monkeypatch.setattr(node.raft, "append", noted)
    seen: list[list[str]] = []
    node.raft.feed.on_publish(lambda image, _: seen.append(list(image.topics)))

    def command(image: MetadataImage) -> Decision[str]:
        records = [(TopicRecord(name=name, topic_id=name.encode() * 16), 0) for name in "abcdefg"]
        return LongDecision(records, "done")

    async with running(node):
        assert await node.controller.perform(command) == "done"
    assert sizes == [3, 3, 1]
    assert seen == [list("abc"), list("abcdef"), list("abcdefg")]
    node.kill()
    assert list(node.start().topics) == list("abcdefg")
