"""What a shard promises, shown with the smallest machine: names with a number each."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from broker.coordination.decision import Decision, Moment, StoredRecord, Writer, in_batches
from broker.coordination.record_codec import RecordCodec
from broker.coordination.shard import Shard
from broker.coordination.tickets import Ticket
from broker.logs import Log
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.builder import build_batch
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue
from storage.errors import BatchTooLarge, DiskFailure
from storage.transaction_verification import VOUCHED
from tests.broker.coordination.fake_log import FakeLog

CODEC = RecordCodec({2: GroupMetadataKey}, {2: GroupMetadataValue})
WALL_MS = 1_700_000_000_000


def number_record(name: str, number: int | None) -> StoredRecord:
    value = None if number is None else GroupMetadataValue(generation=number)
    return StoredRecord(GroupMetadataKey(group=name), value, 3)


class Numbers:
    """Stored: a number by name.  Soft: who waits for a number, and an alarm."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.pending: dict[int, list[tuple[str, int]]] = {}
        self.offsets: list[int] = []
        self.waiting: list[Ticket[Any]] = []
        self.alarm_ms: int | None = None
        self.loaded_at: Moment | None = None

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        name = record.key.group
        if record.value is None:
            self.numbers.pop(name, None)
            return
        assert isinstance(record.value, GroupMetadataValue)
        self.offsets.append(offset)
        if producer_id == -1:
            self.numbers[name] = record.value.generation
        else:
            self.pending.setdefault(producer_id, []).append((name, record.value.generation))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        pending = self.pending.pop(producer_id, [])
        if is_commit:
            self.numbers.update(pending)

    def loaded(self, now: Moment) -> Decision:
        self.loaded_at = now
        return Decision()

    def deadline_ms(self) -> int | None:
        return self.alarm_ms

    def advance(self, now: Moment) -> Decision:
        self.alarm_ms = None
        decision = Decision()
        decision.records.append(number_record("alarm", now.steady_ms))
        return decision

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        return self.waiting

    # Commands

    def put(self, name: str, number: int, ticket: Ticket[Any], *, tentative: bool = True) -> Decision:
        decision = Decision(tentative=tentative)
        decision.records.append(number_record(name, number))
        decision.reply(ticket, f"{name}={number}")
        return decision

    def get(self, name: str, ticket: Ticket[Any]) -> Decision:
        decision = Decision()
        decision.reply(ticket, self.numbers.get(name))
        return decision


class Desk:
    """A shard on a fake log, with a clock that the test moves."""

    def __init__(self, log: FakeLog | None = None) -> None:
        self.log = FakeLog() if log is None else log
        self.steady_ms = 1000
        self.lines = io.StringIO()
        self.reloads = 0
        self.shard: Shard[Numbers] = Shard(
            "numbers-0",
            CODEC,
            Numbers,
            now=lambda: Moment(self.steady_ms, WALL_MS + self.steady_ms),
            commit_timeout_ms=5000,
            log=Log(self.lines),
            reload=self._reload,
        )

    def _reload(self, shard: Shard[Numbers]) -> None:
        self.reloads += 1

    @property
    def machine(self) -> Numbers:
        assert self.shard.machine is not None
        return self.shard.machine

    def ask(self, command: Callable[[Numbers, Ticket[Any]], Decision]) -> Ticket[Any]:
        ticket: Ticket[Any] = Ticket(lambda code: code)
        self.shard.run(lambda machine, _: command(machine, ticket), ticket)
        return ticket

    def put(self, name: str, number: int, *, tentative: bool = True) -> Ticket[Any]:
        return self.ask(lambda machine, ticket: machine.put(name, number, ticket, tentative=tentative))

    def get(self, name: str) -> Ticket[Any]:
        return self.ask(lambda machine, ticket: machine.get(name, ticket))


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    assert not desk.shard.begin(desk.log)
    return desk


# Requests


def test_records_are_appended_applied_and_then_answered(desk: Desk) -> None:
    assert desk.put("a", 1).outcome == "a=1"
    assert desk.get("a").outcome == 1
    assert [(record.key, record.timestamp) for record in desk.log.records()] == [
        (bytes.fromhex("0002 0001 61"), WALL_MS + 1000)
    ]


