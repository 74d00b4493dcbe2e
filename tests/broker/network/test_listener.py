"""Accepting and closing, with real sockets on the loopback interface."""

import errno
import io
import itertools
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker import limits
from broker.logs import Level, Log
from broker.network.binding import Binding, BoundListener, bind_listeners
from broker.network.call import Address, ConnectionState, Listener
from broker.network.connection import Connection
from broker.network.listener import Network, serve_listeners
from broker.network.settings import NetworkSettings
from broker.network.waiting import Waiting
from broker.quotas.connections import AddressLimits, ConnectionLimits, ListenerLimits
from tests.broker.network.memory_peer import MemoryPeer
from tests.broker.network.stub_dispatch import StubDispatch, framed, unframed

LOOPBACK = Binding(Listener("PLAINTEXT"), "127.0.0.1", 0)
TWO_DOORS = tuple(Binding(Listener(name), "127.0.0.1", 0) for name in ("FIRST", "SECOND"))


async def inline(function: Callable[[], object]) -> object:
    await trio.lowlevel.checkpoint()
    return function()


class House:
    """A running network, and clients that visit it."""

    def __init__(self) -> None:
        self.output = io.StringIO()
        self.log = Log(self.output, level=Level.INFO)
        self.dispatch = StubDispatch()
        self.bound: list[BoundListener] = []
        self.network: Network
        self.clients: list[trio.SocketStream] = []

    async def visit(self, door: int = 0) -> trio.SocketStream:
        client = await trio.open_tcp_stream(*self.bound[door].address)
        self.clients.append(client)
        return client

    @property
    def log_lines(self) -> list[str]:
        return [line[24:] for line in self.output.getvalue().splitlines()]


@asynccontextmanager
async def opened(
    settings: NetworkSettings | None = None,
    bindings: tuple[Binding, ...] = (LOOPBACK,),
    sockets_max: int = sys.maxsize,
) -> AsyncGenerator[House]:
    house = House()
    settings = NetworkSettings() if settings is None else settings
    house.bound = bind_listeners(bindings, settings)
    try:
        with trio.fail_after(10):
            async with serve_listeners(
                house.bound,
                lambda listener: house.dispatch,
                settings,
                log=house.log,
                run_blocking=inline,
                sockets_max=sockets_max,
                poison_frames=True,
            ) as network:
                house.network = network
                yield house
    finally:
        for client in house.clients:
            await client.aclose()


def limited(**values: Any) -> NetworkSettings:
    """Limits of connections."""
    return NetworkSettings(connections=ConnectionLimits(**values))


async def exchange(client: trio.SocketStream, *words: bytes) -> list[bytes]:
    await client.send_all(framed(*words))
    return await answers(client, sum(4 + len(word) for word in words))


async def answers(client: trio.SocketStream, count: int) -> list[bytes]:
    data = b""
    while len(data) < count:
        received = await client.receive_some()
        assert received
        data += received
    return unframed(data)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await wait_all_tasks_blocked(0.001)


async def is_closed(client: trio.SocketStream) -> bool:
    try:
        return await client.receive_some() == b""
    except trio.BrokenResourceError:
        return True


async def test_clients_are_served_at_every_listener() -> None:
    controller = Binding(Listener("CONTROLLER", is_controller=True), "127.0.0.1", 0)
    async with opened(bindings=(LOOPBACK, controller)) as house:
        first, second, third = await house.visit(0), await house.visit(1), await house.visit(0)
        for client in (first, second, third):
            assert await exchange(client, b"now") == [b"now"]
        assert len(house.network.connections) == 3
        names = {connection.state.listener for connection in house.network.connections}
        assert names == {Listener("PLAINTEXT"), Listener("CONTROLLER", is_controller=True)}


async def test_it_knows_both_ends_of_a_connection() -> None:
    async with opened() as house:
        client = await house.visit()
        await exchange(client, b"now")
        (connection,) = house.network.connections
        assert connection.state.peer == Address(*client.socket.getsockname())
        assert connection.state.local_address == house.bound[0].address


async def test_small_answers_are_not_held_back() -> None:
    async with opened() as house:
        await exchange(await house.visit(), b"now")
        (connection,) = house.network.connections
        raw: socket.socket = connection._peer._socket  # type: ignore[attr-defined]
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_who_leaves_is_forgotten() -> None:
    async with opened() as house:
        client = await house.visit()
        await exchange(client, b"now")
        await client.aclose()
        await until(lambda: not house.network.connections)
        assert house.log_lines == []


