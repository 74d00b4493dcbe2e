"""A node of the simulated cluster: a disk that outlives its processes, and the process that runs now."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from io import TextIOBase
from random import Random
from typing import TYPE_CHECKING, Final, TextIO, TypeVar, cast

import trio
import trio.testing

from broker.app import EXPECTED_FAILURES, Ready, serve
from broker.config.broker_config import BrokerConfig
from broker.identifiers import Identifiers
from broker.logs import Log
from broker.services import Services
from storage.memory_filesystem import MemoryFileSystem
from tests.simulation.clock import SimulatedClock
from tests.simulation.network import HostTransport
from tests.simulation.suspension import Suspension

if TYPE_CHECKING:
    from storage.partition_log import FlushJob
    from tests.simulation.world import World

Result = TypeVar("Result")

BLOCKING_SECONDS: Final = (0.0, 0.002)
SLOW_BLOCKING_SECONDS: Final = (0.002, 0.3)
SLOW_SHARE: Final = 0.02

SECTOR_BYTES: Final = 512


class SimulatedServices(Services):
    """Waits instead of calling threads, and then does what they would have done."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    async def run_blocking(self, function: Callable[..., Result], *arguments: object) -> Result:
        await trio.lowlevel.checkpoint_if_cancelled()
        low, high = SLOW_BLOCKING_SECONDS if self._chance.random() < SLOW_SHARE else BLOCKING_SECONDS
        with trio.CancelScope(shield=True):
            await trio.sleep(self._chance.uniform(low, high))
        return function(*arguments)

    def run_jobs(self, jobs: "list[FlushJob]") -> None:
        for job in jobs:
            job.run()


class SimulatedLog(Log):
    """Writes into the history; what nobody expected ends the simulation."""

    def __init__(self, node: "Node", now_ms: Callable[[], int]) -> None:
        super().__init__(cast("TextIO", _Lines(node)), now_ms=now_ms)
        self._node = node

    def failure(self, message: str, error: BaseException) -> None:
        super().failure(message, error)
        self._node.fail(message, error)


