"""Asking other nodes: one connection, one request at a time, opened when it is needed."""

import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import trio

from broker.logs import Log
from broker.network.call import Address
from broker.network.peer import Peer, PeerGone
from broker.network.transport import Transport
from protocol.api_keys import ApiKey
from protocol.errors import DecodeError
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.schema import Message

API_VERSIONS_VERSION: Final = 4
"""Of the first question on a connection: it is told of features whose lowest level is 0, too."""

FIRST_BYTES: Final = 1 << 16
"""What there is room for before more of an answer has come; an announced size alone is not believed."""

TRUSTED_BYTES: Final = 64 << 20
"""For an answer up to this size room is made at once when its first bytes have come: mostly it is what a
follower has asked for."""

TURN_BYTES: Final = 1 << 18
"""After so many bytes others have their turn."""

FRESH_SECONDS: Final = 0.1
"""A connection over which an answer came so recently is not asked whether it is still open: who fetches
without a pause would ask with each request."""

RESPONSE_BYTES_MAX: Final = 1 << 30

_SIZE = struct.Struct(">i")


class NodeUnreachable(Exception):
    """The node could not be asked, or its answer did not come: nobody knows whether it did what it was asked.

    The text says why, and fits behind "node 3: ".
    """


def warn_of_controller(log: Log, address: Address, error: NodeUnreachable) -> None:
    """Say that a controller cannot be asked: once a minute, whoever has found it and by whatever request."""
    why = str(error).removeprefix(f"{address}: ")
    log.warn_seldom(
        f"the controller at {address} cannot be asked: {why}", about=f"the controller at {address}"
    )


