"""What a client asks of the controller reaches it in an envelope, wherever it is."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import trio
import trio.testing

from broker.apis.table import served
from broker.errors import CloseConnection
from broker.life.channel import ControllerChannel
from broker.network.call import Address, ConnectionState, Listener
from broker.network.dispatch import Dispatcher, PendingRequest
from broker.quotas.desk import ClientQuotas
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.principal import ANONYMOUS, decode_principal
from protocol.schema import Message
from tests.broker.controller.node import ControllerNode

CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
TOPIC, BROKER, LOGGER = 2, 4, 8


class Elsewhere:
    """A channel to another node's controller, which answers when it is told to."""

    is_local = False

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.waiting: list[Callable[[Any], None]] = []
        self.versions: dict[int, tuple[int, int]] | None = None

    def submit(self, request: Message, done: Callable[[Any], None], **_: object) -> None:
        self.asked.append(request)
        self.waiting.append(done)

    def answer(self, answer: Any) -> None:
        self.waiting.pop()(answer)


class Desk:
    """A client of a broker whose controller is elsewhere."""

    def __init__(self) -> None:
        node = ControllerNode()
        node.start()
        self.services = services = node.services
        self.channel = Elsewhere()
        services.channel = cast(ControllerChannel, self.channel)
        services.quotas = ClientQuotas(services.config, services.clock)
        apis = served(on_controller=False, unstable_versions=False)
        self.dispatcher = Dispatcher(services, apis)
        self.connection = ConnectionState(
            1, Listener("PLAINTEXT"), Address("10.0.0.7", 50_000), Address("10.0.0.1", 9092)
        )
        self.frame = b""
        self.outcome: Any = None

    def ask(self, request: Message) -> None:
        version = max(request.versions)
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=77,
            client_id="me",
        ).encode(2 if version in request.flexible else 1)
        self.frame = header + request.encode(version)
        self.outcome = self.dispatcher.start(memoryview(bytearray(self.frame)), self.connection)

    def answered(self, response: type[Message]) -> Any:
        outcome = self.outcome
        parts = outcome.finish() if isinstance(outcome, PendingRequest) else outcome
        part = cast(bytes, parts[0])
        header_version = 1 if max(response.versions) in response.flexible and response.api_key != 18 else 0
        header, position = ResponseHeader.decode_from(part, 4, header_version)
        assert header.correlation_id == 77
        return response.decode_from(part, position, max(response.versions))[0]


@pytest.fixture
async def desk() -> Desk:
    return Desk()


def inside(response: Message, *, correlation_id: int = 77) -> EnvelopeResponse:
    version = max(response.versions)
    header = ResponseHeader(correlation_id=correlation_id).encode(1)
    return EnvelopeResponse(response_data=header + response.encode(version))


class TestRequests:
    async def test_the_bytes_go_there_and_the_answer_comes_back(self, desk: Desk) -> None:
        desk.ask(CREATE)
        (envelope,) = desk.channel.asked
        assert isinstance(envelope, EnvelopeRequest)
        assert envelope.request_data == desk.frame
        assert envelope.client_host_address == bytes([10, 0, 0, 7])
        principal = envelope.request_principal
        assert principal is not None
        assert decode_principal(principal) == ANONYMOUS
        answer = CreateTopicsResponse(throttle_time_ms=1500)
        desk.channel.answer(inside(answer))
        assert desk.answered(CreateTopicsResponse) == answer
        assert desk.connection.deaf_until == pytest.approx(trio.current_time() + 1.5, abs=1)

    async def test_the_controller_did_not_answer(self, desk: Desk) -> None:
        desk.ask(CREATE)
        desk.channel.answer(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        (topic,) = desk.answered(CreateTopicsResponse).topics
        assert (topic.name, topic.error_code) == ("a", ErrorCode.REQUEST_TIMED_OUT)

    async def test_it_does_not_take_our_envelopes(self, desk: Desk) -> None:
        for refused in (
            EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            EnvelopeResponse(response_data=b"\0"),
            EnvelopeResponse(),
        ):
            desk.ask(CREATE)
            desk.channel.answer(refused)
            (topic,) = desk.answered(CreateTopicsResponse).topics
            assert topic.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    async def test_who_asks_in_a_version_that_it_has_lost_begins_anew(self, desk: Desk) -> None:
        desk.ask(CREATE)
        desk.channel.answer(EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        with pytest.raises(CloseConnection):
            desk.answered(CreateTopicsResponse)


class TestSuccession:
    async def test_what_this_node_cannot_decide_any_more_another_one_does(self, desk: Desk) -> None:
        desk.channel.is_local = True
        desk.ask(CREATE)
        assert isinstance(desk.outcome, PendingRequest)
        assert desk.channel.asked == []
        desk.channel.is_local = False
        services = desk.services
        services.controller.deactivate()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(services.controller.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        (envelope,) = desk.channel.asked
        assert isinstance(envelope, EnvelopeRequest)
        assert envelope.request_data == desk.frame
        answer = CreateTopicsResponse()
        desk.channel.answer(inside(answer))
        assert desk.answered(CreateTopicsResponse) == answer

    async def test_what_it_has_decided_stands(self, desk: Desk) -> None:
        desk.channel.is_local = True
        desk.ask(CREATE)
        services = desk.services
        async with trio.open_nursery() as nursery:
            nursery.start_soon(services.controller.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [topic.error_code for topic in desk.answered(CreateTopicsResponse).topics] == [0]
        assert desk.channel.asked == []


class TestConfigs:
    async def test_the_broker_has_its_say_first(self, desk: Desk) -> None:
        def resource(kind: int, name: str, key: str, value: str) -> AlterConfigsResource:
            return AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, config_operation=0, value=value)],
            )

        request = IncrementalAlterConfigsRequest(
            resources=[
                resource(LOGGER, "1", "root", "LOUD"),
                resource(TOPIC, "a", "retention.ms", "1"),
                resource(BROKER, "9", "num.io.threads", "8"),
                resource(TOPIC, "b", "retention.ms", "x"),
            ]
        )
        desk.ask(request)
        (asked,) = desk.channel.asked
        assert isinstance(asked, IncrementalAlterConfigsRequest)
        assert asked.resources == [request.resources[1], request.resources[3]]
        answers = [
            AlterConfigsResourceResponse(resource_type=TOPIC, resource_name="b", error_code=40),
            AlterConfigsResourceResponse(resource_type=TOPIC, resource_name="a"),
        ]
        desk.channel.answer(IncrementalAlterConfigsResponse(responses=answers))
        results = desk.answered(IncrementalAlterConfigsResponse).responses
        assert [(result.resource_name, result.error_code) for result in results] == [
            ("1", ErrorCode.INVALID_CONFIG),
            ("a", ErrorCode.NONE),
            ("9", ErrorCode.INVALID_REQUEST),
            ("b", ErrorCode.INVALID_CONFIG),
        ]


class TestVersions:
    async def test_a_broker_offers_what_it_and_the_controller_know(self, desk: Desk) -> None:
        def ranges() -> dict[int, tuple[int, int]]:
            desk.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"))
            answer = desk.answered(ApiVersionsResponse)
            return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

        everything = ranges()
        assert everything[19] == (2, 7)
        desk.channel.versions = {19: (3, 9), 20: (1, 4), 0: (1, 1)}
        common = ranges()
        assert common[19] == (3, 7)
        assert common[20] == (1, 4)
        assert common[0] == everything[0]
        assert 37 not in common
