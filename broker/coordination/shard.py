"""One partition of a coordinator's topic: carries out what its machine decides, and loads it from the log."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import trio

from broker.coordination.decision import Decision, Moment, Reply, StoredRecord, Writer
from broker.coordination.machine import Machine
from broker.coordination.record_codec import RecordCodec
from broker.coordination.replay import Replay
from broker.coordination.tickets import Ticket
from broker.errors import ErrorCode, KafkaError, error_code_of
from broker.logs import Log
from protocol.errors import DecodeError, EncodeError
from protocol.primitives import Buffer
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from storage.errors import StorageError
from storage.transaction_verification import VOUCHED, Verification
from storage.wording import counted

STEPS_BEFORE_YIELD: Final = 200
"""Records read or applied in a row while loading: then requests have their turn."""

COORDINATOR_CODES: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a coordinator's client is told when the log refuses: it must look for the coordinator, not the log."""

_NO_WRITER: Final = Writer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, VOUCHED)
"""Of records that belong to no transaction."""

M = TypeVar("M", bound=Machine)


class ShardLog(Protocol):
    """What a shard needs of the partition that keeps its records."""

    @property
    def log_start(self) -> int: ...

    @property
    def log_end(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def batch_bytes_max(self) -> int:
        """The topic's ``max.message.bytes``."""

    def append(self, batch: bytearray, verification: Verification | None = VOUCHED) -> int:
        """Append as the leader; return the base offset.  KafkaError or StorageError: nothing is written.

        ``verification`` is what the log gave when the batch's transaction was verified.
        """

    async def read(self, offset: int) -> Buffer:
        """Bytes that begin at or before the batch with ``offset`` and hold it whole."""

    def when_covered(self, offset: int, notify: Callable[[], None]) -> None:
        """Call ``notify`` once, when the high watermark has reached ``offset``."""


class _HeldBack(NamedTuple):
    """Replies which the high watermark does not cover yet."""

    end_offset: int
    deadline_ms: int
    replies: list[Reply]


class _HeldEffect(NamedTuple):
    end_offset: int
    effect: Any


class Shard(Generic[M]):
    """Without a machine (loading, not the leader, broken) every request is refused with ``refusal``.

    Commands and time reach the machine only through ``run`` and ``advance``; an unexpected exception in
    it has the same consequence as records that could not be written: the machine is dropped, and loaded
    again.  ``reload`` is called then, and must see to it that ``load`` is called, in a task.
    """

    def __init__(
        self,
        name: str,
        codec: RecordCodec,
        new_machine: Callable[[], M],
        *,
        now: Callable[[], Moment],
        commit_timeout_ms: int,
        compression: Compression = Compression.NONE,
        is_compacted: bool = True,
        log: Log,
        reload: Callable[["Shard[M]"], None],
        perform: Callable[[Any], None] | None = None,
    ) -> None:
        """``perform`` is given the effects of decisions; it must not come back to the shard at once."""
        self.name = name
        self.machine: M | None = None
        self.refusal = ErrorCode.NOT_COORDINATOR
        self._codec = codec
        self._new_machine = new_machine
        self._now = now
        self._commit_timeout_ms = commit_timeout_ms
        self._compression = compression
        self._is_compacted = is_compacted
        self._logger = log
        self._reload = reload
        self._perform = perform
        self._log: ShardLog | None = None
        self._written_end = 0
        self._held_back: deque[_HeldBack] = deque()
        self._held_effects: deque[_HeldEffect] = deque()
        self._watches_watermark = False

    def __repr__(self) -> str:
        state = "active" if self.machine is not None else self.refusal.name
        return f"<Shard {self.name} {state}>"

    @property
    def is_active(self) -> bool:
        return self.machine is not None

    # Requests and time

    def run(self, command: Callable[[M, Moment], Decision], ticket: Ticket[Any]) -> None:
        """Let the machine decide; ``ticket`` is settled at once, or later."""
        machine = self.machine
        if machine is None:
            ticket.refuse(self.refusal)
            return
        now = self._now()
        try:
            self._carry_out(machine, command(machine, now), now)
        except Exception:
            self._drop()
            raise

    def end_transaction(
        self, producer_id: int, producer_epoch: int, marker: EndTransactionMarker, ticket: Ticket[ErrorCode]
    ) -> None:
        """Write the marker that ends a producer's transaction in this partition.

        ``ticket`` hears what the log says to it.
        """
        machine, log = self.machine, self._log
        if machine is None or log is None:
            ticket.refuse(self.refusal)
            return
        now = self._now()
        batch = build_end_transaction_marker(
            marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=now.wall_ms
        )
        try:
            offset = log.append(batch)
        except (KafkaError, StorageError) as error:
            ticket.settle(error_code_of(error))
            return
        self._written_end = offset + 1
        try:
            machine.end_transaction(producer_id, is_commit=marker.is_commit)
        except Exception:
            ticket.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._drop()
            raise
        self._tell([Reply(ticket, ErrorCode.NONE)], now)

    def deadline_ms(self) -> int | None:
        """The steady time at which ``advance`` wants to be called."""
        deadline_ms = None if self.machine is None else self.machine.deadline_ms()
        if self._held_back:
            first_ms = self._held_back[0].deadline_ms
            return first_ms if deadline_ms is None else min(first_ms, deadline_ms)
        return deadline_ms

    def advance(self) -> bool:
        """Do one thing that is due; return whether there was one."""
        now = self._now()
        held = self._held_back
        if held and held[0].deadline_ms <= now.steady_ms:
            # The records are in the log and may be committed later: that is what a client must assume.
            self._refuse(held.popleft().replies, COORDINATOR_CODES[ErrorCode.REQUEST_TIMED_OUT])
            return True
        machine = self.machine
        if machine is None:
            return False
        deadline_ms = machine.deadline_ms()
        if deadline_ms is None or deadline_ms > now.steady_ms:
            return False
        try:
            self._carry_out(machine, machine.advance(now), now)
        except Exception as error:
            self._logger.failure(f"{self.name}: what was due could not be done; loading again", error)
            self._drop()
        return True

    # Leadership and loading

    def begin(self, log: ShardLog) -> bool:
        """This broker leads the partition now.  Return whether there is something to load, in a task."""
        self._forget()
        self._log = log
        if log.log_start < log.log_end:
            self.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return True
        self._activate(self._new_machine(), log, log.log_end)
        return False

    def end(self) -> None:
        """This broker does not lead the partition any more."""
        self._forget()
        self._log = None

    async def load(self) -> None:
        """Apply the log from its start to its end, and begin to answer.

        Gives up silently when leadership changes meanwhile.  A log that cannot be understood leaves the
        shard refusing everything with NOT_COORDINATOR, as Kafka's does, and says why.
        """
        log = self._log
        if log is None or self.machine is not None:
            return
        machine = self._new_machine()
        end = log.log_end
        replay = Replay(machine, self._codec, log.log_start, is_compacted=self._is_compacted)
        steps = 0
        try:
            while replay.position < end:
                before = replay.position
                piece = await log.read(before)
                if not piece:
                    break  # compaction has left nothing of what was there
                for _ in replay.apply(piece):
                    steps += 1
                    if steps % STEPS_BEFORE_YIELD == 0:
                        await trio.lowlevel.checkpoint()
                        if self._log is not log:
                            return
                if replay.position == before:
                    raise DecodeError(f"no whole batch at offset {before}, though the log ends at {end}")
        except Exception as error:
            if self._log is log:
                self.refusal = ErrorCode.NOT_COORDINATOR
                if isinstance(error, (DecodeError, StorageError, KafkaError)):
                    self._logger.error(f"{self.name} cannot be loaded: {error}")
                else:
                    self._logger.failure(f"{self.name} cannot be loaded", error)
            return
        if self._log is not log:
            return
        for record_type, count in sorted(replay.unknown.items()):
            self._logger.warn(
                f"{self.name}: left alone {counted(count, 'record')} of type {record_type}, "
                "which is not served"
            )
        self._activate(machine, log, end)

    def _activate(self, machine: M, log: ShardLog, end: int) -> None:
        self.machine = machine
        self._written_end = end
        now = self._now()
        try:
            self._carry_out(machine, machine.loaded(now), now)
        except Exception as error:
            # Not loaded again: the same log would lead to the same end.
            self._logger.failure(f"{self.name} cannot begin", error)
            self._forget()

    # Decisions

    def _carry_out(self, machine: M, decision: Decision, now: Moment) -> None:
        following: Decision | None = decision
        while following is not None:
            decision = following
            try:
                code = self._append(machine, decision, now) if decision.records else None
            except Exception:
                self._refuse_all(decision, ErrorCode.UNKNOWN_SERVER_ERROR)
                raise
            if code is None:
                self._tell(decision.replies, now)
                self._begin_effects(decision.effects)
                following = None if decision.then is None else decision.then(now)
            elif decision.if_refused is not None:
                following = decision.if_refused(code, now)
            else:
                self._refuse_all(decision, code)
                if not decision.tentative:
                    self._drop()
                return

    def _append(self, machine: M, decision: Decision, now: Moment) -> ErrorCode | None:
        """Append and apply; the code for those who wait if that cannot be."""
        log = self._log
        assert log is not None, "an active shard has a log"
        records = decision.records
        writer = decision.writer or _NO_WRITER
        try:
            batch = self._encode(records, writer, now)
            if len(batch) > log.batch_bytes_max:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a batch of {len(batch)} bytes is above max.message.bytes ({log.batch_bytes_max})",
                )
            base_offset = log.append(batch, writer.verification)
        except (EncodeError, KafkaError, StorageError) as error:
            code = error_code_of(error)
            # Too few replicas in sync may last, and everybody tries again.
            self._logger.warn_seldom(
                f"{self.name}: {counted(len(records), 'record')} could not be written: {error}",
                about=f"{self.name} {code.name}",
            )
            return COORDINATOR_CODES.get(code, code)
        self._written_end = base_offset + len(records)
        for offset, record in enumerate(records, base_offset):
            machine.apply(record, offset, writer.producer_id)
        return None

    def _encode(self, records: list[StoredRecord], writer: Writer, now: Moment) -> bytearray:
        return build_batch(
            [(now.wall_ms, *self._codec.encode(record), ()) for record in records],
            compression=self._compression,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            # The number means nothing, but without one Kafka's cleaner would not touch the log.
            base_sequence=NO_SEQUENCE if writer is _NO_WRITER else 0,
            is_transactional=writer is not _NO_WRITER,
        )

    def _tell(self, replies: list[Reply], now: Moment) -> None:
        """Tell outcomes, or hold them back while something they may rest on could still be lost."""
        if not replies:
            return
        log = self._log
        assert log is not None, "an active shard has a log"
        if not self._held_back and log.high_watermark >= self._written_end:
            for ticket, outcome in replies:
                ticket.settle(outcome)
            return
        self._held_back.append(_HeldBack(self._written_end, now.steady_ms + self._commit_timeout_ms, replies))
        self._watch_watermark(log)

    def _begin_effects(self, effects: list[Any]) -> None:
        if not effects:
            return
        log, perform = self._log, self._perform
        assert log is not None, "an active shard has a log"
        assert perform is not None, "a machine that decides about effects is given somebody who performs them"
        if not self._held_effects and log.high_watermark >= self._written_end:
            for effect in effects:
                perform(effect)
            return
        self._held_effects.extend(_HeldEffect(self._written_end, effect) for effect in effects)
        self._watch_watermark(log)

    def _watch_watermark(self, log: ShardLog) -> None:
        if not self._watches_watermark:
            self._watches_watermark = True
            first = min(held[0].end_offset for held in (self._held_back, self._held_effects) if held)
            log.when_covered(first, lambda: self._watermark_moved(log))

    def _watermark_moved(self, log: ShardLog) -> None:
        if self._log is not log or not self._watches_watermark:
            return
        self._watches_watermark = False
        held = self._held_back
        while held and held[0].end_offset <= log.high_watermark:
            for ticket, outcome in held.popleft().replies:
                ticket.settle(outcome)
        effects = self._held_effects
        while effects and effects[0].end_offset <= log.high_watermark:
            assert self._perform is not None
            self._perform(effects.popleft().effect)
        if held or effects:
            self._watch_watermark(log)

    # The end of a machine

    def _drop(self) -> None:
        """The machine may be wrong about the log: start again from there."""
        self._forget()
        self.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._reload(self)

    def _forget(self) -> None:
        """Send everybody who waits to look for the coordinator again: it is the answer that all expect."""
        machine, self.machine = self.machine, None
        held, self._held_back = self._held_back, deque()
        self._held_effects.clear()
        self._watches_watermark = False
        self.refusal = ErrorCode.NOT_COORDINATOR
        for entry in held:
            self._refuse(entry.replies, self.refusal)
        if machine is not None:
            for ticket in machine.waiting_tickets():
                ticket.refuse(self.refusal)

    def _refuse_all(self, decision: Decision, code: ErrorCode) -> None:
        self._refuse(decision.replies, code)
        if decision.asked_by is not None:
            decision.asked_by.refuse(code)

    def _refuse(self, replies: list[Reply], code: ErrorCode) -> None:
        for ticket, _ in replies:
            ticket.refuse(code)
