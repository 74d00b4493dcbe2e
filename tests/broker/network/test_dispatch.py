"""From bytes to bytes, with handlers of the test's own in place of the real ones."""

import io
import struct
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.apis.table import APIS
from broker.errors import CloseConnection
from broker.logs import Log
from broker.network.call import Address, Call, ConnectionState, Listener
from broker.network.connection import Connection
from broker.network.dispatch import Dispatcher, PendingRequest
from broker.network.sending import Part
from broker.network.waiting import NotYet, Waiting
from broker.services import Services
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import EncodeError, KafkaError
from protocol.headers import RequestHeader
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.schema import Message
from storage.errors import DiskFailure, OutOfOrderSequence
from storage.file_range import FileRange
from storage.memory_filesystem import MemoryFileSystem
from tests.broker.network.stub_dispatch import Served, framed

Handler = Callable[[Any, Call], object]


class Desk:
    """A dispatcher, and the handlers that a test puts behind it."""

    def __init__(self) -> None:
        self.output = io.StringIO()
        self.dispatcher = self.dispatcher_with(SimpleNamespace(is_active=False))
        self.connection = ConnectionState(
            7, Listener("PLAINTEXT"), Address("10.0.0.7", 4711), Address("10.0.0.1", 9092)
        )
        self.calls: list[Call] = []

    def dispatcher_with(self, quotas: object) -> Dispatcher:
        """A dispatcher in a broker that has no more than it needs."""
        services = SimpleNamespace(
            clock=SimpleNamespace(now_ms=lambda: 1_700_000_000_000),
            log=Log(self.output),
            quotas=quotas,
            channel=SimpleNamespace(is_local=True),
        )
        return Dispatcher(cast(Services, services), APIS.values())

    def put(self, module_name: str, handler: Handler, **more: object) -> None:
        """Let ``handler`` answer for the module of this name."""
        module = ModuleType(f"broker.apis.{module_name}")

        def handle(request: Message, call: Call) -> object:
            self.calls.append(call)
            return handler(request, call)

        vars(module).update(handle=handle, **more)
        sys.modules[module.__name__] = module

    def start(self, request: Message, version: int, **header: Any) -> list[Part] | PendingRequest | NotYet:
        return self.dispatcher.start(framed_request(request, version, **header), self.connection)

    def ask(self, request: Message, version: int, **header: Any) -> bytes:
        parts = self.start(request, version, **header)
        assert isinstance(parts, list)
        return joined(parts)


@pytest.fixture
def desk() -> Iterator[Desk]:
    before = {name: module for name, module in sys.modules.items() if name.startswith("broker.apis.")}
    yield Desk()
    for name in [name for name in sys.modules if name.startswith("broker.apis.")]:
        del sys.modules[name]
    sys.modules.update(before)


def framed_request(
    request: Message, version: int, *, correlation_id: int = 5, client_id: str | None = "me"
) -> memoryview:
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    header_version = 2 if version in request.flexible else 1
    return memoryview(bytearray(header.encode(header_version) + request.encode(version)))


def joined(parts: list[Part]) -> bytes:
    return b"".join(part.read() if isinstance(part, FileRange) else bytes(part) for part in parts)


def opened(answer: bytes, *, header_bytes: int = 4) -> tuple[int, bytes]:
    """Correlation id and body of a framed answer."""
    size, correlation_id = struct.unpack_from(">ii", answer)
    assert size == len(answer) - 4
    return correlation_id, answer[4 + header_bytes :]


def test_a_request_reaches_its_handler_and_the_answer_is_framed(desk: Desk) -> None:
    seen = []

    def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        seen.append(request)
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)

    desk.put("heartbeat", handle)
    request = HeartbeatRequest(group_id="g", generation_id=4, member_id="m")
    answer = desk.ask(request, 2, correlation_id=-9, client_id="tester")
    assert opened(answer) == (-9, HeartbeatResponse(error_code=25).encode(2))
    assert seen == [request]
    (call,) = desk.calls
    assert call.header == (ApiKey.HEARTBEAT, 2, -9, "tester")
    assert (call.version, call.client_id, call.received_ms) == (2, "tester", 1_700_000_000_000)
    assert (str(call.peer), call.listener.name, call.local_address.port) == (
        "10.0.0.7:4711",
        "PLAINTEXT",
        9092,
    )


