"""A synchronous client that sends exactly the message it is given, to any broker.

Nothing is negotiated, retried or corrected: tests use it to see what a broker answers to requests that
no well-behaved client would send.
"""

import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from protocol.headers import RequestHeader, ResponseHeader
from protocol.schema import Message

M = TypeVar("M", bound=Message)

_SIZE = struct.Struct(">i")
_API_VERSIONS = 18


class ConnectionClosed(Exception):
    """The broker closed the connection where an answer was due."""


class RawClient:
    """One connection.  Answers are read in the order of the requests."""

    def __init__(
        self, address: tuple[str, int], *, timeout_s: float = 10.0, client_id: str | None = "raw"
    ) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def ask(self, request: Message, answer: type[M], version: int) -> M:
        """Send ``request`` and return the answer to it."""
        self.send(request, version)
        return self.receive(answer, version)

    def send(self, request: Message, version: int) -> int:
        """Send ``request`` without waiting; returns its correlation id."""
        header_version = 2 if version in request.flexible else 1
        return self.send_bytes(request.api_key, version, request.encode(version), header_version)

    def send_bytes(self, api_key: int, version: int, body: bytes, header_version: int = 1) -> int:
        """Send ``body`` as it is behind a well-formed header; returns the correlation id."""
        self._correlation_id += 1
        header = RequestHeader(
            request_api_key=api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        ).encode(header_version)
        self.socket.sendall(_SIZE.pack(len(header) + len(body)) + header + body)
        return self._correlation_id

    def receive(self, answer: type[M], version: int) -> M:
        """Read the next answer, which must be an ``answer`` in ``version``, whole and nothing more."""
        frame = self.receive_frame()
        flexible_header = version in answer.flexible and answer.api_key != _API_VERSIONS
        _, position = ResponseHeader.decode_from(frame, 0, 1 if flexible_header else 0)
        message, end = answer.decode_from(frame, position, version)
        if end != len(frame):
            raise AssertionError(f"{len(frame) - end} bytes behind {message!r}")
        return message

    def receive_frame(self) -> bytes:
        """Read one answer, header included; raises ``ConnectionClosed`` at the end of the stream."""
        (size,) = _SIZE.unpack(self._receive_exactly(_SIZE.size))
        return self._receive_exactly(size)

    def is_closed_by_peer(self, wait_s: float = 1.0) -> bool:
        """Whether the broker closes the connection, without an answer, within ``wait_s``."""
        before = self.socket.gettimeout()
        self.socket.settimeout(wait_s)
        try:
            return not self.socket.recv(1)
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(before)

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                part = self.socket.recv(size - len(received))
            except ConnectionError as error:
                raise ConnectionClosed(str(error)) from error
            if not part:
                raise ConnectionClosed(f"after {len(received)} of {size} bytes")
            received += part
        return bytes(received)
