"""A connection that sends what it is told, and says what came of it: an answer, nothing, or the end."""

import socket
import struct
from enum import Enum
from typing import Final, TypeVar

from compat.probe import API_VERSIONS_V0, receive_frame, split_address
from protocol.api_keys import ApiKey
from protocol.errors import DecodeError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.schema import Message

M = TypeVar("M", bound=Message)

PATIENCE_SECONDS: Final = 15.0
"""A broker that has not answered by then never will."""

PROBE_CORRELATION_ID: Final = int.from_bytes(API_VERSIONS_V0[8:12], "big")

_SIZE = struct.Struct(">i")


class Silence(Enum):
    """What a broker can do instead of answering; the value is the word in recordings."""

    CLOSED = "closed"
    """The connection ends."""
    NO_ANSWER = "no answer"
    """The next request on the connection is answered."""
    HANGS = "hangs"
    """Neither this request nor the ones behind it are answered."""


class Connection:
    """One connection.  Its correlation ids begin above that of the probe, to tell the two apart."""

    def __init__(self, address: str, client_id: str | None) -> None:
        self._socket = socket.create_connection(split_address(address), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = PROBE_CORRELATION_ID
        self.send_probe()
        receive_frame(self._socket)  # from now on the broker reads what comes here as soon as it comes

    def close(self) -> None:
        self._socket.close()

    def send(self, request: Message, version: int) -> int:
        """Send a request; returns its correlation id.  ``EncodeError`` if the version cannot carry it."""
        flexible = version in request.flexible
        return self.send_body(request.api_key, version, request.encode(version), flexible=flexible)

    def send_body(self, api_key: int, version: int, body: bytes, *, flexible: bool) -> int:
        """Send any bytes behind a well-formed header."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        ).encode(2 if flexible else 1)
        self.send_bytes(_SIZE.pack(len(header) + len(body)) + header + body)
        return self._correlation_id

    def send_bytes(self, data: bytes) -> None:
        """Send bytes that need not be a request.  Whoever receives notices that the peer is gone."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            return

    def send_probe(self) -> None:
        """Send a request that every broker answers, to learn whether the one before it will be."""
        self.send_bytes(API_VERSIONS_V0)

    def receive(self, correlation_id: int, *, patience_seconds: float = PATIENCE_SECONDS) -> bytes | Silence:
        """The frame that answers the request with that id."""
        self._socket.settimeout(patience_seconds)
        try:
            frame = receive_frame(self._socket)
        except ConnectionError:
            return Silence.CLOSED
        except TimeoutError:
            return Silence.HANGS
        if not frame:
            return Silence.CLOSED
        answered = int.from_bytes(frame[:4], "big", signed=True)
        if answered == PROBE_CORRELATION_ID:
            return Silence.NO_ANSWER
        if answered != correlation_id:
            raise DecodeError(f"request {correlation_id} was to be answered, not request {answered}")
        return frame


def read_answer(frame: bytes, response: type[M], version: int) -> M:
    """The message that fills a frame.  ``DecodeError`` if it does not."""
    flexible_header = version in response.flexible and response.api_key != ApiKey.API_VERSIONS
    _, position = ResponseHeader.decode_from(frame, 0, 1 if flexible_header else 0)
    message, end = response.decode_from(frame, position, version)
    if end != len(frame):
        raise DecodeError(f"{len(frame) - end} bytes behind a {response.__name__} of version {version}")
    return message