def test_a_decision_s_records_are_one_batch(desk: Desk) -> None:
    def put_two(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        decision = machine.put("a", 1, ticket)
        decision.records.append(number_record("b", 2))
        return decision

    desk.ask(put_two)
    assert len(desk.log.batches) == 1
    assert len(desk.log.records()) == 2
    assert desk.machine.offsets == [0, 1]


def test_records_of_a_transaction_have_a_sequence_or_else_kafka_could_not_compact_them(desk: Desk) -> None:
    def put(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        decision = machine.put("a", 1, ticket)
        decision.writer = Writer(7, 2, VOUCHED)
        return decision

    desk.ask(put)
    desk.put("b", 2)
    first, second = (RecordBatch(batch) for batch in desk.log.batches)
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (7, 2, 0)
    assert first.is_transactional
    assert (second.producer_id, second.base_sequence) == (-1, -1)


def test_without_a_leader_everything_is_refused() -> None:
    assert Desk().get("a").outcome is ErrorCode.NOT_COORDINATOR


def test_what_follows_is_decided_after_the_records_are_applied(desk: Desk) -> None:
    def put_and_read_back(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        decision = Decision(tentative=True, asked_by=ticket)
        decision.records.append(number_record("a", 7))
        decision.then = lambda _: machine.get("a", ticket)
        return decision

    assert desk.ask(put_and_read_back).outcome == 7


def test_many_tombstones_go_in_several_batches(desk: Desk) -> None:
    for number in range(5):
        desk.put(f"n{number}", number)
    desk.log.batches.clear()

    def clear(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        last = Decision(tentative=True, asked_by=ticket)
        last.reply(ticket, "cleared")
        return in_batches([number_record(name, None) for name in machine.numbers], 2, last)

    assert desk.ask(clear).outcome == "cleared"
    assert len(desk.log.batches) == 3
    assert desk.machine.numbers == {}


# The high watermark


def test_replies_wait_for_the_high_watermark(desk: Desk) -> None:
    desk.log.follows = False
    first, second = desk.put("a", 1), desk.put("b", 2)
    assert [first.is_settled, second.is_settled] == [False, False]
    desk.log.cover(1)
    assert [first.is_settled, second.is_settled] == [True, False]
    desk.log.cover(2)
    assert second.outcome == "b=2"


def test_what_is_read_from_uncommitted_state_waits_with_it(desk: Desk) -> None:
    desk.log.follows = False
    desk.put("a", 1)
    reading = desk.get("a")
    assert not reading.is_settled
    desk.log.cover(1)
    assert reading.outcome == 1


def test_replies_leave_in_the_order_of_their_decisions(desk: Desk) -> None:
    desk.log.follows = False
    order: list[str] = []
    for name in ("first", "second", "third"):
        desk.put(name, 1).when_settled(lambda name=name: order.append(name))  # type: ignore[misc]
    desk.log.cover(3)
    assert order == ["first", "second", "third"]


def test_a_reply_that_is_never_covered_times_out(desk: Desk) -> None:
    desk.log.follows = False
    ticket = desk.put("a", 1)
    assert desk.shard.deadline_ms() == 6000
    desk.steady_ms = 5999
    assert not desk.shard.advance()
    desk.steady_ms = 6000
    assert desk.shard.advance()
    assert ticket.outcome is ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.log.cover(1)
    assert desk.get("a").outcome == 1


# Time


def test_the_machine_is_advanced_when_it_wants_to_be(desk: Desk) -> None:
    desk.machine.alarm_ms = 2000
    assert desk.shard.deadline_ms() == 2000
    assert not desk.shard.advance()
    desk.steady_ms = 2000
    assert desk.shard.advance()
    assert desk.machine.numbers == {"alarm": 2000}
    assert not desk.shard.advance()


# What cannot be written


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_COORDINATOR),
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (DiskFailure("x", "write", OSError(28, "No space left")), ErrorCode.NOT_COORDINATOR),
        (BatchTooLarge(10, 5), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_tentative_decision_is_refused_and_forgotten(
    desk: Desk, refusal: Exception, code: ErrorCode
) -> None:
    desk.log.refusal = refusal
    assert desk.put("a", 1).outcome is code
    assert desk.reloads == 0
    desk.log.refusal = None
    assert desk.get("a").outcome is None
    assert "1 record could not be written" in desk.lines.getvalue()


def test_whoever_waits_for_what_follows_is_refused_too(desk: Desk) -> None:
    desk.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def never_followed(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        decision = Decision(tentative=True, asked_by=ticket)
        decision.records.append(number_record("a", 7))
        decision.then = lambda _: machine.get("a", ticket)
        return decision

    assert desk.ask(never_followed).outcome is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_batch_above_the_topic_s_limit_is_never_written(desk: Desk) -> None:
    desk.log.batch_bytes_max = 50
    assert desk.put("a", 1).outcome is ErrorCode.UNKNOWN_SERVER_ERROR
    assert desk.log.batches == []


def test_a_record_that_cannot_be_encoded_is_refused_like_one_that_is_too_large(desk: Desk) -> None:
    """Names of clients may be longer than a record can hold."""
    assert desk.put("\ufffd" * 20_000, 1).outcome is ErrorCode.UNKNOWN_SERVER_ERROR
    assert desk.reloads == 0
    assert desk.put("a", 1).outcome == "a=1"


def test_a_machine_that_has_a_way_out_takes_it(desk: Desk) -> None:
    desk.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def with_a_way_out(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        def way_out(code: ErrorCode, now: Moment) -> Decision:
            decision = Decision()
            decision.reply(ticket, f"instead, because of {code.name}")
            return decision

        decision = machine.put("a", 1, ticket, tentative=False)
        decision.if_refused = way_out
        return decision

    assert desk.ask(with_a_way_out).outcome == "instead, because of COORDINATOR_NOT_AVAILABLE"
    assert desk.reloads == 0


async def test_without_a_way_out_the_machine_is_dropped_and_loaded_again(desk: Desk) -> None:
    desk.put("a", 1)
    parked: Ticket[Any] = Ticket(lambda code: code)
    desk.machine.waiting.append(parked)
    desk.machine.numbers["never written"] = 9  # the soft change that the record should have followed
    desk.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert desk.put("b", 2, tentative=False).outcome is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert parked.outcome is ErrorCode.NOT_COORDINATOR
    assert desk.reloads == 1
    assert desk.get("a").outcome is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await desk.shard.load()
    assert desk.machine.numbers == {"a": 1}


async def test_an_unexpected_error_has_the_same_consequence(desk: Desk) -> None:
    desk.put("a", 1)
    desk.log.follows = False
    held_back = desk.put("b", 2)

    def fail(machine: Numbers, ticket: Ticket[Any]) -> Decision:
        machine.numbers.clear()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        desk.ask(fail)
    assert held_back.outcome is ErrorCode.NOT_COORDINATOR
    assert desk.reloads == 1
    await desk.shard.load()
    assert desk.machine.numbers == {"a": 1, "b": 2}


def test_an_error_in_what_is_due_is_logged_and_does_not_escape(desk: Desk) -> None:
    def fail(now: Moment) -> Decision:
        raise ZeroDivisionError

    desk.machine.alarm_ms = 1000
    desk.machine.advance = fail  # type: ignore[method-assign]
    assert desk.shard.advance()
    assert desk.reloads == 1
    assert "ZeroDivisionError" in desk.lines.getvalue()


# Leadership and loading


def test_a_partition_without_records_begins_at_once(desk: Desk) -> None:
    assert desk.shard.is_active
    assert desk.machine.loaded_at == Moment(1000, WALL_MS + 1000)


async def test_a_log_is_replayed_in_pieces_while_requests_are_told_to_wait(desk: Desk) -> None:
    for number in range(1200):
        desk.put(f"n{number % 50}", number)
    desk.put("gone", 1)
    desk.ask(lambda machine, ticket: in_batches([number_record("gone", None)], 1, Decision()))
    again = Desk(desk.log.copy())
    assert again.shard.begin(again.log)
    assert again.get("n0").outcome is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await again.shard.load()
    assert again.machine.numbers == desk.machine.numbers
    assert again.log.reads > 10
    assert again.put("next", 1).outcome == "next=1"
    assert again.machine.offsets[-1] == desk.log.log_end


async def test_a_log_of_which_compaction_has_left_nothing_is_loaded(desk: Desk) -> None:
    desk.put("a", 1)
    desk.put("b", 1)
    log = desk.log.copy()
    log.batches.clear()
    again = Desk(log)
    assert again.shard.begin(log)
    await again.shard.load()
    assert again.machine.numbers == {}
    assert again.put("a", 2).outcome == "a=2"
    assert again.machine.offsets == [2]


async def test_nothing_is_told_before_the_high_watermark_covers_what_was_loaded() -> None:
    desk = Desk()
    desk.shard.begin(desk.log)
    desk.put("a", 1)
    log = desk.log.copy()
    log.high_watermark = 0
    again = Desk(log)
    again.shard.begin(log)
    await again.shard.load()
    reading = again.get("a")
    assert not reading.is_settled
    log.cover(1)
    assert reading.outcome == 1


async def test_losing_leadership_refuses_everybody_and_ends_a_load(desk: Desk) -> None:
    desk.put("a", 1)
    desk.log.follows = False
    held_back = desk.put("b", 2)
    desk.shard.end()
    assert held_back.outcome is ErrorCode.NOT_COORDINATOR
    assert desk.get("a").outcome is ErrorCode.NOT_COORDINATOR
    desk.log.cover(2)

    again = Desk(desk.log.copy())
    again.shard.begin(again.log)
    read = again.log.read

    async def lose_leadership(offset: int) -> Any:
        again.shard.end()
        return await read(offset)

    again.log.read = lose_leadership  # type: ignore[method-assign]
    await again.shard.load()
    assert again.get("a").outcome is ErrorCode.NOT_COORDINATOR


async def test_transactions_count_when_their_marker_says_so() -> None:
    log = FakeLog()

    def write(name: str, number: int, producer_id: int) -> None:
        key, value = CODEC.encode(number_record(name, number))
        log.append(
            build_batch(
                [(0, key, value, ())], producer_id=producer_id, producer_epoch=0, is_transactional=True
            )
        )

    def end(producer_id: int, *, is_commit: bool) -> None:
        marker = EndTransactionMarker(is_commit, 0)
        log.append(
            build_end_transaction_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=0)
        )

    write("committed", 1, producer_id=7)
    write("aborted", 2, producer_id=8)
    write("undecided", 3, producer_id=9)
    end(7, is_commit=True)
    end(8, is_commit=False)
    desk = Desk(log)
    desk.shard.begin(log)
    await desk.shard.load()
    assert desk.machine.numbers == {"committed": 1}
    assert desk.machine.pending == {9: [("undecided", 3)]}


async def test_record_types_of_a_newer_kafka_are_left_alone_and_counted() -> None:
    log = FakeLog()
    key, value = CODEC.encode(number_record("a", 1))
    log.append(
        build_batch([(0, b"\x03\xe7new", b"kind", ()), (0, b"\x03\xe7too", None, ()), (0, key, value, ())])
    )
    desk = Desk(log)
    desk.shard.begin(log)
    await desk.shard.load()
    assert desk.machine.numbers == {"a": 1}
    assert "left alone 2 records of type 999" in desk.lines.getvalue()


@pytest.mark.parametrize("damage", ["version", "checksum", "cut"])
async def test_a_log_that_cannot_be_understood_is_not_served(damage: str) -> None:
    log = FakeLog()
    value = b"\x00\x63" if damage == "version" else b"\x00\x00\x00\x00\x00\x00\x00\x00"
    log.append(build_batch([(0, bytes.fromhex("0002 0001 61"), value, ())]))
    if damage == "checksum":
        log.batches[0][-1] ^= 1
    if damage == "cut":
        del log.batches[0][-1]
    desk = Desk(log)
    desk.shard.begin(log)
    await desk.shard.load()
    assert desk.get("a").outcome is ErrorCode.NOT_COORDINATOR
    assert "cannot be loaded" in desk.lines.getvalue()
    assert desk.reloads == 0
