"""The network in memory: what arrives, in which order, and what does not."""

from random import Random

import pytest
import trio
from trio.testing import MockClock

from broker.network.binding import Accepted, Binding
from broker.network.call import Address, Listener
from broker.network.peer import Peer, PeerGone
from broker.network.settings import NetworkSettings
from tests.simulation.network import HostTransport, Network
from tests.simulation.timeline import Timeline

SERVER = Address("10.0.0.1", 9092)
CLIENT = "10.0.1.1"
DATA = bytes(range(256))


def nothing() -> None:
    """Between two events there is nothing to look at."""


class Two:
    """A client that is connected to a server."""

    def __init__(self, network: Network) -> None:
        self.network = network

    async def connect(self) -> tuple[Peer, Accepted]:
        listener = Listener("PLAINTEXT", False)
        transport = HostTransport(self.network, SERVER.host)
        (door,) = transport.listen([Binding(listener, SERVER.host, SERVER.port)], NetworkSettings())
        peer = await HostTransport(self.network, CLIENT).connect(SERVER)
        accepted = door.accept()
        assert accepted is not None
        assert accepted.address.host == CLIENT
        return peer, accepted


@pytest.fixture
async def two(chance: Random, nursery: trio.Nursery) -> Two:
    timeline = Timeline(nothing)
    nursery.start_soon(timeline.run)
    return Two(Network(timeline, chance, lambda line: None))


async def receive(peer: Peer, size: int) -> bytes:
    """What arrives before the end, the break, or ``size`` bytes."""
    received = bytearray()
    space = bytearray(100)
    while len(received) < size:
        count = peer.receive_nowait(memoryview(space))
        if count == 0:
            break
        if count is None:
            await peer.wait_readable()
        else:
            received += space[:count]
    return bytes(received)


async def receive_until_gone(peer: Peer, received: bytearray) -> None:
    try:
        while True:
            received += await receive(peer, 1)
    except PeerGone:
        pass


async def test_bytes_arrive_in_order_after_a_while(two: Two, autojump_clock: MockClock) -> None:
    client, server = await two.connect()
    start = trio.current_time()
    for first in range(0, len(DATA), 16):
        await client.send(DATA[first : first + 16])
    assert await receive(server.peer, len(DATA)) == DATA
    assert trio.current_time() > start
    await server.peer.send(b"answer")
    server.peer.close()
    assert await receive(client, 100) == b"answer"


async def test_behind_a_partition_everything_waits(two: Two, autojump_clock: MockClock) -> None:
    client, server = await two.connect()
    two.network.block(CLIENT, SERVER.host)
    await client.send(DATA[:100])
    await client.send(DATA[100:])
    with trio.move_on_after(100) as waiting:
        await server.peer.wait_readable()
    assert waiting.cancelled_caught
    await server.peer.send(b"the other way is open")
    assert await receive(client, 21) == b"the other way is open"
    two.network.unblock(CLIENT, SERVER.host)
    assert await receive(server.peer, len(DATA)) == DATA


async def test_nobody_connects_to_a_paused_host_before_it_goes_on(
    two: Two, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    await two.connect()
    two.network.pause(SERVER.host)

    async def resume() -> None:
        await trio.sleep(50)
        two.network.resume(SERVER.host)

    nursery.start_soon(resume)
    start = trio.current_time()
    await HostTransport(two.network, CLIENT).connect(SERVER)
    assert trio.current_time() - start > 50


async def test_a_cut_connection_delivers_a_part(two: Two, autojump_clock: MockClock) -> None:
    client, server = await two.connect()
    await client.send(DATA)
    two.network.cut(CLIENT, SERVER.host)
    received = bytearray()
    await receive_until_gone(server.peer, received)
    assert DATA.startswith(bytes(received))
    with pytest.raises(PeerGone):
        await receive(client, 1)
    with pytest.raises(PeerGone):
        await client.send(b"more")


async def test_a_dead_process_is_noticed(two: Two, autojump_clock: MockClock) -> None:
    client, _ = await two.connect()
    two.network.lose(SERVER.host, is_silent=False)
    with pytest.raises(PeerGone):
        await receive(client, 1)
    with pytest.raises(ConnectionRefusedError):
        await HostTransport(two.network, CLIENT).connect(SERVER)


async def test_a_machine_without_power_is_noticed_late(two: Two, autojump_clock: MockClock) -> None:
    client, server = await two.connect()
    await server.peer.send(b"never")
    start = trio.current_time()
    two.network.lose(SERVER.host, is_silent=True)
    with pytest.raises(PeerGone):
        await receive(client, 1)
    assert trio.current_time() > start
