"""The controller at work: commands in, committed records and answers out.

Commands that arrive while the disk is busy share its next fsync.  Each is decided against the image
that all commands before it have left, is written as one batch, and is answered once that batch is
committed (on the device, and on that of the other voter if there is one) and every listener has seen the
image it made.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import trio

from broker.clock import monotonic_ms
from broker.controller.decision import RECORDS_PER_BATCH, Command, LongDecision
from broker.flushing import run_flush
from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges
from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from storage.errors import DiskFailure

if TYPE_CHECKING:
    from broker.controller.chores import Chores
    from broker.controller.sessions import BrokerSessions
    from broker.metadata.feed import MetadataFeed
    from broker.network.dispatch import Dispatcher
    from broker.raft.service import RaftService
    from broker.services import Services

Reply = TypeVar("Reply")
Answer = TypeVar("Answer")


CHORES_LATE_SECONDS: Final = 1e-6


class _Submitted(Generic[Reply]):
    """One command on its way."""

    __slots__ = ("command", "done", "has_begun", "is_withdrawn")

    def __init__(self, command: Command[Reply], done: Callable[[Reply | KafkaError], None]) -> None:
        self.command = command
        self.done = done
        self.has_begun = False
        self.is_withdrawn = False


class _Decided:
    """A command's outcome, held back until its records are committed."""

    __slots__ = ("changes", "done", "end_offset", "image", "outcome")

    def __init__(
        self,
        done: Callable[[Any], None],
        outcome: Any,
        end_offset: int,
        image: MetadataImage | None = None,
        changes: MetadataChanges | None = None,
    ) -> None:
        self.done = done
        self.outcome = outcome
        self.end_offset = end_offset
        """Everything below must be committed: its own records, and those that it was decided by."""
        self.image = image
        self.changes = changes


