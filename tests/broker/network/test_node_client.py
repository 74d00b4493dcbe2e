import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from broker.network import node_client
from broker.network.call import Address
from broker.network.node_client import NodeClient, NodeUnreachable
from broker.network.transport import SocketTransport
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, SupportedFeatureKey
from protocol.messages.metadata import MetadataRequest, MetadataResponse

SERVED = [ApiVersion(api_key=18, max_version=5), ApiVersion(api_key=3, max_version=9)]

Answer = Callable[[int, int, int], bytes | None]
"""Key, version and correlation id of a request to the answer; None hangs up."""


def answer(key: int, version: int, correlation_id: int) -> bytes | None:
    if key == 18:
        features = [SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)]
        body = ApiVersionsResponse(api_keys=SERVED, supported_features=features).encode(version)
        return struct.pack(">i", correlation_id) + body
    header = ">ix" if version >= 9 else ">i"
    return struct.pack(header, correlation_id) + MetadataResponse(cluster_id=f"v{version}").encode(version)


@asynccontextmanager
async def node(answer: Answer = answer) -> AsyncIterator[tuple[NodeClient, list[int]]]:
    """A client of a node that answers so, and the keys of what it was asked."""
    asked: list[int] = []

    async def serve(stream: trio.SocketStream) -> None:
        received = bytearray()
        async for part in stream:
            received += part
            while len(received) >= 4 and len(received) >= 4 + (size := struct.unpack_from(">i", received)[0]):
                key, version, correlation_id = struct.unpack_from(">hhi", received, 4)
                del received[: 4 + size]
                asked.append(key)
                reply = answer(key, version, correlation_id)
                if reply is None:
                    return
                await stream.send_all(struct.pack(">i", len(reply)) + reply)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        client = NodeClient(SocketTransport(), lambda: Address("127.0.0.1", port), client_id="test")
        yield client, asked
        client.close()
        nursery.cancel_scope.cancel()


async def test_the_highest_common_version_over_one_connection() -> None:
    async with node() as (client, asked):
        first = await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)
        second = await client.ask(MetadataRequest(topics=[]), version=4, timeout_seconds=5)
    assert (first.cluster_id, second.cluster_id) == ("v9", "v4")
    assert asked == [18, 3, 3]
    assert client.features == {"kraft.version": (0, 1)}


async def test_who_hangs_up_is_asked_anew() -> None:
    hang_up = [True]

    def moody(key: int, version: int, correlation_id: int) -> bytes | None:
        if key == 3 and hang_up:
            hang_up.pop()
            return None
        return answer(key, version, correlation_id)

    async with node(moody) as (client, _):
        with pytest.raises(NodeUnreachable, match="closed"):
            await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)
        assert (await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)).cluster_id == "v9"


async def test_an_answer_to_something_else() -> None:
    def wrong(key: int, version: int, correlation_id: int) -> bytes | None:
        return answer(key, version, correlation_id + (key == 3))

    async with node(wrong) as (client, _):
        with pytest.raises(NodeUnreachable, match="an answer to request 3, not 2"):
            await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)


async def test_an_answer_that_there_is_no_room_for_until_its_size_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_client, "FIRST_BYTES", 1000)
    cluster_id = "c" * 30_000

    def long(key: int, version: int, correlation_id: int) -> bytes | None:
        if key == 18:
            return answer(key, version, correlation_id)
        body = MetadataResponse(cluster_id=cluster_id).encode(version)
        return struct.pack(">ix", correlation_id) + body

    async with node(long) as (client, asked):
        for _ in range(2):
            found = await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)
            assert found.cluster_id == cluster_id
    assert asked == [18, 3, 3]


async def test_more_than_an_answer() -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        reply = answer(18, 4, 1)
        assert reply is not None
        await stream.send_all(2 * (struct.pack(">i", len(reply)) + reply))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        client = NodeClient(SocketTransport(), lambda: Address("127.0.0.1", port), client_id="test")
        with pytest.raises(NodeUnreachable, match="more than an answer"):
            await client.connect(timeout_seconds=5)
        nursery.cancel_scope.cancel()


async def test_a_node_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = Address(*taken.getsockname())
        client = NodeClient(SocketTransport(), lambda: address, client_id="test")
        with pytest.raises(NodeUnreachable, match=str(address.port)):
            await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)
        client = NodeClient(SocketTransport(), lambda: None, client_id="test")
        with pytest.raises(NodeUnreachable, match="nobody knows its address"):
            await client.connect(timeout_seconds=5)


async def test_an_api_that_the_node_does_not_serve() -> None:
    def bare(key: int, version: int, correlation_id: int) -> bytes | None:
        return struct.pack(">i", correlation_id) + ApiVersionsResponse(api_keys=SERVED[:1]).encode(version)

    async with node(bare) as (client, _):
        with pytest.raises(NodeUnreachable, match="no version of Metadata"):
            await client.ask(MetadataRequest(topics=[]), timeout_seconds=5)
