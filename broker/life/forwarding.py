"""Passing a client's request on to the active controller in an envelope, and its answer back (KIP-590)."""

import socket
import struct
from typing import TYPE_CHECKING, Final

import trio

from broker.errors import CloseConnection, ErrorCode, KafkaError
from broker.network.waiting import Waiting
from protocol.errors import DecodeError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.principal import ANONYMOUS, encode_principal

if TYPE_CHECKING:
    from broker.network.call import Call
    from protocol.schema import Message

TIMEOUT_SECONDS: Final = 60.0
"""How long a forwarded request may take, as in Kafka, whatever it says itself."""

_THROTTLE = struct.Struct(">i")


def forward(envelope: EnvelopeRequest, call: "Call", response: "type[Message]") -> Waiting[bytes]:
    """What becomes of the request in ``envelope``, which is that of ``call``: the body of the answer to it.

    ``response`` is the class of that.  Fails with REQUEST_TIMED_OUT if the controller does not answer, with
    UNKNOWN_SERVER_ERROR if it does not take envelopes of ours, and with CloseConnection if it does not know
    the request's version: then it has become another one, and the client has to ask for versions anew.
    """
    waiting: Waiting[bytes] = Waiting()

    def done(answer: "EnvelopeResponse | KafkaError") -> None:
        try:
            body = opened(answer, response, call.version)
        except (CloseConnection, KafkaError) as error:
            waiting.fail(error)
            return
        throttle_ms = _throttle_ms(body, response, call.version)
        if throttle_ms > 0:  # of the controller's quota; the client is heard again when that is over
            call.connection.mute(trio.current_time() + throttle_ms / 1000)
        waiting.answer(body)

    channel = call.services.channel
    channel.submit(envelope, done, timeout_seconds=TIMEOUT_SECONDS)
    return waiting


def enveloped(request: "Message", version: int, call: "Call") -> EnvelopeRequest:
    """A request that this broker makes for the sender of ``call``."""
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=call.correlation_id,
        client_id=call.client_id,
    ).encode(2 if version in request.flexible else 1)
    return sealed(header + request.encode(version), call)


def sealed(request: bytes, call: "Call") -> EnvelopeRequest:
    """The envelope around a request, which says whose it is."""
    return EnvelopeRequest(
        request_data=request,
        request_principal=encode_principal(ANONYMOUS),
        client_host_address=_address(call.connection.peer.host),
    )


def opened(answer: "EnvelopeResponse | KafkaError", response: "type[Message]", version: int) -> bytes:
    """The body of the answer inside.  Raises CloseConnection, or KafkaError."""
    if isinstance(answer, KafkaError):
        raise answer
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise CloseConnection(f"the controller knows no version {version} of its {response.__name__}")
    if answer.error_code or answer.response_data is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    data = memoryview(answer.response_data)
    try:
        position = ResponseHeader.decode_from(data, 0, 1 if version in response.flexible else 0)[1]
    except DecodeError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    return bytes(data[position:])


def _throttle_ms(body: bytes, response: "type[Message]", version: int) -> int:
    first = response.declared_fields[0]
    if first.name != "throttle_time_ms" or version not in first.versions or len(body) < _THROTTLE.size:
        return 0
    throttle_ms: int = _THROTTLE.unpack_from(body)[0]
    return throttle_ms


def _address(host: str) -> bytes:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.inet_pton(family, host.partition("%")[0])
    except OSError:  # it is none: a simulation's nodes have names
        return socket.inet_aton("127.0.0.1")