async def test_an_offender_is_closed_with_one_line_and_the_others_are_served() -> None:
    async with opened() as house:
        good, bad = await house.visit(), await house.visit()
        assert await exchange(good, b"now") == [b"now"]
        await bad.send_all(b"GET / HTTP/1.1\r\n\r\n")
        assert await is_closed(bad)
        assert await exchange(good, b"now") == [b"now"]
        port = bad.socket.getsockname()[1]
        line = (
            "closed the connection of 127.0.0.1:%d (PLAINTEXT): it does not speak Kafka's protocol but HTTP"
        )
        assert house.log_lines == ["WARN  " + line % port]


async def test_beyond_the_connections_of_an_address_clients_are_closed_at_once() -> None:
    async with opened(limited(per_address_max=2)) as house:
        first, _second = await house.visit(), await house.visit()
        await exchange(first, b"now")
        third = await house.visit()
        assert await is_closed(third)
        assert await is_closed(await house.visit())
        assert len(house.log_lines) == 1  # however often it tries
        assert "127.0.0.1 has as many connections as one address may have: 2" in house.log_lines[0]
        await first.aclose()
        await until(lambda: len(house.network.connections) == 1)
        assert await exchange(await house.visit(), b"now") == [b"now"]


async def test_an_address_may_have_a_limit_of_its_own() -> None:
    async with opened(limited(per_address_max=0, per_address_overrides={"127.0.0.1": 1})) as house:
        assert await exchange(await house.visit(), b"now") == [b"now"]
        assert await is_closed(await house.visit())


async def test_beyond_the_connections_of_the_broker_clients_wait() -> None:
    async with opened(limited(connections_max=1)) as house:
        first = await house.visit()
        await exchange(first, b"now")
        second = await house.visit()
        await second.send_all(framed(b"now"))
        await wait_all_tasks_blocked(0.01)
        assert len(house.network.connections) == 1
        await first.aclose()
        assert await answers(second, 7) == [b"now"]
        assert len(house.log_lines) == 1


async def test_beyond_what_there_are_descriptors_for_clients_wait() -> None:
    async with opened(limited(connections_max=5), sockets_max=2) as house:
        first, second = await house.visit(), await house.visit()
        for client in (first, second):
            await exchange(client, b"now")
        third = await house.visit()
        await third.send_all(framed(b"now"))
        house.network.apply(limited(connections_max=6))
        await wait_all_tasks_blocked(0.01)
        assert len(house.network.connections) == 2
        (line,) = house.log_lines
        assert line.endswith("as 2 connections are open (the limit of open files)")
        await first.aclose()
        assert await answers(third, 7) == [b"now"]


async def test_a_listener_may_have_a_limit_of_its_own() -> None:
    listeners = {"FIRST": ListenerLimits(connections_max=1)}
    async with opened(limited(connections_max=5, listeners=listeners), bindings=TWO_DOORS) as house:
        await exchange(await house.visit(), b"now")
        second = await house.visit()
        await second.send_all(framed(b"now"))
        await wait_all_tasks_blocked(0.01)
        assert await exchange(await house.visit(1), b"now") == [b"now"]
        assert len(house.network.connections) == 2


async def test_clients_do_not_keep_out_who_comes_through_the_protected_listener() -> None:
    """Nor can they stay when they are too many then: who is quiet for the longest time has to go."""
    settings = limited(connections_max=2, protected="SECOND")
    async with opened(settings, bindings=TWO_DOORS) as house:
        clients = [await house.visit(), await house.visit()]
        for client in clients:
            await exchange(client, b"now")
        assert await exchange(await house.visit(1), b"now") == [b"now"]
        assert await is_closed(clients[0])
        assert await exchange(clients[1], b"now") == [b"now"]


async def test_when_the_limit_is_lowered_those_have_to_go_that_are_quiet_for_the_longest_time() -> None:
    async with opened(limited(connections_max=3)) as house:
        clients = [await house.visit() for _ in range(3)]
        for client in clients:
            await exchange(client, b"now")
        house.network.apply(limited(connections_max=1))
        assert [await is_closed(client) for client in clients[:2]] == [True, True]
        assert await exchange(clients[2], b"now") == [b"now"]


async def test_clients_that_come_too_fast_wait_at_the_door(autojump_clock: MockClock) -> None:
    """Two a second may come, and twenty at once."""
    network = Network(limited(rate_max=2), log=Log(io.StringIO()), run_blocking=inline)
    listener = Listener("FIRST")
    began = trio.current_time()
    came = []
    for _ in range(30):
        await network._wait_room(listener)
        came.append(trio.current_time() - began)
    assert came[19] == 0
    assert came[29] >= 5
    waits = [after - before for before, after in itertools.pairwise(came[19:])]
    assert 0 < min(waits) <= max(waits) <= 1


