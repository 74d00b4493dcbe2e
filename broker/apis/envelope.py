"""Envelope (58): another broker passes on what its client asks the controller (KIP-590)."""

import socket
from collections.abc import Iterable
from typing import Final

from broker.apis.table import APIS
from broker.errors import CloseConnection
from broker.network.call import Address, Call, ConnectionState
from broker.network.sending import Part
from broker.network.waiting import NotYet, Waiting
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.headers import read_request_start
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.principal import decode_principal
from storage.file_range import FileRange

ADDRESS_FAMILIES: Final = {4: socket.AF_INET, 16: socket.AF_INET6}
"""By the length of an address in bytes."""

SIZE_BYTES: Final = 4
"""Before each answer on a connection, and not in an envelope."""

KEYS: Final = frozenset(ApiKey)


def handle(request: EnvelopeRequest, call: Call) -> EnvelopeResponse | Waiting[EnvelopeResponse]:
    _check_principal(request.request_principal)
    host = _client_host(request.client_host_address)
    _check_api(request.request_data)
    controller = call.services.controller
    if not controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    outside = call.connection
    client = ConnectionState(
        outside.number, outside.listener, Address(host, outside.peer.port), outside.local_address
    )
    client.is_forwarded = True
    try:
        started = controller.forwarded.start(memoryview(request.request_data), client)
    except CloseConnection as error:
        return _failed(error)
    if isinstance(started, NotYet):
        raise started
    if isinstance(started, list):
        return _wrap(started)
    pending, inner = started, started.waiting
    outer: Waiting[EnvelopeResponse] = Waiting(inner.deadline, inner.expire)

    def finish() -> EnvelopeResponse:
        try:
            parts = pending.finish()
        except CloseConnection as error:
            return _failed(error)
        if not controller.is_active:
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        return _wrap(parts)

    inner.notify(lambda: outer.answer_with(finish))
    outer.on_abandoned(inner.abandon)
    return outer


def _check_principal(data: bytes | None) -> None:
    """Who it is makes no difference as long as everybody may do everything, but it must be told."""
    try:
        decode_principal(data or b"")
    except DecodeError as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            f"Failed to deserialize client principal from envelope: {error}",
        ) from None


def _client_host(address: bytes) -> str:
    family = ADDRESS_FAMILIES.get(len(address))
    if family is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse client address from envelope")
    return socket.inet_ntop(family, address)


def _check_api(frame: bytes) -> None:
    """UNSUPPORTED_VERSION is the client's fault, INVALID_REQUEST that of the broker that passed it on."""
    try:
        key, version, _ = read_request_start(frame)
    except DecodeError:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION) from None
    if key not in KEYS:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    api = APIS.get(key)
    if api is None or not api.is_forwardable:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {ApiKey(key).name} is not eligible for forwarding")
    if not api.first <= version <= api.last:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _wrap(parts: Iterable[Part]) -> EnvelopeResponse:
    answer = bytearray()
    for part in parts:
        assert not isinstance(part, FileRange), "no answer of the controller holds records"
        answer += part
    return EnvelopeResponse(response_data=bytes(answer[SIZE_BYTES:]))


def _failed(error: CloseConnection) -> EnvelopeResponse:
    """Kafka closes its client's connection for UNSUPPORTED_VERSION, as it would have itself."""
    if isinstance(error.__cause__, DecodeError):
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
