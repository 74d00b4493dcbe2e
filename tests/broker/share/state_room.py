"""One partition of ``__share_group_state`` on a log in memory, and a clock that the test moves."""

import io
from collections.abc import Callable
from typing import Any

from broker.coordination.decision import Decision, Moment
from broker.coordination.shard import Shard
from broker.coordination.tickets import Ticket
from broker.logs import Log
from broker.share.state import (
    CODEC,
    Change,
    Outcome,
    SharePartitionKey,
    ShareStateMachine,
    StateSettings,
)
from broker.share.state_batches import StateBatch
from protocol.error_codes import ErrorCode
from tests.broker.coordination.fake_log import FakeLog

WALL_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
KEY = SharePartitionKey("g", TOPIC_ID, 0)
PARTITION_COUNT = 100


class StateRoom:
    """``ask`` expects an outcome at once; refusals of the log are the test's to arrange, in ``log``."""

    def __init__(self, settings: StateSettings | None = None, log: FakeLog | None = None) -> None:
        self.settings = settings or StateSettings()
        self.log = log or FakeLog()
        self.now_ms = 0
        self.shard = self._new_shard()
        assert not self.shard.begin(self.log) or log is not None

    def _new_shard(self) -> Shard[ShareStateMachine]:
        return Shard(
            "state",
            CODEC,
            lambda: ShareStateMachine(self.settings),
            now=lambda: Moment(self.now_ms, WALL_MS + self.now_ms),
            commit_timeout_ms=5_000,
            is_compacted=False,
            log=Log(now_ms=lambda: WALL_MS, stream=io.StringIO()),
            reload=lambda shard: None,
        )

    @property
    def machine(self) -> ShareStateMachine:
        assert self.shard.machine is not None
        return self.shard.machine

    async def reloaded(self) -> "StateRoom":
        """What another broker would find in a copy of the log."""
        log = self.log.copy()
        log.log_start = self.log.log_start
        room = StateRoom(self.settings, log)
        room.now_ms = self.now_ms
        await room.shard.load()
        return room

    def ask(self, command: Callable[[ShareStateMachine, Moment, Ticket[Outcome]], Decision]) -> Outcome:
        ticket: Ticket[Any] = Ticket(Outcome)
        self.shard.run(lambda machine, now: command(machine, now, ticket), ticket)
        outcome: Outcome = ticket.outcome
        return outcome

    def initialize(self, key: SharePartitionKey = KEY, *, epoch: int = 1, start: int = 0) -> Outcome:
        return self.ask(
            lambda machine, now, ticket: machine.initialize(key, epoch, start, PARTITION_COUNT, ticket, now)
        )

    def read(self, key: SharePartitionKey = KEY, *, leader: int = 0) -> Outcome:
        return self.ask(lambda machine, now, ticket: machine.read(key, leader, PARTITION_COUNT, ticket, now))

    def write(
        self,
        *batches: StateBatch,
        key: SharePartitionKey = KEY,
        epoch: int = 1,
        leader: int = 0,
        start: int = 0,
        complete: int = 0,
    ) -> Outcome:
        change = Change(epoch, leader, start, complete, batches)
        return self.ask(lambda machine, now, ticket: machine.write(key, change, PARTITION_COUNT, ticket, now))

    def delete(self, key: SharePartitionKey = KEY) -> Outcome:
        return self.ask(lambda machine, now, ticket: machine.delete(key, PARTITION_COUNT, ticket))

    def pass_ms(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        while self.shard.advance():
            pass

    def stored(self) -> list[str]:
        """The records in the log: ``snapshot 3``, ``update 3``, ``tombstone``."""
        found = []
        for record in self.log.records():
            decoded = CODEC.decode(record.key, record.value)
            assert decoded is not None
            value: Any = decoded.value
            kind = "snapshot" if decoded.key.api_key == 0 else "update"
            found.append("tombstone" if value is None else f"{kind} {value.snapshot_epoch}")
        return found


def is_well(outcome: Outcome) -> bool:
    return outcome.error is ErrorCode.NONE