async def test_an_address_that_comes_too_fast_is_kept_outside_for_a_while() -> None:
    async with opened() as house:
        house.network.apply_addresses(AddressLimits([("127.0.0.1", 1)]))
        clients = [await house.visit() for _ in range(10)]
        for client in clients:
            assert await exchange(client, b"now") == [b"now"]
        refused = await house.visit()
        await until(lambda: len(house.network._refused) == 1)
        with trio.move_on_after(0.05) as waited:
            await refused.receive_some()
        assert waited.cancelled_caught  # it is neither served nor closed yet
        (waiting,) = [each for _, _, each in house.network.timers._heap]
        waiting.expire()
        assert await is_closed(refused)
        assert len(house.network.connections) == 10


async def test_the_limit_can_be_raised_while_clients_wait() -> None:
    async with opened(limited(connections_max=1)) as house:
        await exchange(await house.visit(), b"now")
        second = await house.visit()
        await wait_all_tasks_blocked(0.01)
        house.network.apply(limited(connections_max=2))
        assert await exchange(second, b"now") == [b"now"]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_running_out_of_descriptors_is_survived(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ACCEPT_RETRY_SECONDS", 0)
    network = Network(NetworkSettings(), log=Log(io.StringIO()), run_blocking=inline)
    (bound,) = bind_listeners([LOOPBACK], NetworkSettings())
    failures = 3

    class Door:
        """The listening socket, in a process that has no descriptor left for a while."""

        def accept(self) -> tuple[socket.socket, tuple[str, int]]:
            nonlocal failures
            if failures:
                failures -= 1
                raise OSError(code, "Too many open files")
            accepted: tuple[socket.socket, tuple[str, int]] = bound.socket.accept()
            return accepted

        def fileno(self) -> int:
            return bound.socket.fileno()

    with bound.socket, trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            door = BoundListener(bound.listener, Door())  # type: ignore[arg-type]
            nursery.start_soon(network.accept, door, StubDispatch(), nursery)
            client = await trio.open_tcp_stream(*bound.address)
            assert await exchange(client, b"now") == [b"now"]
            await client.aclose()
            nursery.cancel_scope.cancel()
    assert failures == 0


async def test_a_client_that_gives_up_before_it_is_accepted_harms_nobody() -> None:
    async with opened() as house:
        import struct

        for _ in range(5):
            raw = socket.create_connection(house.bound[0].address)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.close()
        assert await exchange(await house.visit(), b"now") == [b"now"]


# Stopping.


async def test_stopping_closes_who_is_owed_nothing_at_once() -> None:
    async with opened() as house:
        client = await house.visit()
        await exchange(client, b"now")
        address = house.bound[0].address
        stopped_at = trio.current_time()
    assert trio.current_time() - stopped_at < limits.DRAIN_SECONDS
    assert house.log_lines == []
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address)


async def test_stopping_lets_what_is_in_flight_finish() -> None:
    async with trio.open_nursery() as nursery:
        async with opened() as house:
            client = await house.visit()
            await client.send_all(framed(b"wait"))
            await until(lambda: bool(house.dispatch.waitings))

            async def answer_soon() -> None:
                await trio.sleep(0.05)
                house.dispatch.waitings[b"wait"].answer(b"done")

            nursery.start_soon(answer_soon)
            received: list[bytes] = []

            async def read() -> None:
                received.extend(await answers(client, 8))

            nursery.start_soon(read)
        assert received == [b"done"]


async def test_stopping_does_not_wait_for_ever(autojump_clock: MockClock) -> None:
    network = Network(NetworkSettings(), log=Log(io.StringIO()), run_blocking=inline)
    dispatch = StubDispatch()
    peers = [MemoryPeer() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for peer in peers:
            nursery.start_soon(network.serve, enter(network, peer, dispatch))
        peers[0].feed(framed(b"wait"))
        peers[1].stop_reading()
        peers[1].feed(framed(b"now"))
        await wait_all_tasks_blocked()
        started = trio.current_time()
        await network.drain()
        assert trio.current_time() - started == pytest.approx(limits.DRAIN_SECONDS)
        assert [peer.is_closed for peer in peers] == [False, False, True]
        nursery.cancel_scope.cancel()
    assert all(peer.is_closed for peer in peers)


async def test_stopping_does_not_wait_for_long_polls(autojump_clock: MockClock) -> None:
    network = Network(NetworkSettings(), log=Log(io.StringIO()), run_blocking=inline)
    dispatch = StubDispatch()
    dispatch.make_waiting = lambda word: Waiting(droppable=True)
    peer = MemoryPeer()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.serve, enter(network, peer, dispatch))
        peer.feed(framed(b"wait"))
        await wait_all_tasks_blocked()
        started = trio.current_time()
        await network.drain()
        assert trio.current_time() - started <= 0.01
        nursery.cancel_scope.cancel()
    assert peer.is_closed


