"""What the controller does of itself: it misses brokers, and gives leadership back."""

import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.controller.automatic_topics import topic_defaults
from broker.controller.topics import NewTopic, create_topics
from broker.metadata.image import PartitionImage, ResourceType
from protocol.error_codes import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.broker.controller.node import ControllerNode
from tests.broker.controller.other_brokers import OtherBroker


@asynccontextmanager
async def started(settings: Mapping[str, str] | None = None) -> AsyncIterator[ControllerNode]:
    node = ControllerNode(settings)
    node.start()
    async with running(node):
        yield node


@asynccontextmanager
async def running(node: ControllerNode) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        yield
        nursery.cancel_scope.cancel()


async def make(node: ControllerNode, *replicas: int, settings: Mapping[str, str] | None = None) -> None:
    """A topic ``a`` with one partition."""
    wanted = NewTopic("a", assignments=[(0, replicas)], settings=settings or {})
    await node.controller.perform(lambda image: create_topics(image, [wanted], topic_defaults(node.services)))


def fenced(node: ControllerNode, broker_id: int) -> bool:
    return node.image.brokers[broker_id].fenced


def only(node: ControllerNode) -> PartitionImage:
    return node.image.topics["a"].partitions[0]


async def allow_unclean_elections(node: ControllerNode, value: str) -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=ResourceType.TOPIC,
                resource_name="a",
                configs=[AlterableConfig(name="unclean.leader.election.enable", value=value)],
            )
        ]
    )
    answer = await node.ask(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == ErrorCode.NONE


class TestSessions:
    @pytest.mark.acts("broker.session.timeout.ms")
    async def test_a_silent_broker_is_fenced_when_its_session_is_over(
        self, autojump_clock: MockClock
    ) -> None:
        async with started({"broker.session.timeout.ms": "5000"}) as node:
            second = OtherBroker(node, 2)
            await second.come()
            await make(node, 2, 1)
            for _ in range(4):
                await trio.sleep(4)
                await second.beat()
            await trio.sleep(4.9)
            assert not fenced(node, 2)
            await trio.sleep(0.2)
            assert fenced(node, 2)
            assert only(node).leader == 1
            assert "broker 2 is fenced" in node.lines.getvalue()
            assert not (await second.beat()).is_fenced

    async def test_all_silent_ones_are_fenced_one_after_the_other(self, autojump_clock: MockClock) -> None:
        async with started() as node:
            others = [OtherBroker(node, number) for number in (2, 3, 4)]
            for other in others:
                await other.come()
            await make(node, 2, 3, 4)
            await trio.sleep(9.1)
            assert [node.image.brokers[other.id].fenced for other in others] == [True, True, True]
            assert not node.image.brokers[1].fenced
            assert only(node).leader == -1
            assert only(node).eligible_leader_replicas == (4,)

    async def test_after_the_controller_s_own_restart_everybody_has_a_whole_session(
        self, autojump_clock: MockClock
    ) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            await trio.sleep(8)
        node.kill()
        node.start()
        async with running(node):
            await trio.sleep(8)
            assert not fenced(node, 2)
            await trio.sleep(1.1)
            assert fenced(node, 2)

    async def test_what_could_not_be_written_is_tried_again(self, autojump_clock: MockClock) -> None:
        async with started() as node:
            await OtherBroker(node, 2).come()
            await trio.sleep(8)
            node.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
            await trio.sleep(1.1)
            assert not fenced(node, 2)
            await trio.sleep(1.2)
            assert fenced(node, 2)

    async def test_who_may_go_is_missed_all_the_same_until_that_is_written(
        self, autojump_clock: MockClock
    ) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            node.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
            assert (await second.beat(want_shut_down=True)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert not fenced(node, 2)
            await trio.sleep(12)
            assert fenced(node, 2)

    async def test_a_shutdown_whose_beginning_could_not_be_written_begins_again(self) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            await make(node, 2, 1)
            node.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
            assert (await second.beat(want_shut_down=True)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert only(node).leader == 2
            assert not (await second.beat(want_shut_down=True)).should_shut_down
            assert only(node).leader == 1
            assert (await second.beat(want_shut_down=True)).should_shut_down

    async def test_a_pause_of_the_controller_is_nobody_else_s_silence(self, mock_clock: MockClock) -> None:
        async with started() as node:
            await OtherBroker(node, 2).come()
            await wait_all_tasks_blocked()
            mock_clock.jump(60)
            await wait_all_tasks_blocked()
            assert not fenced(node, 2)
            for _ in range(7):
                mock_clock.jump(1)
                await wait_all_tasks_blocked()
            assert not fenced(node, 2)
            for _ in range(2):
                mock_clock.jump(1)
                await wait_all_tasks_blocked()
            assert fenced(node, 2)

    async def test_nobody_takes_the_place_of_a_living_broker(self, autojump_clock: MockClock) -> None:
        async with started() as node:
            second, third = OtherBroker(node, 2), OtherBroker(node, 2)
            await second.come()
            third.incarnation = 100
            assert (await third.register()).error_code == 101
            assert (await OtherBroker(node, 1).register()).error_code == 101
            await trio.sleep(9.1)
            assert (await third.register()).error_code == 0
            assert (await second.beat()).error_code == 77

    async def test_who_was_let_go_may_be_back_at_once(self) -> None:
        async with started() as node:
            second = OtherBroker(node, 2)
            await second.come()
            assert (await second.beat(want_shut_down=True)).should_shut_down
            assert (await second.register()).error_code == 0


class TestBalance:
    async def moved_away(self, node: ControllerNode) -> OtherBroker:
        """A broker that has lost the leadership of what it should lead, and is in sync again."""
        second = OtherBroker(node, 2)
        await second.come()
        await make(node, 2, 1)
        await second.beat(want_fence=True)
        await second.beat()
        own = OtherBroker(node, 1)
        own.epoch = node.image.brokers[1].epoch
        assert only(node).leader == 1
        await own.propose("a", [1, 2])
        assert only(node).isr == (1, 2)
        return second

    @pytest.mark.acts("leader.imbalance.check.interval.seconds", "auto.leader.rebalance.enable")
    @pytest.mark.parametrize(("enabled", "leader"), [("true", 2), ("false", 1)])
    async def test_leadership_goes_back_to_the_preferred_replica(
        self, autojump_clock: MockClock, enabled: str, leader: int
    ) -> None:
        settings = {
            "auto.leader.rebalance.enable": enabled,
            "leader.imbalance.check.interval.seconds": "20",
            "broker.session.timeout.ms": "60000",
        }
        async with started(settings) as node:
            await self.moved_away(node)
            await trio.sleep(19)
            assert only(node).leader == 1
            await trio.sleep(2)
            assert only(node).leader == leader


class TestUncleanElections:
    @pytest.mark.acts("unclean.leader.election.interval.ms")
    @pytest.mark.parametrize(("allowed", "leader"), [("true", 1), ("false", -1)])
    async def test_anybody_leads_what_nobody_could(
        self, autojump_clock: MockClock, allowed: str, leader: int
    ) -> None:
        settings = {"unclean.leader.election.interval.ms": "20000"}
        async with started(settings) as node:
            second = OtherBroker(node, 2)
            await second.come()
            await make(node, 2, 1)
            await second.propose("a", [2])
            await trio.sleep(9.1)
            assert only(node).leader == -1
            await allow_unclean_elections(node, allowed)
            assert only(node).leader == -1
            await trio.sleep(20)
            assert only(node).leader == leader

    async def test_one_that_is_alone_leads_what_others_have_left(self, autojump_clock: MockClock) -> None:
        async with started({"unclean.leader.election.interval.ms": "20000"}) as node:
            second = OtherBroker(node, 2)
            await second.come()
            await make(node, 2, 1)
            await second.propose("a", [2])
            await node.ask(UnregisterBrokerRequest(broker_id=2), UnregisterBrokerResponse, 0)
        node.kill()
        node.start()
        async with running(node):
            assert only(node).leader == -1
            await trio.sleep(50)
            assert only(node).leader == -1
            await allow_unclean_elections(node, "true")
            await trio.sleep(20)
            assert only(node).leader == 1