class NodeClient:
    """A connection to one other node, opened with the first request and again after it broke.

    Requests of several tasks wait for each other: who needs a long poll, or more than one request under way,
    has a client of its own.
    """

    def __init__(
        self,
        transport: Transport,
        resolve: Callable[[], Address | None],
        *,
        client_id: str,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        """``resolve`` says where the node is now; a connection to where it was before is given up.

        ``receive_buffer_bytes`` is for the system's own buffer, which it sizes as it needs without that.
        """
        self._transport = transport
        self._resolve = resolve
        self._client_id = client_id
        self._receive_buffer_bytes = receive_buffer_bytes
        self._turn = trio.Lock()
        self._peer: Peer | None = None
        self._address: Address | None = None
        self._answered_at = 0.0
        self._first = memoryview(bytearray(FIRST_BYTES))
        """What has come of an answer before its size is known."""
        self._correlation_id = 0
        self.api_versions: Mapping[int, tuple[int, int]] = {}
        """The lowest and highest version of each API that the node serves, once it is connected."""
        self.features: Mapping[str, tuple[int, int]] = {}
        """The levels of features that it supports, likewise."""

    async def ask(self, request: Message, *, version: int | None = None, timeout_seconds: float) -> Any:
        """The answer to ``request``, in this version or the highest that both sides know.

        Raises NodeUnreachable.  What is raised, cancellation included, ends the connection if a request is
        under way.
        """
        with trio.CancelScope(deadline=trio.current_time() + timeout_seconds):
            try:
                self._turn.acquire_nowait()
            except trio.WouldBlock:
                await self._turn.acquire()
            try:
                return await self._ask(request, version)
            finally:
                self._turn.release()
        raise NodeUnreachable(f"no answer for {timeout_seconds:g} s")

    async def connect(self, *, timeout_seconds: float) -> None:
        """Be connected, so that ``api_versions`` and ``features`` are known.  Raises NodeUnreachable."""
        try:
            with trio.fail_after(timeout_seconds):
                async with self._turn:
                    await self._connect()
        except trio.TooSlowError as error:
            raise NodeUnreachable(f"no connection for {timeout_seconds:g} s") from error

    def highest_version(self, request: type[Message]) -> int:
        """The highest version that both know; the client is connected.  Raises NodeUnreachable."""
        low, high = self.api_versions.get(request.api_key, (0, -1))
        highest = min(high, request.versions.stop - 1)
        if highest < max(low, request.versions.start):
            raise NodeUnreachable(f"it serves no version of {_name(request)} that is known here")
        return highest

    def close(self) -> None:
        """Close the connection, if there is one.  The next request opens another."""
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.close()

    async def _ask(self, request: Message, version: int | None) -> Any:
        await self._connect()
        try:
            assert self._peer is not None
            return await self._exchange(
                self._peer, request, self.highest_version(type(request)) if version is None else version
            )
        except BaseException as error:
            self.close()
            if isinstance(error, (PeerGone, DecodeError, OSError)):
                raise NodeUnreachable(str(error)) from error
            raise

    async def _connect(self) -> None:
        address = self._resolve()
        if address is None:
            raise NodeUnreachable("nobody knows its address")
        if self._peer is not None and address == self._address:
            is_fresh = trio.current_time() < self._answered_at + FRESH_SECONDS
            if is_fresh or _is_open(self._peer):
                return
        self.close()
        try:
            self._peer = await self._transport.connect(
                address, receive_buffer_bytes=self._receive_buffer_bytes
            )
            self._address = address
            answer: ApiVersionsResponse = await self._exchange(
                self._peer,
                ApiVersionsRequest(client_software_name="ottla", client_software_version="1"),
                API_VERSIONS_VERSION,
            )
            if answer.error_code:
                raise NodeUnreachable(f"{address} answers ApiVersions with error {answer.error_code}")
        except BaseException as error:
            self.close()
            if isinstance(error, (PeerGone, DecodeError, OSError)):
                cause = getattr(error, "strerror", None) or error
                raise NodeUnreachable(f"{address}: {cause}") from error
            raise
        self.api_versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        self.features = {
            feature.name: (feature.min_version, feature.max_version) for feature in answer.supported_features
        }

    async def _exchange(self, peer: Peer, request: Message, version: int) -> Any:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        is_flexible = version in request.flexible
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        ).encode(2 if is_flexible else 1)
        body = request.encode(version)
        await peer.send(_SIZE.pack(len(header) + len(body)) + header + body)
        answer = await self._receive(peer)
        self._answered_at = trio.current_time()
        response = response_class(type(request))
        has_tags = version in response.flexible and request.api_key != ApiKey.API_VERSIONS
        answered, position = ResponseHeader.decode_from(answer, 0, 1 if has_tags else 0)
        if answered.correlation_id != self._correlation_id:
            raise DecodeError(f"an answer to request {answered.correlation_id}, not {self._correlation_id}")
        return response.decode_from(answer, position, version)[0]

    async def _receive(self, peer: Peer) -> memoryview:
        """One frame without its size; the view is of a buffer of its own."""
        first = self._first
        filled = 0
        while filled < _SIZE.size:
            await peer.wait_readable()
            filled += _receive_some(peer, first[filled:]) or 0
        (size,) = _SIZE.unpack_from(first)
        if not 0 < size <= RESPONSE_BYTES_MAX:
            raise DecodeError(f"an answer of {size} bytes")
        filled -= _SIZE.size
        if filled > size:
            raise DecodeError(f"{filled - size} bytes more than an answer")
        begun = first[_SIZE.size : _SIZE.size + filled]
        return memoryview(bytes(begun) if filled == size else await _receive_rest(peer, begun, size))


@cache
def response_class(request: type[Message]) -> type[Message]:
    """The class of the answers to a class of requests."""
    found: type[Message] = getattr(
        sys.modules[request.__module__], request.__name__.removesuffix("Request") + "Response"
    )
    return found


def _name(request: type[Message]) -> str:
    return request.__name__.removesuffix("Request")


def _is_open(peer: Peer) -> bool:
    """Whether an idle connection still leads anywhere: brokers close those that say nothing for long."""
    try:
        return peer.receive_nowait(memoryview(bytearray(1))) is None
    except (PeerGone, OSError):
        return False


def _receive_some(peer: Peer, space: memoryview) -> int | None:
    """How many bytes came; None when nothing is there yet."""
    count = peer.receive_nowait(space)
    if count == 0:
        raise PeerGone("the node has closed the connection")
    return count


async def _receive_rest(peer: Peer, begun: memoryview, size: int) -> bytearray:
    """All of an answer that has begun to come."""
    buffer = bytearray(begun)
    filled = in_a_row = len(buffer)
    while filled < size:
        if filled == len(buffer):
            larger = bytearray(size if size <= TRUSTED_BYTES else min(size, max(FIRST_BYTES, 2 * filled)))
            larger[:filled] = buffer
            buffer = larger
        with memoryview(buffer) as view:
            count = _receive_some(peer, view[filled:])
        if count is None:
            await peer.wait_readable()
            in_a_row = 0
        else:
            filled += count
            in_a_row += count
            if in_a_row >= TURN_BYTES:
                await trio.lowlevel.checkpoint()
                in_a_row = 0
    return buffer
