"""A small protocol of words in place of Kafka's, to test what a connection does with requests and answers."""

import io
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import cast

import trio

from broker.errors import CloseConnection
from broker.logs import Level, Log
from broker.network.call import Address, ConnectionState, Listener
from broker.network.connection import Connection, Pending, Surroundings
from broker.network.memory import FrameMemory
from broker.network.sending import Part
from broker.network.timers import Timers
from broker.network.turns import Turns
from broker.network.waiting import NotYet, Waiting
from tests.broker.network.memory_peer import MemoryPeer


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def unframed(data: bytes) -> list[bytes]:
    """The bodies in ``data``, which must end with the end of one."""
    bodies = []
    position = 0
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4 + size
        assert position <= len(data)
        bodies.append(data[position - size : position])
    return bodies


class StubPending:
    """A request whose answer the test gives through ``waiting``."""

    def __init__(self, waiting: Waiting[object], *, may_overlap: bool) -> None:
        self.waiting = waiting
        self.may_overlap = may_overlap

    def finish(self) -> list[Part]:
        result = self.waiting.result()
        assert isinstance(result, bytes | None)
        return [] if result is None else [framed(result)]


class StubDispatch:
    """Answers words.

    ``now…`` is answered at once with itself, ``silent`` with nothing, ``wait…`` when the test says so,
    ``over…`` likewise but such requests may overlap, ``held…`` likewise but keeping its bytes, ``later…``
    when the test has said so as often as ``not_yet`` tells, ``bad…`` closes, ``deaf…`` is answered with
    itself, and nothing is heard for ten seconds.  Other words are looked up in ``answers``.
    """

    def __init__(self) -> None:
        self.started: list[bytes] = []
        self.frames: list[memoryview] = []
        self.waitings: dict[bytes, Waiting[object]] = {}
        self.answers: dict[bytes, Callable[[], list[Part]]] = {}
        self.not_yet = 1
        self.make_waiting: Callable[[bytes], Waiting[object]] = lambda word: Waiting(
            exclusive=word.startswith(b"held")
        )

    def may_overlap(self, frame: memoryview) -> bool:
        return bytes(frame[:4]) in (b"over", b"held")

    def start(self, frame: memoryview, connection: ConnectionState) -> list[Part] | Pending | NotYet:
        assert not frame.readonly
        word = bytes(frame)
        self.started.append(word[:20])
        self.frames.append(frame)
        if word in self.answers:
            return self.answers[word]()
        if word.startswith(b"bad"):
            raise CloseConnection(f"{word.decode()} is not a word")
        if word.startswith(b"deaf"):
            connection.mute(trio.current_time() + 10)
        if word.startswith((b"wait", b"over", b"held")):
            waiting = self.waitings[word] = self.make_waiting(word)
            return StubPending(waiting, may_overlap=self.may_overlap(frame))
        if word.startswith(b"later") and self.not_yet:
            self.not_yet -= 1
            made: Waiting[None] = Waiting()
            self.waitings[word] = cast(Waiting[object], made)
            return NotYet(made)
        return [] if word == b"silent" else [framed(word)]


class Served:
    """A connection under test, with everything around it."""

    def __init__(self, *, frame_bytes_max: int = 1 << 20, memory_bytes_max: int = 1 << 30) -> None:
        self.output = io.StringIO()
        self.log = Log(self.output, level=Level.WARN)
        self.timers = Timers(self.log)
        self.turns = Turns()
        self.memory = FrameMemory(memory_bytes_max)
        self.dispatch = StubDispatch()
        self.blocking_calls = 0
        self.surroundings = Surroundings(
            frame_bytes_max=frame_bytes_max,
            memory=self.memory,
            timers=self.timers,
            turns=self.turns,
            log=self.log,
            run_blocking=self._run_blocking,
            poison_frames=True,
        )
        self.peer = MemoryPeer()
        self.connection = self.connect(self.peer)

    def connect(self, peer: MemoryPeer) -> Connection:
        state = ConnectionState(1, Listener("TEST"), Address("10.0.0.7", 4711), Address("10.0.0.1", 9092))
        return Connection(peer, self.dispatch, state, self.surroundings)

    @property
    def log_lines(self) -> list[str]:
        """What was logged, without date and time."""
        return [line[24:] for line in self.output.getvalue().splitlines()]

    @property
    def answers(self) -> list[bytes]:
        return unframed(self.peer.received)

    async def exchange(self, *words: bytes) -> list[bytes]:
        """Send words in one packet, wait until all is quiet, and return all answers so far."""
        self.peer.feed(framed(*words))
        await trio.testing.wait_all_tasks_blocked()
        return self.answers

    async def _run_blocking(self, function: Callable[[], object]) -> object:
        self.blocking_calls += 1
        await trio.lowlevel.checkpoint()
        return function()


@asynccontextmanager
async def serving(served: Served) -> AsyncGenerator[None]:
    """Serve the connection of ``served`` inside the block, and end it afterwards."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.timers.run)
        nursery.start_soon(served.connection.serve)
        await trio.testing.wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()