class ControllerService:
    """The cluster's single writer of metadata, while this node leads the metadata quorum.

    While it does not, every command is refused with NOT_CONTROLLER.  Everything is called in the Trio thread.
    """

    def __init__(self, services: "Services", feed: "MetadataFeed") -> None:
        self._raft: RaftService | None = None
        self._services = services
        self._feed = feed
        self._log = services.log
        self._queue: list[_Submitted[Any]] = []
        self._arrived = trio.Event()
        self._uncommitted: deque[_Decided] = deque()
        self._sessions: BrokerSessions | None = None
        self._chores: Chores | None = None
        self._alone_since_ms: float | None = None
        self._forwarded: Dispatcher | None = None

    @property
    def is_active(self) -> bool:
        """Whether this node is the controller of the cluster now."""
        return self._raft is not None

    @property
    def raft(self) -> "RaftService":
        """What commands are written to.  Raises NOT_CONTROLLER while another node is the controller."""
        if self._raft is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return self._raft

    @property
    def image(self) -> MetadataImage:
        """The cluster as last committed and published."""
        return self._feed.image

    def activate(self, raft: "RaftService") -> None:
        """Take commands from now on: this node leads.

        What the log holds beyond the published image is published as soon as it is committed.
        """
        self._raft = raft
        self._sessions = self._chores = self._alone_since_ms = None
        raft.on_commit = self._finish_committed
        if raft.latest is not raft.image:
            from broker.metadata.differences import (
                differences,
            )  # here: a node that starts alone has published

            changes = differences(raft.image, raft.latest)
            self._uncommitted.append(_Decided(_ignore, None, raft.log.end_offset, raft.latest, changes))
            self._finish_committed()
        self._arrived.set()

    def deactivate(self) -> None:
        """Refuse commands from now on, those under way included: whether they take effect, others decide."""
        self._raft = None
        self._sessions = self._chores = self._alone_since_ms = None
        uncommitted, self._uncommitted = self._uncommitted, deque()
        for one in uncommitted:
            one.done(KafkaError(ErrorCode.NOT_CONTROLLER))
        self._arrived.set()

    @property
    def sessions(self) -> "BrokerSessions":
        """What is known of other brokers beside their registrations, since this node became active.

        Raises NOT_CONTROLLER while it is not.
        """
        if self._sessions is None:
            from broker.controller.sessions import BrokerSessions  # here: most nodes are alone

            config = self._services.config
            own_broker_id = self._services.node_id if "broker" in config.get("process.roles") else None
            self._sessions = BrokerSessions(config.get("broker.session.timeout.ms"), own_broker_id)
            self._sessions.begin(self.raft.latest, monotonic_ms())
        return self._sessions

    @property
    def forwarded(self) -> "Dispatcher":
        """Answers what clients of other brokers ask the controller (KIP-590)."""
        if self._forwarded is None:
            from broker.apis.table import served
            from broker.network.dispatch import Dispatcher

            unstable = self._services.config.get("unstable.api.versions.enable")
            apis = served(on_controller=True, unstable_versions=unstable)
            self._forwarded = Dispatcher(self._services, (api for api in apis if api.is_forwardable))
        return self._forwarded

    def submit(self, command: Command[Reply], done: Callable[[Reply | KafkaError], None]) -> None:
        """Carry out ``command``; call ``done`` with its reply when it is committed, or with its refusal."""
        self._enqueue(_Submitted(command, done))

    async def perform(self, command: Command[Reply]) -> Reply:
        """Carry out ``command`` and return its reply; raises the ``KafkaError`` with which it is refused."""
        waiting: Waiting[Reply] = Waiting()

        def done(outcome: Reply | KafkaError) -> None:
            if isinstance(outcome, KafkaError):
                waiting.fail(outcome)
            else:
                waiting.answer(outcome)

        self.submit(command, done)
        return await waiting.wait()

    def answer(
        self,
        command: Command[Reply],
        build: Callable[[Reply | KafkaError], Answer],
        *,
        timeout_ms: int | None,
    ) -> Waiting[Answer] | Answer:
        """What a handler returns: the answer that ``build`` makes of the command's outcome.

        After ``timeout_ms`` that is REQUEST_TIMED_OUT, and a command not yet begun is not carried out.
        As in Kafka, no time at all is not enough.  None is for as long as it takes.
        """
        if timeout_ms is not None and timeout_ms <= 0:
            return build(KafkaError(ErrorCode.REQUEST_TIMED_OUT))

        def done(outcome: Reply | KafkaError) -> None:
            waiting.answer_with(lambda: build(outcome))  # in the connection's own task

        def expire() -> None:
            submitted.is_withdrawn = not submitted.has_begun
            waiting.answer(build(KafkaError(ErrorCode.REQUEST_TIMED_OUT)))

        if timeout_ms is None:
            waiting: Waiting[Answer] = Waiting()
        else:
            waiting = Waiting(trio.current_time() + timeout_ms / 1000, expire)
        submitted = _Submitted(command, done)
        self._enqueue(submitted)
        return waiting

    async def run(self) -> None:
        """Carry out what is submitted, for ever.

        Raises ``DiskFailure`` when an fsync fails: then nothing may be acknowledged any more.
        """
        while True:
            with trio.CancelScope(deadline=self._chores_deadline()):
                await self._arrived.wait()
            self._arrived = trio.Event()
            self._submit_chores()
            while self._queue:
                queue, self._queue = self._queue, []
                await self._carry_out(queue)
            await self._make_snapshot()

    def _chores_deadline(self) -> float:
        """Trio's time when something is to be done of which nobody reminds us."""
        raft = self._raft
        if raft is None:
            return math.inf
        if self._chores is None:
            now_ms = since_ms = monotonic_ms()
            if raft.latest.brokers.keys() <= {self._services.node_id}:
                # Nobody can be missed, but brokers that are gone may have left what nobody leads.
                if self._alone_since_ms is None:
                    self._alone_since_ms = now_ms
                since_ms = self._alone_since_ms
                due_ms = since_ms + self._services.config.get("unclean.leader.election.interval.ms")
                if now_ms < due_ms:
                    return float(due_ms) / 1000 + CHORES_LATE_SECONDS
            from broker.controller.chores import Chores

            self._chores = Chores(self._services, self.sessions, since_ms)
        # Rounding must not wake it a moment too early, again and again until the clock has moved.
        return self._chores.due_ms(monotonic_ms()) / 1000 + CHORES_LATE_SECONDS

    def _submit_chores(self) -> None:
        chores = self._chores
        if chores is None:
            return

        def done(outcome: object) -> None:
            if isinstance(outcome, KafkaError):
                chores.failed()

        for command in chores.take_due(monotonic_ms()):
            self.submit(command, done)

    async def _make_snapshot(self) -> None:
        """If one is due.  It only saves time and space, so the broker can do without."""
        raft = self._raft
        snapshot = None if raft is None else raft.due_snapshot()
        if raft is None or snapshot is None:
            return
        try:
            await self._services.run_blocking(snapshot.write)
            raft.finish_snapshot(snapshot)
        except (OSError, DiskFailure) as error:
            self._log.error(f"no snapshot of the metadata log could be made: {error}")

    def _enqueue(self, submitted: _Submitted[Any]) -> None:
        self._queue.append(submitted)
        self._arrived.set()

    async def _carry_out(self, queue: list[_Submitted[Any]]) -> None:
        raft = self._raft
        if raft is None:
            for submitted in queue:
                submitted.done(KafkaError(ErrorCode.NOT_CONTROLLER))
            return
        for submitted in queue:
            if not submitted.is_withdrawn:
                self._uncommitted.append(self._decide(submitted, raft))
        flush = raft.begin_flush()
        if flush is not None:
            await run_flush(flush, self._services.run_blocking, self._log)
            flush.finish()
        if self._raft is not raft:  # it resigned meanwhile
            return
        raft.commit()
        self._finish_committed()

    def _finish_committed(self) -> None:
        """Publish and answer what is committed, in its order."""
        while (raft := self._raft) is not None and self._uncommitted:
            if self._uncommitted[0].end_offset > raft.high_watermark:
                return
            one = self._uncommitted.popleft()
            if one.image is not None and one.changes is not None:
                raft.feed.publish(one.image, one.changes)
            one.done(one.outcome)

    def _decide(self, submitted: _Submitted[Any], raft: "RaftService") -> _Decided:
        submitted.has_begun = True
        try:
            decision = submitted.command(raft.latest)
            if not decision.records:
                return _Decided(submitted.done, decision.reply, raft.log.end_offset)
            records = decision.records
            is_long = isinstance(decision, LongDecision)
            while is_long and len(records) > RECORDS_PER_BATCH:
                image, changes = raft.append(records[:RECORDS_PER_BATCH])
                self._uncommitted.append(_Decided(_ignore, None, raft.log.end_offset, image, changes))
                records = records[RECORDS_PER_BATCH:]
            image, changes = raft.append(records)
        except KafkaError as error:
            return _Decided(submitted.done, error, raft.log.end_offset)
        except DiskFailure as error:
            if error.leaves_doubt:
                raise
            self._log.error(f"the metadata log cannot be written: {error}")
            outcome = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            return _Decided(submitted.done, outcome, raft.log.end_offset)
        except Exception as error:  # a fault of ours, or of a request that nobody thought of
            self._log.failure("a command of the controller failed", error)
            return _Decided(submitted.done, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), raft.log.end_offset)
        return _Decided(submitted.done, decision.reply, raft.log.end_offset, image, changes)


def _ignore(_: object) -> None:
    """Nobody waits for it."""
