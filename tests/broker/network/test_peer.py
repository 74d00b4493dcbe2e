"""The real socket: what the kernel does with it is the point, so nothing is simulated."""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from broker import limits
from broker.network.peer import PeerGone, SocketPeer

CONTENT = bytes(range(256)) * (5 * 4096)


@pytest.fixture
def ends() -> Iterator[tuple[SocketPeer, socket.socket]]:
    """A peer over TCP, and the client's end."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        client = socket.create_connection(door.getsockname())
        accepted, _ = door.accept()
    peer = SocketPeer(accepted)
    client.setblocking(False)
    yield peer, client
    peer.close()
    client.close()


async def read_exactly(client: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        await trio.lowlevel.wait_readable(client)
        received = client.recv(count - len(data))
        assert received
        data += received
    return bytes(data)


async def test_receiving(ends: tuple[SocketPeer, socket.socket]) -> None:
    peer, client = ends
    space = memoryview(bytearray(10))
    assert peer.receive_nowait(space) is None
    assert peer.transfers == 0
    client.send(b"hello, this is more")
    await peer.wait_readable()
    assert peer.receive_nowait(space) == 10
    assert bytes(space) == b"hello, thi"
    assert peer.receive_nowait(space) == 9
    assert peer.receive_nowait(space) is None
    client.shutdown(socket.SHUT_WR)
    await peer.wait_readable()
    assert peer.receive_nowait(space) == 0


async def test_a_small_send_needs_no_waiting(ends: tuple[SocketPeer, socket.socket]) -> None:
    peer, client = ends
    with trio.CancelScope() as scope:
        scope.cancel()
        await peer.send(b"at once")  # no checkpoint, so the cancellation does not strike
    assert client.recv(100) == b"at once"


async def test_a_large_send_waits_for_the_client(ends: tuple[SocketPeer, socket.socket]) -> None:
    peer, client = ends
    data = CONTENT * 4
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.send, data)
        await trio.testing.wait_all_tasks_blocked()
        transfers = peer.transfers
        assert await read_exactly(client, len(data)) == data
    assert peer.transfers > transfers


async def test_sending_a_file(ends: tuple[SocketPeer, socket.socket], tmp_path: Path) -> None:
    peer, client = ends
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    received = b""

    async def read() -> None:
        nonlocal received
        received = await read_exactly(client, 6 + 3_000_000)

    with path.open("rb") as file:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await peer.send(b"header", more=True)
            await peer.send_file(file.fileno(), 1000, 3_000_000)
    assert received == b"header" + CONTENT[1000:3_001_000]


async def test_a_file_that_is_too_short(ends: tuple[SocketPeer, socket.socket], tmp_path: Path) -> None:
    peer, client = ends
    path = tmp_path / "log"
    path.write_bytes(b"short")
    with path.open("rb") as file, pytest.raises(EOFError):
        await peer.send_file(file.fileno(), 1, 100)
    assert await read_exactly(client, 4) == b"hort"


async def test_sending_a_file_at_once_still_yields(
    ends: tuple[SocketPeer, socket.socket], tmp_path: Path
) -> None:
    peer, _client = ends
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    steps = 0

    async def count_steps() -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += 1

    with path.open("rb") as file:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_steps)
            await trio.lowlevel.checkpoint()
            before = steps
            for _ in range(10):
                await peer.send_file(file.fileno(), 0, 100)
            assert steps - before >= 9
            nursery.cancel_scope.cancel()


async def test_a_reset_is_told(ends: tuple[SocketPeer, socket.socket], tmp_path: Path) -> None:
    peer, client = ends
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    await peer.wait_readable()
    with pytest.raises(PeerGone, match="reset"):
        peer.receive_nowait(memoryview(bytearray(10)))
    with pytest.raises(PeerGone):
        await peer.send(b"hello?")
    path = tmp_path / "log"
    path.write_bytes(CONTENT)
    with path.open("rb") as file, pytest.raises(PeerGone):
        await peer.send_file(file.fileno(), 0, 100)


async def test_a_reset_while_waiting_to_send_is_told(ends: tuple[SocketPeer, socket.socket]) -> None:
    peer, client = ends
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    told = []

    async def send() -> None:
        try:
            await peer.send(CONTENT * 4)
        except PeerGone as gone:
            told.append(gone)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        client.close()
    assert told


def test_one_send_of_a_file_is_bounded() -> None:
    assert len(CONTENT) > limits.SENDFILE_BYTES_MAX