def test_flexible_versions_have_flexible_headers(desk: Desk) -> None:
    desk.put("heartbeat", lambda request, call: HeartbeatResponse())
    answer = desk.ask(HeartbeatRequest(group_id="g"), 4, correlation_id=3)
    assert answer[8] == 0
    assert opened(answer, header_bytes=5) == (3, HeartbeatResponse().encode(4))


def test_the_answer_of_api_versions_never_has_a_flexible_header(desk: Desk) -> None:
    desk.put("api_versions", lambda request, call: ApiVersionsResponse())
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert opened(desk.ask(request, 4)) == (5, ApiVersionsResponse().encode(4))


def test_a_handler_may_give_encoded_bytes(desk: Desk) -> None:
    desk.put("metadata", lambda request, call: b"encoded before")
    assert opened(desk.ask(MetadataRequest(), 12), header_bytes=5) == (5, b"encoded before")


def test_a_request_may_have_no_answer(desk: Desk) -> None:
    desk.put("produce", lambda request, call: None)
    assert desk.start(ProduceRequest(acks=0), 9) == []


def test_record_ranges_stay_what_they_are_and_count(desk: Desk) -> None:
    file = MemoryFileSystem().open("log", create=True)
    file.pwrite(b"0123456789", 0)
    partition = PartitionData(partition_index=0, records=FileRange(file, 2, 5, 0))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    desk.put("fetch", lambda request, call: response)
    parts = desk.start(FetchRequest(), 11)
    assert isinstance(parts, list)
    assert sum(isinstance(part, FileRange) for part in parts) == 1
    _, body = opened(joined(parts))
    assert bytes(FetchResponse.decode(body, 11).responses[0].partitions[0].records or b"") == b"23456"


def test_bytes_behind_a_body_are_ignored(desk: Desk) -> None:
    desk.put("heartbeat", lambda request, call: HeartbeatResponse())
    frame = bytearray(framed_request(HeartbeatRequest(group_id="g"), 3)) + b"more"
    assert desk.dispatcher.start(memoryview(frame), desk.connection)


def test_a_client_may_have_no_name(desk: Desk) -> None:
    desk.put("heartbeat", lambda request, call: HeartbeatResponse())
    desk.ask(HeartbeatRequest(), 3, client_id=None)
    assert desk.calls[0].client_id is None


def test_a_request_that_cannot_be_handled_yet_is_started_again(desk: Desk) -> None:
    outcomes: list[object] = [NotYet(Waiting()), HeartbeatResponse()]

    def handle(request: HeartbeatRequest, call: Call) -> object:
        outcome = outcomes.pop(0)
        if isinstance(outcome, NotYet):
            raise outcome
        return outcome

    desk.put("heartbeat", handle)
    assert isinstance(desk.start(HeartbeatRequest(group_id="g"), 3), NotYet)
    assert opened(desk.ask(HeartbeatRequest(group_id="g"), 3)) == (5, HeartbeatResponse().encode(3))
    assert desk.output.getvalue() == ""


# What cannot be answered.


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (struct.pack(">hhih", 999, 0, 1, -1), "API key 999 is not served on PLAINTEXT"),
        (struct.pack(">hhih", -1, 0, 1, -1), "API key -1 is not served"),
        (struct.pack(">hhih", 4, 0, 1, -1), "API key 4 is not served"),
        (struct.pack(">hhih", ApiKey.HEARTBEAT, 5, 1, -1), "Heartbeat has no version 5"),
        (struct.pack(">hhih", ApiKey.HEARTBEAT, -1, 1, -1), "Heartbeat has no version -1"),
        (struct.pack(">hhih", ApiKey.PRODUCE, 2, 1, -1), "Produce has no version 2"),
        (b"", "cannot be read"),
        (b"\x00", "cannot be read"),
        (struct.pack(">hhi", ApiKey.HEARTBEAT, 0, 1), "cannot be read"),
        (struct.pack(">hhih", ApiKey.HEARTBEAT, 0, 1, 20), "cannot be read"),
        (struct.pack(">hhih", ApiKey.HEARTBEAT, 0, 1, -1) + b"\x00", "cannot be read"),
        (struct.pack(">hhih", ApiKey.HEARTBEAT, 0, 1, -1) + b"\xff\xff", "cannot be read"),
    ],
)
def test_what_cannot_be_understood_closes(desk: Desk, start: bytes, reason: str) -> None:
    desk.put("heartbeat", lambda request, call: HeartbeatResponse())
    with pytest.raises(CloseConnection) as closing:
        desk.dispatcher.start(memoryview(bytearray(start)), desk.connection)
    assert closing.value.reason is not None
    assert reason in closing.value.reason
    assert desk.calls == []