# Quiet connections, on a virtual clock.


def enter(network: Network, peer: MemoryPeer, dispatch: StubDispatch) -> Connection:
    """Let a peer in memory in, as if it had been accepted."""
    state = ConnectionState(1, Listener("PLAINTEXT"), Address("10.0.0.7", 4711), Address("10.0.0.1", 9092))
    return network.enter(peer, state, dispatch)


class Quiet:
    """A network on a virtual clock, with one peer."""

    def __init__(self, settings: NetworkSettings) -> None:
        self.output = io.StringIO()
        self.network = Network(settings, log=Log(self.output), run_blocking=inline)
        self.dispatch = StubDispatch()
        self.peers: list[MemoryPeer] = []

    def visit(self, nursery: trio.Nursery) -> MemoryPeer:
        peer = MemoryPeer()
        self.peers.append(peer)
        nursery.start_soon(self.network.serve, enter(self.network, peer, self.dispatch))
        return peer


async def test_idle_connections_are_closed_without_a_word(autojump_clock: MockClock) -> None:
    quiet = Quiet(NetworkSettings(idle_ms_max=60_000))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.network.watch_quiet)
        idle, busy = quiet.visit(nursery), quiet.visit(nursery)
        for _ in range(10):
            busy.feed(framed(b"now"))
            await trio.sleep(5.5)
        assert not idle.is_closed
        for _ in range(3):
            busy.feed(framed(b"now"))
            await trio.sleep(5.5)
        assert [idle.is_closed, busy.is_closed] == [True, False]
        await trio.sleep(67)
        assert busy.is_closed
        nursery.cancel_scope.cancel()
    assert quiet.output.getvalue() == ""


async def test_idleness_may_be_unlimited(autojump_clock: MockClock) -> None:
    quiet = Quiet(NetworkSettings(idle_ms_max=-1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.network.watch_quiet)
        peer = quiet.visit(nursery)
        await trio.sleep(80_000)
        assert not peer.is_closed
        nursery.cancel_scope.cancel()


async def test_a_client_that_never_reads_is_closed_with_a_line(autojump_clock: MockClock) -> None:
    quiet = Quiet(NetworkSettings(idle_ms_max=60_000))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.network.watch_quiet)
        peer = quiet.visit(nursery)
        peer.stop_reading()
        peer.feed(framed(b"now"))
        await trio.sleep(70)
        assert peer.is_closed
        nursery.cancel_scope.cancel()
    assert "it has taken nothing of its answers for 6" in quiet.output.getvalue()


async def test_an_unfinished_request_is_closed_with_a_line(autojump_clock: MockClock) -> None:
    quiet = Quiet(NetworkSettings(idle_ms_max=60_000))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.network.watch_quiet)
        peer = quiet.visit(nursery)
        peer.feed(framed(b"now")[:-1])
        await trio.sleep(70)
        assert peer.is_closed
        nursery.cancel_scope.cancel()
    assert "unfinished request" in quiet.output.getvalue()


async def test_quiet_connections_give_memory_back(autojump_clock: MockClock) -> None:
    quiet = Quiet(NetworkSettings())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.network.watch_quiet)
        peer = quiet.visit(nursery)
        peer.feed(framed(*[b"now"] * 20_000))
        await trio.sleep(1)
        (connection,) = quiet.network.connections
        assert connection._inbox.capacity == limits.INBOX_BYTES_MAX
        await trio.sleep(100)
        assert connection._inbox.capacity == limits.INBOX_BYTES_START
        peer.feed(framed(b"now last"))
        await wait_all_tasks_blocked()
        assert unframed(peer.received)[-1] == b"now last"
        nursery.cancel_scope.cancel()


async def test_while_memory_is_short_a_stalled_large_request_loses_its_connection(
    autojump_clock: MockClock,
) -> None:
    quiet = Quiet(NetworkSettings(queued_request_bytes_max=100_000))
    word = b"now" + bytes(90_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.network.watch_quiet)
        stalled = [quiet.visit(nursery) for _ in range(3)]
        for peer in stalled:
            peer.feed(framed(word)[:-1])
        await trio.sleep(limits.UNFINISHED_REQUEST_STALL_SECONDS - 2)
        honest = quiet.visit(nursery)
        honest.feed(framed(word))
        await wait_all_tasks_blocked()
        assert honest.sent == []
        await trio.sleep(60)
        assert unframed(honest.received) == [word]
        assert sum(peer.is_closed for peer in stalled) >= 2
        assert not honest.is_closed
        nursery.cancel_scope.cancel()
    assert "memory is short" in quiet.output.getvalue()
