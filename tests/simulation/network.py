"""A network in memory: connections that deliver late, are cut anywhere, or wait behind a partition.

As with TCP, bytes arrive in order and none is missing in between; but a connection may end behind any of
them, at each end at another time, and what it carried is then in part delivered and in part lost.
"""

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias
from zlib import crc32

import trio

from broker.network.binding import Accepted, Binding, Door, ListenError
from broker.network.call import Address, Listener
from broker.network.peer import Peer, PeerGone
from broker.network.settings import NetworkSettings
from tests.simulation.timeline import Timeline

LATENCY_SECONDS: Final = (0.0002, 0.002)
SLOW_LATENCY_SECONDS: Final = (0.002, 0.2)
SLOW_SHARE: Final = 0.02
"""How many messages take long."""

SILENCE_SECONDS: Final = 3.0
"""So long at most it takes to find out that a machine without power answers no more."""

Note: TypeAlias = Callable[[str], None]


class Network:
    """All hosts, and what lies between them.

    ``paused`` hosts send and receive nothing; ``blocked`` holds (from, to).  What is sent meanwhile arrives
    afterwards, as TCP would send it again.  What gets to a suspended process waits in its machine's buffers.
    """

    def __init__(self, timeline: Timeline, chance: Random, note: Note) -> None:
        self.timeline = timeline
        self.chance = chance
        self.note = note
        self.slow_share = SLOW_SHARE
        self.blocked: dict[tuple[str, str], None] = {}
        self.paused: dict[str, None] = {}
        self._suspended: dict[str, list[Callable[[], None]]] = {}
        """Hosts whose processes stand still, and what is to wake their tasks when they go on."""
        self.doors: dict[Address, MemoryDoor] = {}
        self.connections: dict[Connection, None] = {}
        self._to_cut: dict[frozenset[str], int] = {}
        """Hosts, and how many sends between them come through before their connections break."""
        self._numbers = itertools.count(1)
        self._ports = itertools.count(40_000)
        self._changed = trio.Event()

    @property
    def has_cuts(self) -> bool:
        """Whether connections are to break before long."""
        return bool(self._to_cut)

    def latency(self) -> float:
        low, high = SLOW_LATENCY_SECONDS if self.chance.random() < self.slow_share else LATENCY_SECONDS
        return self.chance.uniform(low, high)

    def is_held(self, source: str, target: str) -> bool:
        """Whether nothing gets from one host to the other at the moment."""
        return (source, target) in self.blocked or source in self.paused or target in self.paused

    def block(self, source: str, target: str) -> None:
        """From now on nothing gets from one host to the other."""
        self.blocked[source, target] = None

    def unblock(self, source: str, target: str) -> None:
        self.blocked.pop((source, target), None)
        self._release()

    def pause(self, host: str) -> None:
        """From now on nothing gets to or from this host."""
        self.paused[host] = None

    def resume(self, host: str) -> None:
        self.paused.pop(host, None)
        self._release()

    def suspend(self, host: str) -> None:
        """From now on no task of the process at this host is woken."""
        self._suspended[host] = []

    def go_on(self, host: str) -> None:
        """Let its process see what has arrived meanwhile."""
        for wake in self._suspended.pop(host, ()):
            wake()
        self._change()

    def wake(self, host: str, wake: Callable[[], None]) -> None:
        """Call ``wake``, at once or when the process at this host goes on."""
        if host in self._suspended:
            self._suspended[host].append(wake)
        else:
            wake()

    def heal(self) -> None:
        """Let everything through."""
        self.blocked.clear()
        self.paused.clear()
        self._to_cut.clear()
        self._release()

    def _change(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def _release(self) -> None:
        self._change()
        for connection in tuple(self.connections):
            for way in connection.ways:
                way.release()

    def cut(self, one: str, other: str) -> None:
        """All connections between two hosts break, each behind some byte."""
        for connection in tuple(self.connections):
            if {end.host for end in connection.ends} == {one, other}:
                connection.cut()

    def cut_later(self, one: str, other: str, sends: int) -> None:
        """The same when they have sent so many times, so that something is under way."""
        self._to_cut[frozenset((one, other))] = sends

    def note_send(self, one: str, other: str) -> None:
        """One of two hosts has just sent something to the other."""
        hosts = frozenset((one, other))
        if hosts in self._to_cut:
            self._to_cut[hosts] -= 1
            if self._to_cut[hosts] <= 0:
                del self._to_cut[hosts]
                self.cut(one, other)

    def lose(self, host: str, *, is_silent: bool) -> None:
        """A process has ended, or, ``is_silent``, its machine: its connections end, and its doors close."""
        for address in [address for address in self.doors if address.host == host]:
            self.doors[address].close()
        for connection in tuple(self.connections):
            for end in connection.ends:
                if end.host == host:
                    end.die(is_silent=is_silent)

    async def connect(self, host: str, address: Address) -> "End":
        """A connection from ``host``.  Raises OSError if nobody listens there."""
        await trio.sleep(self.latency())
        while host in self._suspended or self.is_held(host, address.host) or self.is_held(address.host, host):
            await self._changed.wait()
            await trio.sleep(self.latency())
        door = self.doors.get(address)
        if door is None:
            raise ConnectionRefusedError(f"nobody listens at {address}")
        connection = Connection(self, next(self._numbers), host, address)
        self.connections[connection] = None
        near, far = connection.ends
        local = Address(host, next(self._ports))
        door.knock(Accepted(far, local, address))
        self.note(f"connection {connection.number} {local} to {address}")
        try:
            await trio.sleep(self.latency())
        except BaseException:
            near.close()
            raise
        return near


class Connection:
    """Two ends, and the ways between them."""

    def __init__(self, network: Network, number: int, source: str, target: Address) -> None:
        self.network = network
        self.number = number
        near, far = End(self, source), End(self, target.host)
        self.ends = near, far
        self.ways = Way(near, far), Way(far, near)
        near.way, far.way = self.ways

    def other(self, end: "End") -> "End":
        near, far = self.ends
        return far if end is near else near

    def cut(self) -> None:
        for way in self.ways:
            way.cut()

    def forget_if_over(self) -> None:
        if all(end.is_over for end in self.ends):
            self.network.connections.pop(self, None)


FIN: Final = b""
"""Stands among what is sent for "no more"."""


class Way:
    """From one end of a connection to the other.  What is sent arrives in order, each after a while."""

    def __init__(self, source: "End", target: "End") -> None:
        self.source = source
        self.target = target
        self._network = source.connection.network
        self._under_way: deque[bytes] = deque()
        self._waiting = 0
        """How many of the first are due, and wait behind a partition."""
        self._arrival = 0.0
        self._is_broken = False

    def send(self, data: bytes) -> None:
        if self._is_broken:
            return
        self._network.timeline.before_each()  # it may tell of what the same event undoes again
        self._under_way.append(data)
        self._schedule()
        if self._network.has_cuts:
            self._network.note_send(self.source.host, self.target.host)

    def _schedule(self) -> None:
        self._arrival = max(self._arrival, trio.current_time() + self._network.latency())
        self._network.timeline.at(self._arrival, self._arrive)

    def _arrive(self) -> None:
        if not self._under_way:
            return  # lost in a cut
        if self._waiting or self._network.is_held(self.source.host, self.target.host):
            self._waiting += 1
            return
        self._deliver(self._under_way.popleft())

    def release(self) -> None:
        """Let what waits behind a partition go on, if there is none any more."""
        if self._waiting and not self._network.is_held(self.source.host, self.target.host):
            waiting, self._waiting = self._waiting, 0
            for _ in range(waiting):
                self._schedule()

    def _deliver(self, data: bytes) -> None:
        number = self.source.connection.number
        name = f"{number} {self.source.host} {self.target.host}"
        if self.target.is_closed:
            if data is not FIN:
                self.target.way.source.connection.other(self.target).vanish("connection reset by peer")
        elif data is FIN:
            self._network.note(f"end {name}")
            self.target.end()
        else:
            self._network.note(f"bytes {name} {len(data)} {crc32(data):08x}")
            self.target.feed(data)

    def cut(self) -> None:
        """Of what is under way a part arrives, and then the target learns that the connection is gone."""
        if self._is_broken:
            return
        self._is_broken = True
        chance = self._network.chance
        data = b"".join(self._under_way)
        self._under_way.clear()
        kept = data[: chance.choice((0, len(data), chance.randrange(len(data) + 1)))]
        delay = self._network.latency()
        reset_at = trio.current_time() + delay
        target = self.target

        def arrive() -> None:
            if not target.is_closed:
                if kept:
                    target.feed(kept)
                self._network.note(
                    f"cut {target.connection.number} at {target.host} behind {len(kept)} bytes"
                )
                target.vanish("connection reset")

        self._network.timeline.at(reset_at, arrive)

    def fall_silent(self) -> None:
        """Nothing arrives any more, and the target finds out late."""
        self._is_broken = True
        self._under_way.clear()
        seconds = self._network.chance.uniform(0, SILENCE_SECONDS)
        target = self.target
        self._network.timeline.at(trio.current_time() + seconds, lambda: target.vanish("no route to host"))


class End:
    """One end of a connection: a ``Peer`` for whoever is at this host."""

    sends_files = False

    way: Way
    """To the other end."""

    def __init__(self, connection: Connection, host: str) -> None:
        self.connection = connection
        self.host = host
        self.transfers = 0
        self.is_closed = False
        self._incoming = bytearray()
        self._has_ended = False
        self._gone: str | None = None
        self._changed = trio.Event()

    @property
    def is_over(self) -> bool:
        return self.is_closed or self._gone is not None

    # What the network does.

    def feed(self, data: bytes) -> None:
        self._incoming += data
        self._change()

    def end(self) -> None:
        self._has_ended = True
        self._change()

    def vanish(self, reason: str) -> None:
        """What has arrived can still be read, then comes the bad news."""
        if self._gone is None:
            self._gone = reason
            self._change()
            self.connection.forget_if_over()

    def die(self, *, is_silent: bool) -> None:
        """The process at this end is no more."""
        if self.is_closed:
            return
        self._gone = "the process has died"
        self._incoming.clear()
        self._change()
        if is_silent:
            self.way.fall_silent()
        else:
            self.way.cut()
        self.is_closed = True
        self.connection.forget_if_over()

    def _change(self) -> None:
        self.connection.network.wake(self.host, self._wake)

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    # What the host does.

    def receive_nowait(self, space: memoryview) -> int | None:
        if self._incoming:
            count = min(len(space), len(self._incoming))
            space[:count] = self._incoming[:count]
            del self._incoming[:count]
            self.transfers += 1
            return count
        if self._gone is not None:
            raise PeerGone(self._gone)
        if self._has_ended:
            self.transfers += 1
            return 0
        return None

    async def wait_readable(self) -> None:
        await trio.lowlevel.checkpoint()
        while not (self._incoming or self._has_ended or self._gone):
            await self._changed.wait()

    async def send(self, data: bytes | bytearray, *, more: bool = False) -> None:
        if self._gone is not None:
            raise PeerGone(self._gone)
        self.transfers += 1
        if data:
            self.way.send(bytes(data))

    async def send_file(self, descriptor: int, position: int, size: int) -> None:
        raise AssertionError("there are no descriptors")

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            if self._gone is None:
                self.way.send(FIN)
            self.connection.forget_if_over()


class MemoryDoor:
    """A listener of a simulated host."""

    def __init__(self, network: Network, listener: Listener, address: Address) -> None:
        self.listener = listener
        self.address = address
        self._network = network
        self._waiting: deque[Accepted] = deque()
        self._changed = trio.Event()

    def knock(self, accepted: Accepted) -> None:
        self._waiting.append(accepted)
        self._network.wake(self.address.host, lambda: self._changed.set())

    def accept(self) -> Accepted | None:
        return self._waiting.popleft() if self._waiting else None

    async def wait(self) -> None:
        self._changed = trio.Event()
        await self._changed.wait()

    def close(self) -> None:
        if self._network.doors.get(self.address) is self:
            del self._network.doors[self.address]
        while self._waiting:
            self._waiting.popleft().peer.close()


class HostTransport:
    """How one process reaches the network, until it has died."""

    def __init__(self, network: Network, host: str) -> None:
        self._network = network
        self._host = host
        self.is_dead = False

    async def connect(self, address: Address, *, receive_buffer_bytes: int | None = None) -> Peer:
        self._check()
        end = await self._network.connect(self._host, address)
        if self.is_dead:
            end.close()
        self._check()
        return end

    def _check(self) -> None:
        if self.is_dead:
            raise ConnectionAbortedError("the process has died")

    def listen(self, bindings: Sequence[Binding], settings: NetworkSettings) -> Sequence[Door]:
        doors = []
        for binding in bindings:
            address = Address(self._host, binding.port)
            if address in self._network.doors:
                raise ListenError(f"{address} is in use")
            door = self._network.doors[address] = MemoryDoor(self._network, binding.listener, address)
            doors.append(door)
        return doors