def test_every_truncation_closes(desk: Desk) -> None:
    desk.put("heartbeat", lambda request, call: HeartbeatResponse())
    frame = framed_request(HeartbeatRequest(group_id="group", member_id="member"), 4)
    for size in range(len(frame)):
        with pytest.raises(CloseConnection):
            desk.dispatcher.start(frame[:size], desk.connection)
    assert desk.calls == []


@pytest.mark.parametrize("version", [6, 100, 32_767, -1, -32_768])
def test_an_unknown_version_of_api_versions_is_told_the_known_ones(desk: Desk, version: int) -> None:
    desk.put("api_versions", lambda request, call: ApiVersionsResponse())
    frame = bytearray(struct.pack(">hhih", ApiKey.API_VERSIONS, version, 77, 2) + b"me\x00whatever")
    parts = desk.dispatcher.start(memoryview(frame), desk.connection)
    assert isinstance(parts, list)
    correlation_id, body = opened(joined(parts))
    response, end = ApiVersionsResponse.decode_from(body, 0, 0)
    assert (correlation_id, end) == (77, len(body))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.api_keys == [ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=5)]
    assert desk.calls == []


def test_even_that_needs_a_header(desk: Desk) -> None:
    desk.put("api_versions", lambda request, call: ApiVersionsResponse())
    frame = bytearray(struct.pack(">hhi", ApiKey.API_VERSIONS, 99, 77))
    with pytest.raises(CloseConnection):
        desk.dispatcher.start(memoryview(frame), desk.connection)


# Waiting.


def test_a_request_that_waits_has_its_place(desk: Desk) -> None:
    waiting: Waiting[HeartbeatResponse] = Waiting()
    desk.put("heartbeat", lambda request, call: waiting)
    pending = desk.start(HeartbeatRequest(group_id="g"), 3)
    assert isinstance(pending, PendingRequest)
    assert pending.waiting is waiting
    assert not pending.may_overlap
    waiting.answer(HeartbeatResponse(throttle_time_ms=8))
    assert opened(joined(pending.finish())) == (5, HeartbeatResponse(throttle_time_ms=8).encode(3))


def test_what_is_answered_already_does_not_wait(desk: Desk) -> None:
    waiting: Waiting[HeartbeatResponse] = Waiting()
    waiting.answer(HeartbeatResponse())
    desk.put("heartbeat", lambda request, call: waiting)
    assert opened(desk.ask(HeartbeatRequest(), 3)) == (5, HeartbeatResponse().encode(3))


def test_a_late_failure_is_answered_like_an_early_one(desk: Desk) -> None:
    waiting: Waiting[HeartbeatResponse] = Waiting()
    desk.put("heartbeat", lambda request, call: waiting)
    pending = desk.start(HeartbeatRequest(), 3)
    assert isinstance(pending, PendingRequest)
    waiting.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
    _, body = opened(joined(pending.finish()))
    assert HeartbeatResponse.decode(body, 3).error_code == ErrorCode.NOT_COORDINATOR


def test_a_late_failure_may_close(desk: Desk) -> None:
    waiting: Waiting[None] = Waiting()
    desk.put("produce", lambda request, call: waiting)
    pending = desk.start(ProduceRequest(acks=0), 9)
    assert isinstance(pending, PendingRequest)
    assert pending.may_overlap
    waiting.fail(CloseConnection("acks=0"))
    with pytest.raises(CloseConnection, match="acks=0"):
        pending.finish()


