"""Accept at the listeners, keep account of who is inside, and close in order."""

import errno
import itertools
import math
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio
from trio.lowlevel import checkpoint

from broker import limits
from broker.logs import Log
from broker.network.binding import Accepted, Door
from broker.network.call import ConnectionState, Listener
from broker.network.connection import Connection, Dispatch, Surroundings
from broker.network.memory import FrameMemory
from broker.network.peer import Peer
from broker.network.sending import RunBlocking
from broker.network.settings import NetworkSettings
from broker.network.timers import Timers
from broker.network.turns import Turns
from broker.network.waiting import Waiting
from broker.quotas.connections import AddressLimits, ConnectionLimits, ConnectionQuotas
from broker.quotas.desk import now_ms
from storage.wording import counted

_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Neither descriptor nor memory is left for another socket."""

_SWEEP_SECONDS_MAX: Final = 30.0
_SWEEP_SECONDS_MIN: Final = 0.05
_SWEEP_SECONDS_WHEN_SHORT: Final = 1.0


@asynccontextmanager
async def serve_listeners(
    bound: Sequence[Door],
    dispatch_for: Callable[[Listener], Dispatch],
    settings: NetworkSettings,
    *,
    log: Log,
    run_blocking: RunBlocking,
    sockets_max: int = sys.maxsize,
    poison_frames: bool = False,
) -> AsyncGenerator["Network"]:
    """Accept and serve until the block is left, which is a graceful stop.

    First nobody is let in any more, then each connection is closed as soon as it owes nothing, at the
    latest after ``DRAIN_SECONDS``.  ``sockets_max`` is how many connections the process has descriptors
    for: those beyond wait.  ``poison_frames`` overwrites each request once its
    handler has returned, so that a handler which keeps a view of it is found out.
    """
    network = Network(
        settings,
        log=log,
        run_blocking=run_blocking,
        sockets_max=sockets_max,
        poison_frames=poison_frames,
    )
    try:
        async with trio.open_nursery() as connections:
            connections.start_soon(network.timers.run)
            connections.start_soon(network.watch_quiet)
            async with trio.open_nursery() as doors:
                for opened in bound:
                    doors.start_soon(network.accept, opened, dispatch_for(opened.listener), connections)
                yield network
                doors.cancel_scope.cancel()
            for opened in bound:
                opened.close()
            await network.drain()
            connections.cancel_scope.cancel()
    finally:
        network.close_refused()
        for opened in bound:
            opened.close()


class Network:
    """The connections of a broker, whichever listener they came through."""

    def __init__(
        self,
        settings: NetworkSettings,
        *,
        log: Log,
        run_blocking: RunBlocking,
        sockets_max: int = sys.maxsize,
        poison_frames: bool = False,
    ) -> None:
        self.settings = settings
        self.sockets_max = sockets_max
        self.log = log
        self.timers = Timers(log)
        self.turns = Turns()
        self.memory = FrameMemory(settings.queued_request_bytes_max)
        self.connections: set[Connection] = set()
        self._surroundings = Surroundings(
            frame_bytes_max=settings.request_bytes_max,
            memory=self.memory,
            timers=self.timers,
            turns=self.turns,
            log=log,
            run_blocking=run_blocking,
            poison_frames=poison_frames,
        )
        self._numbers = itertools.count(1)
        self._quotas = {
            is_controller: ConnectionQuotas(of_role, settings.windows)
            for is_controller, of_role in _limits(settings)
        }
        self._refused: dict[Peer, None] = {}
        self._room_changed = trio.Event()

    def apply(self, settings: NetworkSettings) -> None:
        """Take over how many connections there may be; the other settings hold from the start."""
        for is_controller, of_role in _limits(settings):
            self._quotas[is_controller].limits = of_role
            self._close_excess(is_controller=is_controller)
        self._wake_doors()

    def apply_addresses(self, limits: AddressLimits) -> None:
        """Take over how soon addresses may come again."""
        for quotas in self._quotas.values():
            quotas.apply_addresses(limits)

    async def accept(self, door: Door, dispatch: Dispatch, nursery: trio.Nursery) -> None:
        """Let clients in through one listener until cancelled; ``nursery`` keeps their connections."""
        while True:
            await self._wait_files(door.listener)
            try:
                accepted = door.accept()
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self.log.warn_seldom(
                        f"{door.listener.name} can accept nobody at the moment: {error.strerror} "
                        f"({counted(len(self.connections), 'connection')} open)",
                        about=f"{door.listener.name}: {error.errno}",
                    )
                    await trio.sleep(limits.ACCEPT_RETRY_SECONDS)
                elif error.errno in (errno.EBADF, errno.ENOTSOCK, errno.EINVAL):
                    raise
                else:  # what befell a client between its connecting and now, see accept(2)
                    await checkpoint()
                continue
            if accepted is None:
                await door.wait()
                continue
            try:
                await self._wait_room(door.listener)
            except BaseException:
                accepted.peer.close()
                raise
            connection = self._admit(accepted, door.listener, dispatch)
            if connection is not None:
                nursery.start_soon(self.serve, connection)
            await checkpoint()  # a crowd at the door must not starve those inside

    def enter(self, peer: Peer, state: ConnectionState, dispatch: Dispatch) -> Connection:
        """Count a peer among those inside; ``serve`` must follow."""
        connection = Connection(peer, dispatch, state, self._surroundings)
        connection.quiet_since = trio.current_time()
        self.connections.add(connection)
        self._quotas[state.listener.is_controller].enter(state.listener.name, state.peer.host)
        if state.listener.name == self._quotas[state.listener.is_controller].limits.protected:
            self._close_excess(is_controller=state.listener.is_controller)
        return connection

    async def serve(self, connection: Connection) -> None:
        """Serve a connection to its end."""
        try:
            await connection.serve()
        finally:
            self.connections.discard(connection)
            state = connection.state
            self._quotas[state.listener.is_controller].leave(state.listener.name, state.peer.host)
            self._wake_doors()

    async def watch_quiet(self) -> None:
        """Close connections that are idle for too long, and let quiet ones give memory back."""
        idle_max = self.settings.idle_ms_max / 1000 if self.settings.idle_ms_max >= 0 else math.inf
        period = min(_SWEEP_SECONDS_MAX, max(_SWEEP_SECONDS_MIN, idle_max / 10))
        while True:
            if self.memory.is_short:
                await trio.sleep(min(period, _SWEEP_SECONDS_WHEN_SHORT))
            else:
                with trio.move_on_after(period):
                    await self.memory.wait_short()
            self._sweep(trio.current_time(), idle_max)

    async def drain(self) -> None:
        """Close every connection as soon as it owes nothing; the others are left after a while."""
        with trio.move_on_after(limits.DRAIN_SECONDS):
            while self.connections:
                for connection in self.connections:
                    if connection.owes_nothing:
                        connection.close(None)
                await trio.sleep(0.01)
        if self.connections:
            self.log.info(f"closed {counted(len(self.connections), 'connection')} before an answer was sent")

    def _admit(self, accepted: Accepted, listener: Listener, dispatch: Dispatch) -> Connection | None:
        peer = accepted.address
        quotas = self._quotas[listener.is_controller]
        throttle_ms = quotas.refuse(listener.name, peer.host, now_ms())
        if throttle_ms:
            self._refuse(accepted.peer, throttle_ms)
            return None
        if quotas.is_full_for(peer.host):
            limit = quotas.limits.of_address(peer.host)
            self.log.warn_seldom(
                f"{peer.host} has as many connections as one address may have: {limit}; "
                f"closed {peer} ({listener.name})",
                about=f"{peer.host}: {limit}",
            )
            accepted.peer.close()
            return None
        state = ConnectionState(next(self._numbers), listener, peer, accepted.local_address)
        return self.enter(accepted.peer, state, dispatch)

    def _refuse(self, connected: Peer, throttle_ms: int) -> None:
        """Keep somebody outside for a while, and close then: it would come again at once."""

        def close() -> None:
            self._refused.pop(connected, None)
            connected.close()
            self._wake_doors()

        self._refused[connected] = None
        self.timers.add(Waiting(trio.current_time() + throttle_ms / 1000, close))

    def close_refused(self) -> None:
        """Keep nobody outside any longer."""
        for connected in self._refused:
            connected.close()

    @property
    def _has_files(self) -> bool:
        return len(self.connections) + len(self._refused) < self.sockets_max

    async def _wait_files(self, listener: Listener) -> None:
        """Wait until the process may open another file."""
        while not self._has_files:
            self._warn_full(listener, self.sockets_max, "the limit of open files")
            await self._room_changed.wait()

    async def _wait_room(self, listener: Listener) -> None:
        """Wait until it is time for another connection, and there is room for it."""
        quotas = self._quotas[listener.is_controller]
        throttle_ms = quotas.knock(listener.name, now_ms())
        if throttle_ms:
            await trio.sleep(throttle_ms / 1000)
        while not quotas.has_room(listener.name):
            of_listener = quotas.limits.of_listener(listener.name)
            limit = min(of_listener.connections_max, quotas.limits.connections_max)
            self._warn_full(listener, limit, "max.connections")
            await self._room_changed.wait()

    def _warn_full(self, listener: Listener, limit: int, cause: str) -> None:
        self.log.warn_seldom(f"{listener.name} lets clients wait, as {limit} connections are open ({cause})")

    def _close_excess(self, *, is_controller: bool) -> None:
        """Close the connections that have been quiet for the longest time while there are too many."""
        quotas = self._quotas[is_controller]
        if not quotas.excess:
            return
        open_ones = [each for each in self.connections if each.state.listener.is_controller is is_controller]
        excess = quotas.excess - sum(each.is_closing for each in open_ones)
        candidates = [
            each
            for each in open_ones
            if not each.is_closing and each.state.listener.name != quotas.limits.protected
        ]
        candidates.sort(key=_last_used)
        for connection in candidates[: max(excess, 0)]:
            connection.close("there are more connections than max.connections")

    def _wake_doors(self) -> None:
        self._room_changed.set()
        self._room_changed = trio.Event()

    def _sweep(self, now: float, idle_max: float) -> None:
        memory = self.memory
        for connection in self.connections:
            if connection.transfers != connection.quiet_transfers:
                connection.quiet_transfers = connection.transfers
                connection.quiet_since = now
                continue
            quiet = now - connection.quiet_since
            if quiet >= idle_max:
                self._close_idle(connection, quiet)
            elif (
                memory.is_short
                and quiet >= limits.UNFINISHED_REQUEST_STALL_SECONDS
                and connection.has_large_request
                and not memory.is_waiting(connection)
            ):
                connection.close(
                    f"memory is short, and for {quiet:.0f} s it has sent nothing of a large request"
                )
            elif quiet >= _SWEEP_SECONDS_MAX:
                connection.shrink()

    def _close_idle(self, connection: Connection, quiet: float) -> None:
        """Idle clients are ordinary and closed without a line; those which leave something half done are
        not."""
        if connection.is_sending:
            connection.close(f"it has taken nothing of its answers for {quiet:.0f} s")
        elif connection.has_unfinished_request:
            connection.close(f"it has sent no more of an unfinished request for {quiet:.0f} s")
        else:
            self.log.debug(f"{connection.state} is closed after {quiet:.0f} s without a request")
            connection.close(None)


def _limits(settings: NetworkSettings) -> tuple[tuple[bool, ConnectionLimits], ...]:
    """Those of the broker's listeners, and of the controller's."""
    return (False, settings.connections), (True, settings.connections_of_controllers)


def _last_used(connection: Connection) -> tuple[bool, float, int]:
    """A key that sorts by the time since which a connection is quiet, as far as that is known."""
    has_moved = connection.transfers != connection.quiet_transfers
    return has_moved, connection.quiet_since, connection.state.number
