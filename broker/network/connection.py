"""One connection: receive, cut into requests, have them answered, send the answers in order.

One task does all of it.  A request that is answered at once costs no task and no hand-over, and the answers
to all requests of one receive leave in one send.
"""

from collections import deque
from typing import Protocol

import trio
from trio.lowlevel import (
    Abort,
    RaiseCancelT,
    Task,
    checkpoint,
    current_task,
    reschedule,
    wait_task_rescheduled,
)

from broker import limits
from broker.errors import CloseConnection
from broker.logs import Log
from broker.network.call import ConnectionState
from broker.network.inbox import Inbox
from broker.network.memory import FrameMemory
from broker.network.peer import Peer, PeerGone
from broker.network.sending import Part, RunBlocking, send_parts
from broker.network.timers import Timers
from broker.network.turns import Turns
from broker.network.waiting import NotYet, Waiting
from storage.errors import DiskFailure

_POISON = b"\xdb"


class Pending(Protocol):
    """A request that has started and has no answer yet."""

    @property
    def waiting(self) -> Waiting[object]:
        """Where the answer will be."""

    @property
    def may_overlap(self) -> bool:
        """Whether another request of the kind may start before this one is answered."""

    def finish(self) -> list[Part]:
        """The answer, once ``waiting`` has it; raises ``CloseConnection`` if there is none to give."""


class Dispatch(Protocol):
    """What is done with requests.  Never raises anything but ``CloseConnection``."""

    def may_overlap(self, frame: memoryview) -> bool:
        """Whether this request may start while earlier ones of its kind are not answered."""

    def start(self, frame: memoryview, connection: ConnectionState) -> list[Part] | Pending | NotYet:
        """Handle the request.  An empty list if it has no answer; ``NotYet`` if it must be started again."""