def test_only_some_requests_may_overlap(desk: Desk) -> None:
    may_overlap = desk.dispatcher.may_overlap
    assert may_overlap(framed_request(ProduceRequest(), 9))
    assert not may_overlap(framed_request(FetchRequest(), 11))
    assert not may_overlap(memoryview(b""))
    assert not may_overlap(memoryview(b"\x00"))
    assert not may_overlap(memoryview(struct.pack(">hh", 999, 0)))


# Failures of handlers.


def failing(error: Exception) -> Handler:
    def handle(request: Message, call: Call) -> object:
        raise error

    return handle


def test_an_unexpected_error_is_an_answer_and_one_traceback(desk: Desk) -> None:
    desk.put("heartbeat", failing(ZeroDivisionError("a mistake")))
    _, body = opened(desk.ask(HeartbeatRequest(), 3))
    assert HeartbeatResponse.decode(body, 3).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert desk.output.getvalue().count("Traceback") == 1
    assert "Heartbeat version 3 from 10.0.0.7:4711 (PLAINTEXT) failed" in desk.output.getvalue()


def test_an_error_with_a_code_is_an_answer_without_a_word_in_the_log(desk: Desk) -> None:
    desk.put("describe_cluster", failing(KafkaError(ErrorCode.INVALID_REQUEST, "ask again")))
    _, body = opened(desk.ask(DescribeClusterRequest(), 1), header_bytes=5)
    response = DescribeClusterResponse.decode(body, 1)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, "ask again")
    assert desk.output.getvalue() == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DiskFailure("/log", "write", OSError(28, "No space left on device")), ErrorCode.KAFKA_STORAGE_ERROR),
        (OutOfOrderSequence(1, 0, 7, 3), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_an_error_of_storage_has_its_code_and_a_line(desk: Desk, error: Exception, code: ErrorCode) -> None:
    desk.put("heartbeat", failing(error))
    _, body = opened(desk.ask(HeartbeatRequest(), 3))
    assert HeartbeatResponse.decode(body, 3).error_code == code
    assert len(desk.output.getvalue().splitlines()) == 1


def test_a_module_knows_where_its_errors_belong(desk: Desk) -> None:
    seen = []

    def error_response(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
        seen.append((request.timeout_ms, code))
        return ProduceResponse(throttle_time_ms=99)

    desk.put("produce", failing(ValueError()), error_response=error_response)
    _, body = opened(desk.ask(ProduceRequest(acks=1, timeout_ms=123), 8))
    assert ProduceResponse.decode(body, 8).throttle_time_ms == 99
    assert seen == [(123, ErrorCode.UNKNOWN_SERVER_ERROR)]


def test_a_module_may_know_that_its_error_has_no_answer(desk: Desk) -> None:
    desk.put("produce", failing(ValueError()), error_response=lambda request, code: None)
    with pytest.raises(CloseConnection):
        desk.start(ProduceRequest(acks=0), 8)


def test_where_the_answer_cannot_say_it_the_connection_is_closed(desk: Desk) -> None:
    desk.put("create_topics", failing(ValueError("a mistake")))
    with pytest.raises(CloseConnection, match="UNKNOWN_SERVER_ERROR"):
        desk.start(CreateTopicsRequest(), 5)
    assert desk.output.getvalue().count("Traceback") == 1


def test_an_answer_that_its_version_cannot_carry_is_our_mistake(desk: Desk) -> None:
    answer = HeartbeatResponse(error_code=cast(int, "not a number"))
    desk.put("heartbeat", lambda request, call: answer)
    _, body = opened(desk.ask(HeartbeatRequest(), 3))
    assert HeartbeatResponse.decode(body, 3).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert EncodeError.__name__ in desk.output.getvalue()


def test_a_handler_may_close(desk: Desk) -> None:
    desk.put("produce", failing(CloseConnection("acks=0 and a bad batch")))
    with pytest.raises(CloseConnection, match="acks=0 and a bad batch"):
        desk.start(ProduceRequest(acks=0), 9)


def test_code_that_cannot_be_loaded_closes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "broker.apis.heartbeat", cast(ModuleType, None))
    with pytest.raises(CloseConnection, match="Heartbeat cannot be served"):
        desk.start(HeartbeatRequest(), 3)
    assert desk.output.getvalue().count("Traceback") == 1


def test_every_api_has_the_messages_that_its_line_in_the_table_says() -> None:
    for api in APIS.values():
        name = "".join(word.capitalize() for word in api.module.split("_"))
        messages = import_module(f"protocol.messages.{api.module}")
        for message in (getattr(messages, f"{name}Request"), getattr(messages, f"{name}Response")):
            assert message.api_key == api.key
            assert api.first in message.versions
            assert api.last in message.versions


async def test_a_connection_lives_through_an_unknown_version_and_ends_with_an_unknown_api(desk: Desk) -> None:
    waiting: Waiting[HeartbeatResponse] = Waiting()
    desk.put("api_versions", lambda request, call: ApiVersionsResponse())
    desk.put("heartbeat", lambda request, call: waiting)
    served = Served()
    connection = Connection(served.peer, desk.dispatcher, desk.connection, served.surroundings)
    unknown_version = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 1, -1) + b"\0"
    unknown_api = struct.pack(">hhih", 999, 0, 4, -1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.serve)
        served.peer.feed(
            framed(
                unknown_version,
                bytes(framed_request(ApiVersionsRequest(), 0, correlation_id=2)),
                bytes(framed_request(HeartbeatRequest(), 3, correlation_id=3)),
                unknown_api,
            )
        )
        await wait_all_tasks_blocked()
        assert [answer[:4] for answer in served.answers] == [bytes([0, 0, 0, 1]), bytes([0, 0, 0, 2])]
        waiting.answer(HeartbeatResponse())
        await wait_all_tasks_blocked()
        assert served.answers[2][:4] == bytes([0, 0, 0, 3])
        assert served.peer.is_closed
    assert served.log_lines[0].endswith("API key 999 is not served on PLAINTEXT")


