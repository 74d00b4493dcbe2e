"""A transaction coordinator's shard on a log in memory, with a clock that the test moves."""

import io
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from broker.coordination.decision import Decision, Moment
from broker.coordination.replay import Replay
from broker.coordination.shard import Shard
from broker.coordination.tickets import Ticket
from broker.logs import Log
from broker.transactions.machine import CODEC, TransactionMachine
from broker.transactions.requests import (
    Described,
    Ending,
    Identified,
    Identity,
    Initializing,
    MarkersDue,
    Verified,
)
from broker.transactions.settings import TransactionSettings
from broker.transactions.transaction import Transaction, TransactionPartition
from protocol.error_codes import ErrorCode
from tests.broker.coordination.fake_log import FakeLog

START_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
COORDINATOR_EPOCH = 7

COMMIT, ABORT = True, False
PLACE: TransactionPartition = ("t", 0)


class Desk:
    """Everything is asked for one transactional id unless another is named."""

    def __init__(
        self,
        log: FakeLog | None = None,
        *,
        settings: TransactionSettings | None = None,
        feature_level: int = 2,
        first_producer_id: int = 0,
        elapsed_ms: int = 0,
    ) -> None:
        self.log = FakeLog() if log is None else log
        self.settings = settings or TransactionSettings()
        self.feature_level = feature_level
        self.next_producer_id = first_producer_id
        self.are_ids_at_hand = True
        self.elapsed_ms = elapsed_ms
        self.due: deque[MarkersDue] = deque()
        self.lines = io.StringIO()
        self.reloads = 0
        self.shard: Shard[TransactionMachine] = Shard(
            "__transaction_state-0",
            CODEC,
            self.new_machine,
            now=lambda: Moment(self.elapsed_ms, START_MS + self.elapsed_ms),
            commit_timeout_ms=5000,
            log=Log(self.lines),
            reload=self._reload,
            perform=self.due.append,
        )
        if self.shard.begin(self.log):
            self.shard._activate(self.replayed(), self.log, self.log.log_end)

    def new_machine(self) -> TransactionMachine:
        return TransactionMachine(
            self.settings,
            coordinator_epoch=COORDINATOR_EPOCH,
            take_producer_id=self._take_producer_id,
            feature_level=lambda: self.feature_level,
        )

    def replayed(self) -> TransactionMachine:
        """What another broker would know that reads the log."""
        machine = self.new_machine()
        replay = Replay(machine, CODEC, 0, is_compacted=True)
        for _ in replay.apply(b"".join(self.log.batches)):
            pass
        return machine

    def crash(self) -> "Desk":
        """Another broker that finds the log, and nothing else."""
        return Desk(
            self.log.copy(),
            settings=self.settings,
            feature_level=self.feature_level,
            first_producer_id=self.next_producer_id + 1000,
            elapsed_ms=self.elapsed_ms,
        )

    def _take_producer_id(self) -> int | None:
        if not self.are_ids_at_hand:
            return None
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def _reload(self, shard: Shard[TransactionMachine]) -> None:
        self.reloads += 1

    @property
    def machine(self) -> TransactionMachine:
        assert self.shard.machine is not None
        return self.shard.machine

    def known(self, transactional_id: str = "x") -> Transaction:
        return self.machine.transactions[transactional_id]

    def ask(self, command: Callable[[TransactionMachine, Moment, Ticket[Any]], Decision]) -> Ticket[Any]:
        ticket: Ticket[Any] = Ticket(lambda code: code)
        self.shard.run(lambda machine, now: command(machine, now, ticket), ticket)
        return ticket

    def initialize(
        self,
        known: tuple[int, int] | None = None,
        *,
        transactional_id: str = "x",
        timeout_ms: int = TIMEOUT_MS,
    ) -> Identified:
        asked = Initializing(timeout_ms, None if known is None else Identity(*known))
        outcome: Identified = self.ask(
            lambda machine, now, ticket: machine.initialize(transactional_id, asked, ticket, now)
        ).outcome
        return outcome

    def begin(self, *, transactional_id: str = "x", timeout_ms: int = TIMEOUT_MS) -> Identity:
        """An identity that was given without an error."""
        identified = self.initialize(transactional_id=transactional_id, timeout_ms=timeout_ms)
        assert identified.error is ErrorCode.NONE
        return Identity(identified.producer_id, identified.producer_epoch)

    def add(
        self,
        identity: Identity,
        *places: TransactionPartition,
        transactional_id: str = "x",
        version: int = 0,
    ) -> ErrorCode:
        outcome: ErrorCode = self.ask(
            lambda machine, now, ticket: machine.add_partitions(
                transactional_id, identity, places, version, ticket, now
            )
        ).outcome
        return outcome

    def verify(self, identity: Identity, *places: TransactionPartition) -> Verified:
        outcome: Verified = self.ask(
            lambda machine, _, ticket: machine.verify_partitions("x", identity, places, ticket)
        ).outcome
        return outcome

    def start_ending(
        self, identity: Identity, is_commit: bool, *, version: int = 1, transactional_id: str = "x"
    ) -> Ticket[Any]:
        ending = Ending(identity, is_commit, bumps_epoch=version >= 2)
        return self.ask(lambda machine, now, ticket: machine.end(transactional_id, ending, ticket, now))

    def end(
        self, identity: Identity, is_commit: bool, *, version: int = 1, transactional_id: str = "x"
    ) -> Identified:
        outcome: Identified = self.start_ending(
            identity, is_commit, version=version, transactional_id=transactional_id
        ).outcome
        return outcome

    def markers_written(self, due: MarkersDue) -> ErrorCode:
        outcome: ErrorCode = self.ask(
            lambda machine, now, ticket: machine.markers_written(due, ticket, now)
        ).outcome
        return outcome

    def write_markers(self) -> Sequence[MarkersDue]:
        """Say that every marker that is due has been written."""
        written = list(self.due)
        self.due.clear()
        for due in written:
            self.markers_written(due)
        return written

    def describe(self, transactional_id: str = "x") -> Described:
        outcome: Described = self.ask(
            lambda machine, _, ticket: machine.describe(transactional_id, None, ticket)
        ).outcome
        return outcome

    def let_pass(self, milliseconds: int) -> None:
        """Time passes, and whatever is due is done."""
        end_ms = self.elapsed_ms + milliseconds
        while (deadline_ms := self.shard.deadline_ms()) is not None and deadline_ms <= end_ms:
            self.elapsed_ms = max(self.elapsed_ms, deadline_ms)
            self.shard.advance()
        self.elapsed_ms = end_ms