class Surroundings:
    """What all connections of a broker share."""

    __slots__ = ("frame_bytes_max", "log", "memory", "poison_frames", "run_blocking", "timers", "turns")

    def __init__(
        self,
        *,
        frame_bytes_max: int,
        memory: FrameMemory,
        timers: Timers,
        turns: Turns,
        log: Log,
        run_blocking: RunBlocking,
        poison_frames: bool = False,
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.memory = memory
        self.timers = timers
        self.turns = turns
        self.log = log
        self.run_blocking = run_blocking
        self.poison_frames = poison_frames


class Connection:
    """Serves one peer until it leaves, breaks the protocol, or is told to go.

    Requests start and are answered in the order in which they came.  While one is unanswered no other
    starts, except that those which ``may_overlap`` may follow each other.  Whenever too much is owed or the
    peer does not take its answers, nothing more is read: that is the back-pressure.

    What ``_owed`` holds, finished or pending, stands behind a pending answer at its head.
    """

    def __init__(
        self, peer: Peer, dispatch: Dispatch, state: ConnectionState, surroundings: Surroundings
    ) -> None:
        self.state = state
        self._peer = peer
        self._dispatch = dispatch
        self._surroundings = surroundings
        self._inbox = Inbox(surroundings.frame_bytes_max)
        self._ready: list[Part] = []
        self._ready_bytes = 0
        self._owed: deque[Pending | list[Part]] = deque()
        self._sending = False
        self._more_expected = False
        self._parked: Task | None = None
        self._reading: trio.CancelScope | None = None
        self._scope = trio.CancelScope()
        self._close_reason: str | None = None
        # Kept by whoever watches for idle connections: the last count of transfers, and since when.
        self.quiet_transfers = 0
        self.quiet_since = 0.0

    async def serve(self) -> None:
        """Serve until the end.  Nothing but ``Cancelled`` escapes."""
        reason: str | None = None
        try:
            with self._scope:
                reason = await self._run()
            if self._scope.cancelled_caught:
                reason = self._close_reason
        except PeerGone as gone:
            self._surroundings.log.debug(f"{self.state} has gone: {gone}")
        except (EOFError, OSError, DiskFailure) as error:
            reason = f"the records of an answer cannot be read: {error}"
        except Exception as error:
            self._surroundings.log.failure(f"serving {self.state} failed", error)
        finally:
            self._end()
        if reason is not None:
            self._surroundings.log.warn_seldom(
                f"closed the connection of {self.state}: {reason}", about=f"{self.state.peer.host}: {reason}"
            )

    def close(self, reason: str | None) -> None:
        """Close at once, from outside, with a line in the log unless there is no ``reason``."""
        self._close_reason = reason
        self._scope.cancel()

    @property
    def is_closing(self) -> bool:
        """Whether it has been told to go."""
        return self._scope.cancel_called

    @property
    def transfers(self) -> int:
        """Counts movements of bytes in either direction."""
        return self._peer.transfers

    @property
    def has_large_request(self) -> bool:
        """Whether a request is arriving that needs memory of its own."""
        return self._inbox.is_large

    @property
    def has_unfinished_request(self) -> bool:
        """Whether a request has begun to arrive and not ended."""
        return not self._inbox.is_empty

    @property
    def is_sending(self) -> bool:
        """Whether the peer has not taken the last answers yet."""
        return self._sending

    @property
    def owes_nothing(self) -> bool:
        """Whether closing now loses no answer that somebody needs."""
        return not (self._ready or self._sending) and all(
            not isinstance(owed, list) and owed.waiting.droppable and not owed.waiting.is_answered
            for owed in self._owed
        )

    def shrink(self) -> None:
        """Give back memory that a quiet connection does not need."""
        self._inbox.shrink()

    async def _run(self) -> str | None:
        """Serve; why the connection has to be closed, or None if the peer has finished."""
        try:
            while await self._receive():
                await self._handle_frames()
                await self._flush()
            await self._settle()
        except CloseConnection as closing:
            # What was asked before the offence is still answered.
            try:
                await self._settle()
            except (CloseConnection, PeerGone):
                pass
            return closing.reason
        return None

    async def _receive(self) -> bool:
        """Wait for bytes, sending answers that become ready meanwhile.  False when the peer has no more."""
        inbox, peer = self._inbox, self._peer
        if self.state.deaf_until:
            await self._wait_until_heard()
        wanted = inbox.wanted
        if wanted:
            memory = self._surroundings.memory
            left = inbox.grow(await memory.borrow(self, wanted))
            if left is not None:
                memory.give_back(self, left, finished=False)
        if self._more_expected:
            count = await self._receive_long() if inbox.is_large else peer.receive_nowait(inbox.space())
            if count is not None:
                self._more_expected = inbox.received(count)
                await checkpoint()  # a peer that always has bytes must not starve the others
                return count > 0
        while True:
            if not self._owed:
                await peer.wait_readable()
            elif not await self._wait_readable_or_answered():
                continue
            count = await self._receive_long() if inbox.is_large else peer.receive_nowait(inbox.space())
            if count is not None:
                self._more_expected = inbox.received(count)
                return count > 0

    async def _receive_long(self) -> int | None:
        """Receive more of a large request, in turn with others that do."""
        turns = self._surroundings.turns
        await turns.take()
        with turns:
            return self._peer.receive_nowait(self._inbox.space())

    async def _handle_frames(self) -> None:
        """Start every request that is complete."""
        dispatch, state, inbox, owed = self._dispatch, self.state, self._inbox, self._owed
        poison = self._surroundings.poison_frames
        for handled, frame in enumerate(inbox.frames(), 1):
            if state.deaf_until:
                await self._wait_until_heard()
            if owed and not dispatch.may_overlap(frame):
                await self._settle()
            if len(frame) < limits.LONG_STEP_BYTES:
                outcome = dispatch.start(frame, state)
            else:
                turns = self._surroundings.turns
                await turns.take()
                with turns:
                    outcome = dispatch.start(frame, state)
            if isinstance(outcome, NotYet):
                outcome = await self._start_later(frame, outcome)
            if isinstance(outcome, list):
                if poison:
                    frame[:] = _POISON * len(frame)
                if owed:
                    owed.append(outcome)
                else:
                    self._add_ready(outcome)
            else:
                self._owe(outcome)
                if outcome.waiting.exclusive:
                    await self._wait_released(outcome.waiting)
                if poison:
                    frame[:] = _POISON * len(frame)
                if not outcome.may_overlap:
                    await self._settle()
            if len(owed) >= limits.REQUESTS_IN_FLIGHT_MAX:
                await self._wait_fewer_owed()
            if self._ready_bytes >= limits.READY_BYTES_MAX or not handled % limits.FRAMES_BEFORE_YIELD:
                await self._flush()
                await checkpoint()
        if inbox.lent is not None:
            self._surroundings.memory.give_back(self, inbox.lent)
            inbox.lent = None

    async def _wait_until_heard(self) -> None:
        """Send what is owed, and be deaf for as long as the client is throttled."""
        while self.state.deaf_until:
            await self._settle()
            until = self.state.deaf_until
            await trio.sleep_until(until)
            if self.state.deaf_until == until:
                self.state.deaf_until = 0.0

    async def _start_later(self, frame: memoryview, outcome: NotYet) -> list[Part] | Pending:
        """Start a request again as soon as it can be handled; those before it are answered meanwhile."""
        while True:
            waiting = outcome.waiting
            waiting.notify(self._wake)
            await self._flush()
            while not waiting.is_answered:
                await self._park()
                await self._flush()
            turns = self._surroundings.turns
            await turns.take()
            with turns:
                again = self._dispatch.start(frame, self.state)
            if not isinstance(again, NotYet):
                return again
            outcome = again

    def _add_ready(self, parts: list[Part]) -> None:
        self._ready += parts
        if len(parts) == 1:
            self._ready_bytes += len(parts[0])  # type: ignore[arg-type]  # the first part is always bytes
        elif parts:
            self._ready_bytes += limits.READY_BYTES_MAX  # an answer with records leaves at once

    def _owe(self, pending: Pending) -> None:
        self._owed.append(pending)
        waiting = pending.waiting
        if not waiting.is_answered:
            waiting.notify(self._wake)
            self._surroundings.timers.add(waiting)

    async def _flush(self) -> None:
        """Send everything up to the first request that is not answered."""
        while True:
            while self._owed:
                head = self._owed[0]
                if isinstance(head, list):
                    parts = head
                elif head.waiting.is_answered:
                    try:
                        parts = head.finish()
                    except CloseConnection:
                        self._abandon_owed()
                        await self._send_ready()
                        raise
                else:
                    break
                self._owed.popleft()
                self._add_ready(parts)
            if not self._ready:
                return
            await self._send_ready()

    async def _send_ready(self) -> None:
        if not self._ready:
            return
        parts, self._ready = self._ready, []
        self._ready_bytes = 0
        self._sending = True
        first = parts[0]
        if len(parts) == 1 and isinstance(first, bytearray):
            await self._peer.send(first)
        else:
            await send_parts(self._peer, parts, self._surroundings.run_blocking)
        self._sending = False

    async def _settle(self) -> None:
        """Wait until everything is answered, and send it."""
        await self._flush()
        while self._owed:
            await self._park()
            await self._flush()

    async def _wait_released(self, waiting: Waiting[object]) -> None:
        """Wait until the bytes of a request are not needed any longer."""
        await self._flush()
        while waiting.exclusive and not waiting.is_answered:
            await self._park()
            await self._flush()

    async def _wait_fewer_owed(self) -> None:
        await self._flush()
        while len(self._owed) >= limits.REQUESTS_IN_FLIGHT_MAX:
            await self._park()
            await self._flush()

    async def _wait_readable_or_answered(self) -> bool:
        """Whether there may be something to read."""
        await self._flush()
        if not self._owed:
            return False
        with trio.CancelScope() as self._reading:
            await self._peer.wait_readable()
        is_answered = self._reading.cancelled_caught
        self._reading = None
        return not is_answered

    async def _park(self) -> None:
        """Sleep until a waiting is answered or released.  One step of the scheduler, no more, on waking."""

        def abort(_: RaiseCancelT) -> Abort:
            self._parked = None
            return Abort.SUCCEEDED

        self._parked = current_task()
        await wait_task_rescheduled(abort)

    def _wake(self) -> None:
        if self._parked is not None:
            task, self._parked = self._parked, None
            reschedule(task)
        elif self._reading is not None:
            self._reading.cancel()

    def _abandon_owed(self) -> None:
        while self._owed:
            owed = self._owed.popleft()
            if not isinstance(owed, list):
                owed.waiting.abandon()

    def _end(self) -> None:
        # A thread may still be reading the bytes of an exclusive request: nobody else may get them.
        in_use = any(not isinstance(owed, list) and owed.waiting.exclusive for owed in self._owed)
        self._abandon_owed()
        self._ready.clear()
        for buffer in (self._inbox.lent, self._inbox.abandon()):
            if buffer is not None:
                self._surroundings.memory.give_back(self, buffer, reusable=not in_use)
        self._peer.close()
        try:
            self.state.closed()
        except Exception as error:
            self._surroundings.log.failure(f"the end of {self.state} was met with an error", error)