class TooExpensive:
    """Quotas by which each request is too much."""

    is_active = True

    def __init__(self, throttle_ms: int) -> None:
        self._throttle_ms = throttle_ms

    def meter(self, client_id: str | None, size_bytes: int, connection: ConnectionState) -> Any:
        return SimpleNamespace(
            settle=lambda key, answer: self._throttle_ms,
            has_answered=lambda: None,
            pause=lambda: None,
            resume=lambda: None,
        )


def always(answer: Message) -> Handler:
    return lambda request, call: answer


def test_every_answer_says_how_long_its_client_has_to_wait_if_it_can(desk: Desk) -> None:
    desk.dispatcher = desk.dispatcher_with(TooExpensive(12_345))
    silent = set()
    for api in APIS.values():
        messages = import_module(f"protocol.messages.{api.module}")
        name = "".join(word.capitalize() for word in api.module.split("_"))
        request, response = getattr(messages, f"{name}Request"), getattr(messages, f"{name}Response")
        desk.put(api.module, always(response()))
        for version in range(api.first, api.last + 1):
            flexible = version in response.flexible and api.key != ApiKey.API_VERSIONS
            _, body = opened(desk.ask(request(), version), header_bytes=5 if flexible else 4)
            answer = response.decode(memoryview(bytearray(body)), version)
            if not any(
                field.name == "throttle_time_ms" and version in field.versions
                for field in response.declared_fields
            ):
                silent.add(api.key)
            else:
                assert answer.throttle_time_ms == 12_345, (api.key, version)
    assert {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA} <= silent


def test_an_answer_that_is_encoded_already_says_it_too(desk: Desk) -> None:
    desk.dispatcher = desk.dispatcher_with(TooExpensive(7))
    desk.put("metadata", lambda request, call: MetadataResponse(cluster_id="c").encode(call.version))
    for version in (2, 3, 12):
        flexible = version in MetadataResponse.flexible
        _, body = opened(desk.ask(MetadataRequest(), version), header_bytes=5 if flexible else 4)
        answer = MetadataResponse.decode(memoryview(bytearray(body)), version)
        assert (answer.cluster_id, answer.throttle_time_ms) == ("c", 7 if version >= 3 else 0)
