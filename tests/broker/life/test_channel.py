"""How a broker asks the active controller, which may be anywhere."""

from typing import Any

import pytest
import trio
import trio.testing

from broker.life.channel import ControllerChannel, says_not_controller
from broker.network.call import Address
from broker.network.node_client import NodeUnreachable, warn_of_controller
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.envelope import EnvelopeResponse
from protocol.schema import Message
from tests.broker.controller.node import ControllerNode


class Quorum:
    """Says where the controller is."""

    def __init__(self) -> None:
        self.is_leader = False
        self.address: Address | None = Address("127.0.0.1", 9093)

    def controller_address(self) -> Address | None:
        return self.address


class OtherController:
    """Stands in for connections to another node: answers what it was told to."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked = 0
        self.api_versions = {19: (2, 6)}
        self.requests: list[Any] = []

    async def connect(self, *, timeout_seconds: float) -> None:
        pass

    def highest_version(self, request: type[Message]) -> int:
        return self.api_versions[request.api_key][1]

    async def ask(self, request: Any, *, timeout_seconds: float) -> Any:
        self.asked += 1
        self.requests.append(request)
        if not self.answers:
            await trio.sleep(timeout_seconds)
            raise NodeUnreachable("it does not answer")
        answer = self.answers.pop(0)
        if isinstance(answer, NodeUnreachable):
            raise answer
        return answer

    def close(self) -> None:
        pass


@pytest.fixture
def node() -> ControllerNode:
    started = ControllerNode()
    started.start()
    return started


@pytest.fixture
def quorum(node: ControllerNode) -> Quorum:
    quorum = Quorum()
    node.services.quorum = quorum  # type: ignore[assignment]
    return quorum


def request_of(node: ControllerNode, epoch: int | None = None) -> AllocateProducerIdsRequest:
    broker = node.image.brokers[1]
    return AllocateProducerIdsRequest(broker_id=1, broker_epoch=broker.epoch if epoch is None else epoch)


NOT_CONTROLLER = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
FROM_THERE = AllocateProducerIdsResponse(producer_id_start=5000, producer_id_len=1000)


class TestHere:
    async def test_the_handler_is_called_without_a_task(
        self, node: ControllerNode, nursery: trio.Nursery
    ) -> None:
        nursery.start_soon(node.controller.run)
        answer = await node.services.channel.ask(request_of(node))
        assert answer == AllocateProducerIdsResponse(producer_id_len=1000)
        given: list[Any] = []
        node.services.channel.submit(request_of(node), given.append)
        await trio.testing.wait_all_tasks_blocked()
        assert given == [AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=1000)]

    async def test_a_refusal_is_an_answer(self, node: ControllerNode, nursery: trio.Nursery) -> None:
        nursery.start_soon(node.controller.run)
        answer = await node.services.channel.ask(request_of(node, epoch=0))
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH

    async def test_who_does_not_begin_in_time_does_not_begin(
        self, node: ControllerNode, autojump_clock: trio.testing.MockClock
    ) -> None:
        with pytest.raises(KafkaError) as raised:
            await node.services.channel.ask(request_of(node), timeout_seconds=3)
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() == 3


class TestThere:
    @pytest.fixture
    def other(self) -> OtherController:
        return OtherController()

    @pytest.fixture
    def channel(
        self, node: ControllerNode, quorum: Quorum, other: OtherController, nursery: trio.Nursery
    ) -> ControllerChannel:
        channel = ControllerChannel(node.services, nursery.start_soon)
        channel._new_client = lambda: other  # type: ignore[method-assign, assignment, return-value]
        return channel

    async def test_that_it_cannot_be_asked_is_told_once(
        self,
        node: ControllerNode,
        quorum: Quorum,
        channel: ControllerChannel,
        other: OtherController,
        autojump_clock: trio.testing.MockClock,
    ) -> None:
        """Also if somebody else finds it in another way, as does who copies the metadata."""

        def is_away() -> bool:
            return channel.is_away

        address = quorum.address
        assert address is not None
        assert not is_away()
        other.answers = [NodeUnreachable("127.0.0.1:9093: Connection refused")] * 100
        with pytest.raises(KafkaError):
            await channel.ask(request_of(node), timeout_seconds=5)
        assert is_away()
        warn_of_controller(node.services.log, address, NodeUnreachable("it has closed the connection"))
        quorum.address = None
        with pytest.raises(KafkaError):
            await channel.ask(request_of(node), timeout_seconds=5)
        assert is_away()
        assert node.lines.lines == [
            "WARN  the controller at 127.0.0.1:9093 cannot be asked: Connection refused"
        ]
        quorum.address = address
        other.answers = []  # time is over before it answers
        with pytest.raises(KafkaError):
            await channel.ask(request_of(node), timeout_seconds=1)
        assert is_away()
        other.answers = [FROM_THERE]
        await channel.ask(request_of(node))
        assert not is_away()
        with pytest.raises(KafkaError):
            await channel.ask(request_of(node), timeout_seconds=1)
        assert not is_away()
        quorum.address, quorum.is_leader = None, True
        assert not is_away()

    async def test_it_is_asked_again_until_it_is_found(
        self,
        node: ControllerNode,
        channel: ControllerChannel,
        other: OtherController,
        autojump_clock: trio.testing.MockClock,
    ) -> None:
        other.answers = [NOT_CONTROLLER, NOT_CONTROLLER, FROM_THERE]
        assert await channel.ask(request_of(node)) is FROM_THERE
        assert trio.current_time() == pytest.approx(0.15)
        other.answers = [NOT_CONTROLLER] * 100
        with pytest.raises(KafkaError):
            await channel.ask(request_of(node), timeout_seconds=5)

    @pytest.mark.acts("controller.socket.timeout.ms")
    async def test_one_that_hangs_is_asked_again(
        self,
        quorum: Quorum,
        other: OtherController,
        nursery: trio.Nursery,
        autojump_clock: trio.testing.MockClock,
    ) -> None:
        node = ControllerNode({"controller.socket.timeout.ms": "7000"})
        node.start()
        node.services.quorum = quorum  # type: ignore[assignment]
        channel = ControllerChannel(node.services, nursery.start_soon)
        channel._new_client = lambda: other  # type: ignore[method-assign, assignment, return-value]
        with pytest.raises(KafkaError):
            await channel.ask(request_of(node), timeout_seconds=20)
        assert other.asked == 3
        assert trio.current_time() == 20

    async def test_who_waits_for_an_old_one_asks_the_new_one(
        self,
        node: ControllerNode,
        quorum: Quorum,
        channel: ControllerChannel,
        other: OtherController,
        autojump_clock: trio.testing.MockClock,
    ) -> None:
        given: list[Any] = []
        channel.submit(request_of(node), given.append)
        await trio.testing.wait_all_tasks_blocked()
        other.answers = [FROM_THERE]
        before = quorum.address
        for address in (before, None, before):  # it may still answer, and must not do it twice
            quorum.address = address
            channel.controller_moved()
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert other.asked == 1
        quorum.address = Address("127.0.0.1", 9094)
        channel.controller_moved()
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert given == [FROM_THERE]

    async def test_what_is_done_for_a_client_goes_in_its_name(
        self, node: ControllerNode, channel: ControllerChannel, other: OtherController
    ) -> None:
        client = node.call(ApiKey.METADATA, 12)
        made = CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_message=None)])
        inside = ResponseHeader(correlation_id=client.correlation_id).encode(1) + made.encode(6)
        other.answers = [
            EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER),
            EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR),
            EnvelopeResponse(response_data=inside),
        ]
        request = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
        answer = await channel.ask(request, client=client)
        assert [topic.name for topic in answer.topics] == ["a"]
        envelope = other.requests[-1]
        assert envelope.client_host_address == bytes([10, 0, 0, 7])
        header, position = RequestHeader.decode_from(envelope.request_data, 0, 2)
        assert (header.request_api_key, header.request_api_version, header.client_id) == (19, 6, "test")
        assert CreateTopicsRequest.decode_from(envelope.request_data, position, 6)[0] == request

    async def test_this_node_may_become_the_controller(
        self,
        node: ControllerNode,
        quorum: Quorum,
        channel: ControllerChannel,
        nursery: trio.Nursery,
        autojump_clock: trio.testing.MockClock,
    ) -> None:
        nursery.start_soon(node.controller.run)
        given: list[Any] = []
        channel.submit(request_of(node), given.append)
        await trio.testing.wait_all_tasks_blocked()
        quorum.is_leader = True
        channel.controller_moved()
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert [answer.producer_id_start for answer in given] == [0]


def test_each_topic_may_say_that_the_controller_is_elsewhere() -> None:
    topic = CreatableTopicResult(name="a", error_code=ErrorCode.NOT_CONTROLLER)
    assert says_not_controller(CreateTopicsResponse(topics=[topic]))
    assert says_not_controller(NOT_CONTROLLER)
    assert not says_not_controller(FROM_THERE)