class _Lines(TextIOBase):
    """A text stream whose lines are events."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._incarnation = node.incarnation

    def write(self, text: str) -> int:
        if self._node.incarnation == self._incarnation:
            for line in text.splitlines():
                self._node.world.note(f"node {self._node.id}: {line}")
        return len(text)


class Disk(MemoryFileSystem):
    """A file system that can call somebody in the middle of what is done with it."""

    def __init__(self, *, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms=now_ms)
        self._changes_left = 0
        self._then: Callable[[], None] | None = None

    def interrupt(self, changes: int, then: Callable[[], None]) -> None:
        """Call ``then`` just before so many changes from now."""
        self._changes_left = changes
        self._then = then

    def leave_alone(self) -> None:
        """Forget faults that have not happened, and make room."""
        self._then = None
        self.capacity = None
        self.refuse_nothing()

    def _mutates(self) -> bool:
        if self._then is not None:
            self._changes_left -= 1
            if self._changes_left <= 0:
                then, self._then = self._then, None
                then()
        return False


class Node:
    """``services`` are those of the process that runs, else None."""

    def __init__(self, world: "World", node_id: int, settings: Mapping[str, str]) -> None:
        self.world = world
        self.id = node_id
        self.host = f"10.0.0.{node_id}"
        self.settings = settings
        self.incarnation = 0
        self.services: Services | None = None
        self.is_ready = False
        self.clock = SimulatedClock(world.trio_clock)
        self.disk = Disk(now_ms=self.clock.now_ms)
        self._scope: trio.CancelScope | None = None
        self._stop = trio.Event()
        self._ended = trio.Event()
        self._transport: HostTransport | None = None
        self._suspension: Suspension | None = None
        self._is_at_peace = False

    @property
    def is_running(self) -> bool:
        return self.services is not None

    def start(self) -> None:
        """Begin another process, unless one runs.

        If an fsync has failed, only after the machine was started anew: it would go on showing what it has
        not written.
        """
        if self.services is not None:
            return
        if self.disk.failed_syncs:
            self.disk.failed_syncs = 0
            self.disk.lose_power(
                Random(f"{self.world.seed} {trio.current_time()}"), sector_bytes=SECTOR_BYTES
            )
        self.incarnation += 1
        seed = f"{self.world.seed} node {self.id} {self.incarnation}"
        self.world.note(f"start node {self.id}")
        services = SimulatedServices(Random(f"{seed} blocking"))
        services.clock = self.clock
        services.log = SimulatedLog(self, self.clock.now_ms)
        services.identifiers = Identifiers()
        services.identifiers.random = Random(f"{seed} identifiers")
        services.transport = self._transport = HostTransport(self.world.network, self.host)
        self.services = services
        self.is_ready = False
        self._stop = trio.Event()
        self._ended = trio.Event()
        self._scope = trio.CancelScope()
        self.world.nursery.start_soon(self._run, services, self.incarnation, self._scope, self._ended)

    async def _run(
        self, services: Services, incarnation: int, scope: trio.CancelScope, ended: trio.Event
    ) -> None:
        ends_by_itself = False
        try:
            with scope:
                await serve(
                    services,
                    BrokerConfig(self.settings),
                    self._stop,
                    cluster_id=self.world.cluster_id,
                    on_ready=partial(self._ready, incarnation),
                    file_system=self.disk,
                )
        except BaseException as error:
            unexpected = _without_cancellation(error)
            if self.incarnation != incarnation or self.services is not services:
                unexpected = None  # it is dead, and what it says does not matter
            elif unexpected is not None and _is_expected(unexpected):
                self.world.note(f"node {self.id} ends: {_reason(unexpected)}")
                ends_by_itself = True
            elif unexpected is not None:
                self.fail("the broker ended", unexpected)
            cancellation = _cancellation(error)
            if cancellation is not None:
                raise cancellation from None  # what else went wrong has been told
        finally:
            ended.set()
            if self.services is services:
                self._lose_process(is_silent=False)
                self.disk.kill()
                if self._is_at_peace and ends_by_itself:  # of what befell it before
                    self.start()

    def _ready(self, incarnation: int, ready: Ready) -> None:
        if incarnation == self.incarnation and self.services is not None:
            self.world.note(f"node {self.id} is ready")
            self.is_ready = True

    def fail(self, message: str, error: BaseException) -> None:
        """Something happened in the broker that nobody expected."""
        self.world.fail(AssertionError(f"node {self.id}: {message}: {error!r}"), error)

    def kill(self) -> None:
        """As ``kill -9``: what was written stays."""
        if self.services is not None:
            self.world.note(f"kill node {self.id}")
            self._end_process(is_silent=False)

    def lose_power(self, chance: Random) -> None:
        """What was not fsynced is lost, or a part of it."""
        if self.services is not None:
            self.world.note(f"node {self.id} loses power")
            self._end_process(is_silent=True)
        self.disk.lose_power(chance, sector_bytes=SECTOR_BYTES)

    async def stop(self) -> None:
        """Stop gracefully, and wait for that; a process that stands still does not see the signal before."""
        if self._suspension is not None:
            await self._suspension.over.wait()
        if self.services is not None:
            self.world.note(f"stop node {self.id}")
            self._stop.set()
            await self._ended.wait()

    async def suspend(self, seconds: float) -> None:
        """As between SIGSTOP and SIGCONT: its tasks do nothing, and time goes on without them."""
        await trio.testing.wait_all_tasks_blocked()
        if self._scope is None or self._suspension is not None:
            return
        self.world.note(f"suspend node {self.id}")
        self.world.network.suspend(self.host)
        suspension = self._suspension = Suspension(self._scope)
        try:
            with trio.move_on_after(seconds):
                await suspension.over.wait()
        finally:
            self._go_on(suspension)

    def _go_on(self, suspension: Suspension | None) -> None:
        if suspension is not None and self._suspension is suspension:
            self.world.note(f"node {self.id} goes on")
            self._suspension = None
            self.world.network.go_on(self.host)
            suspension.end()

    async def begin_peace(self) -> None:
        """Run from now on; a stop that has begun comes to its end before."""
        self._is_at_peace = True
        if self._stop.is_set():
            await self._ended.wait()
        self.start()

    def _end_process(self, *, is_silent: bool) -> None:
        """The old process keeps a disk of its own, on which it may finish what it cannot leave undone."""
        self.world.check()  # it may have answered somebody since the last event
        disk = Disk(now_ms=self.clock.now_ms)
        disk._root = copy.deepcopy(self.disk._root)
        self.disk = disk
        scope = self._scope
        self._lose_process(is_silent=is_silent)
        if scope is not None:
            scope.cancel()

    def _lose_process(self, *, is_silent: bool) -> None:
        self.services = None
        self.is_ready = False
        self._scope = None
        if self._transport is not None:
            self._transport.is_dead = True
        self.world.network.lose(self.host, is_silent=is_silent)
        self._go_on(self._suspension)


def _without_cancellation(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1]
    return None if isinstance(error, trio.Cancelled) else error


def _cancellation(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[0]
    return error if isinstance(error, trio.Cancelled) else None


def _is_expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_expected(each) for each in error.exceptions)
    return isinstance(error, EXPECTED_FAILURES)


def _reason(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(_reason(each) for each in error.exceptions))
    return str(error)
