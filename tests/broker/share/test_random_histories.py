"""Members that fetch, acknowledge and fail at random, against a model that knows every record by itself.

The log loses its beginning, locks end, the share coordinator refuses, and the broker crashes; after every
step the share partition must say of each record what the model says.
"""

import random
from typing import NamedTuple

import pytest

from broker.share.acquiring import AcquireMode, Offsets
from broker.share.in_flight import Transition
from broker.share.partition import Acknowledgement, AcknowledgeType, SharePartition, ShareSettings
from broker.share.state_batches import DeliveryState, StateBatch
from protocol.errors import KafkaError
from tests.broker.share.state_room import StateRoom, is_well

A, Q, K, X = (
    DeliveryState.AVAILABLE,
    DeliveryState.ACQUIRED,
    DeliveryState.ACKNOWLEDGED,
    DeliveryState.ARCHIVED,
)
MEMBERS = ("ann", "ben", "cid")
LOCK_MS = 100
STEPS = 400


class Known(NamedTuple):
    """What the model knows of one record."""

    state: DeliveryState = A
    deliveries: int = 0
    holder: str = ""
    deadline_ms: int = 0
    pending: Transition | None = None
    before: "Known | None" = None


NEW = Known()


class World:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.now_ms = 0
        self.settings = ShareSettings(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=chance.choice((2, 3, 5)),
            record_locks_max=chance.choice((10, 50, 1000)),
        )
        self.log: list[Offsets] = []
        self.aborted: set[Offsets] = set()
        self.log_start = 0
        self.log_end = 0
        self.room = StateRoom()
        self.room.initialize()
        self.records: dict[int, Known] = {}
        self.stored: dict[int, tuple[DeliveryState, int]] = {}
        """What the share coordinator has of each record."""
        self.done: dict[int, DeliveryState] = {}
        """What became of each record in the end."""
        self.under_way: list[Transition] = []
        self.partition = SharePartition(self.settings)
        self.low = 0
        """The start offset must not go back below this."""

    # Steps

    def step(self) -> None:
        kinds = ("produce", "fetch", "fetch", "acknowledge", "acknowledge", "finish", "finish", "wait")
        kind = self.chance.choice(kinds)
        if self.chance.random() < 0.05:
            kind = self.chance.choice(("release", "cut", "crash"))
        getattr(self, kind)()
        self.check()

    def produce(self) -> None:
        """Batches, some of them of aborted transactions, now and then behind a gap."""
        first = self.log_end + (self.chance.randrange(1, 4) if self.chance.random() < 0.1 else 0)
        batch = Offsets(first, first + self.chance.choice((0, 0, 1, 4, 9)))
        self.log.append(batch)
        self.log_end = batch.last_offset + 1
        if self.chance.random() < 0.1:
            self.aborted.add(batch)

    def fetch(self, *, greedy: bool = False) -> int:
        partition = self.partition
        if not partition.can_acquire:
            return 0
        offset = partition.next_fetch_offset
        if offset < self.log_start:
            self.move_to_log_start()
            return 0
        fetched = [batch for batch in self.log if batch.last_offset >= offset]
        fetched = fetched[: 1000 if greedy else self.chance.randrange(1, 5)]
        member = self.chance.choice(MEMBERS)
        mode = AcquireMode(self.chance.randrange(2))
        wanted = 1000 if greedy else self.chance.choice((1, 2, 5, 20))
        aborted = [batch for batch in fetched if batch in self.aborted]
        found = partition.acquire(
            member,
            mode,
            self.chance.choice((1, 3, 100)),
            wanted,
            offset,
            fetched,
            aborted,
            self.now_ms,
        )
        self.skip_gaps(offset, fetched)
        if mode is AcquireMode.RECORD_LIMIT:
            assert sum(each.record_count for each in found) <= wanted
        total = 0
        for each in found:
            for one in range(each.first_offset, each.last_offset + 1):
                known = self.records.get(one, NEW)
                assert known.state is A, f"{one} is {known}"
                assert known.pending is None
                assert each.delivery_count == known.deliveries + 1
                assert one >= partition.start_offset
                assert not any(batch.first_offset <= one <= batch.last_offset for batch in aborted)
                self.records[one] = Known(Q, known.deliveries + 1, member, self.now_ms + LOCK_MS)
                total += 1
        for batch in aborted:
            for one in range(batch.first_offset, batch.last_offset + 1):
                known = self.records.get(one, NEW)
                if self.run_at(one) == (X, "") and known.state is A:
                    self.records[one] = Known(X, known.deliveries + 1)  # it was acquired, and nobody was told
        return total

    def skip_gaps(self, offset: int, fetched: list[Offsets]) -> None:
        """What is available and not in the log is given up."""
        if fetched:
            self.give_up(offset, fetched[0].first_offset)

    def give_up(self, first: int, end: int) -> None:
        """Nobody can have what is available there."""
        for run in self.partition.in_flight.runs():
            for offset in range(max(run.first_offset, first), min(run.last_offset + 1, end)):
                known = self.records.get(offset, NEW)
                if known.state is A:
                    self.records[offset] = known._replace(state=X, pending=None, before=None)

    def acknowledge(self) -> None:
        member = self.chance.choice(MEMBERS)
        held = [offset for offset, known in sorted(self.records.items()) if known.holder == member]
        if not held:
            return
        first = self.chance.choice(held)
        last = first + self.chance.choice((0, 0, 1, 3, 9))
        if self.chance.random() < 0.8:
            while last not in held or last < first:
                last -= 1
            last = max(last, first)
        kinds = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.GAP)
        if self.chance.random() < 0.2:
            types = [AcknowledgeType.RENEW]
        elif self.chance.random() < 0.5:
            types = [self.chance.choice(kinds)]
        else:
            types = [self.chance.choice(kinds) for _ in range(last - first + 1)]
        offsets = [offset for offset in range(first, last + 1) if offset >= self.partition.start_offset]
        may = (not offsets or self.run_at(last) is not None) and all(
            self.records.get(offset, NEW).holder == member
            for offset in offsets
            if self.run_at(offset) is not None  # what is not in the log cannot be held
        )
        try:
            transition = self.partition.acknowledge(
                member, [Acknowledgement(first, last, types)], self.now_ms
            )
        except KafkaError:
            assert not may, f"{member} holds {first} to {last}"
            for offset in offsets:  # renewals of what came before the fault stay
                known = self.records.get(offset, NEW)
                if types == [AcknowledgeType.RENEW] and known.holder == member:
                    self.records[offset] = known._replace(deadline_ms=self.deadline_at(offset))
            return
        assert may, f"{member} does not hold {first} to {last}"
        for offset in offsets:
            if self.run_at(offset) is None:
                continue
            kind = types[0] if len(types) == 1 else types[offset - first]
            self.let_go(offset, kind, transition)
        self.begin(transition)

    def let_go(self, offset: int, kind: AcknowledgeType, transition: Transition) -> None:
        known = self.records[offset]
        if kind is AcknowledgeType.RENEW:
            self.records[offset] = known._replace(deadline_ms=self.now_ms + LOCK_MS)
            return
        state = {AcknowledgeType.ACCEPT: K, AcknowledgeType.RELEASE: A}.get(kind, X)
        if state is A and offset < self.partition.start_offset:
            state = X
        self.records[offset] = self.after(known, state)._replace(pending=transition, before=known)

    def after(self, known: Known, state: DeliveryState) -> Known:
        if state is A and known.deliveries >= self.settings.delivery_count_limit:
            state = X
        return known._replace(state=state, holder="")

    def begin(self, transition: Transition) -> None:
        if transition.stored:
            self.under_way.append(transition)

    def finish(self, *, may_fail: bool = True) -> None:
        """The share coordinator answers the oldest write."""
        if not self.under_way:
            return
        transition = self.under_way.pop(0)
        stored = list(transition.stored)
        is_stored = not (may_fail and self.chance.random() < 0.15)
        if is_stored:
            self.store(stored)
        self.partition.finish(transition, self.now_ms, is_stored=is_stored)
        for offset, known in list(self.records.items()):
            if known.pending is not transition:
                continue
            before = known.before
            assert before is not None
            if is_stored:
                self.records[offset] = known._replace(pending=None, before=None)
            elif before.deadline_ms <= self.now_ms:
                state = X if offset < self.partition.start_offset else A
                self.records[offset] = self.after(before, state)
            else:
                self.records[offset] = before

    def store(self, batches: list[StateBatch]) -> None:
        partition = self.partition
        outcome = self.room.write(
            *batches, start=partition.start_offset, complete=partition.delivery_complete_count
        )
        assert is_well(outcome)
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self.stored[offset] = DeliveryState(batch.delivery_state), batch.delivery_count

    def wait(self) -> None:
        self.now_ms += self.chance.choice((1, 10, 10, 60))
        due = self.partition.deadline_ms()
        held = [known.deadline_ms for known in self.records.values() if known.state is Q]
        assert due == min(held, default=None)
        stored, _ = self.partition.expire(self.now_ms)
        for offset, known in list(self.records.items()):
            if known.state is Q and known.deadline_ms <= self.now_ms:
                state = X if offset < self.partition.start_offset else A
                self.records[offset] = self.after(known, state)
        if stored and self.chance.random() < 0.9:
            self.store(stored)
        self.partition.settle()

    def release(self) -> None:
        """A member's session ends."""
        member = self.chance.choice(MEMBERS)
        transition = self.partition.release(member)
        for offset, known in list(self.records.items()):
            if known.state is Q and known.holder == member:
                self.let_go(offset, AcknowledgeType.RELEASE, transition)
        self.begin(transition)

    def cut(self) -> None:
        """Records are deleted; a fetch will notice."""
        if self.log and self.chance.random() < 0.5:
            self.log_start = self.chance.randrange(self.log_start, self.log_end + 1)

    def move_to_log_start(self) -> None:
        start_offset = self.partition.start_offset
        self.partition.move_to(self.log_start)
        self.give_up(start_offset, self.log_start)

    def crash(self) -> None:
        """Another broker goes on with what is stored."""
        outcome = self.room.read()
        self.partition = SharePartition(self.settings)
        self.partition.load(outcome.start_offset, outcome.state_epoch, outcome.batches)
        self.under_way.clear()
        self.low = 0
        self.records = {
            offset: Known(state, count)
            for offset, (state, count) in self.stored.items()
            if offset >= outcome.start_offset
        }

    # Looking

    def run_at(self, offset: int) -> tuple[DeliveryState, str] | None:
        for run in self.partition.in_flight.runs():
            if run.first_offset <= offset <= run.last_offset:
                return run.state, run.member_id
        return None

    def deadline_at(self, offset: int) -> int:
        for run in self.partition.in_flight.runs():
            if run.first_offset <= offset <= run.last_offset:
                assert run.deadline_ms is not None
                return run.deadline_ms
        raise AssertionError(f"{offset} is not in flight")

    def check(self) -> None:
        partition = self.partition
        assert partition.start_offset >= self.low
        self.low = partition.start_offset
        seen = set()
        complete = 0
        last = -1
        for run in partition.in_flight.runs():
            assert last < run.first_offset <= run.last_offset, "runs are in order and apart"
            last = run.last_offset
            for offset in range(run.first_offset, run.last_offset + 1):
                known = self.records.get(offset, NEW)
                assert (run.state, run.member_id) == (known.state, known.holder), f"{offset} is {known}"
                assert run.delivery_count == known.deliveries
                assert run.is_pending == (known.pending is not None)
                seen.add(offset)
                complete += run.state.is_terminal and offset >= partition.start_offset
        assert partition.delivery_complete_count == complete
        for offset, known in list(self.records.items()):
            if offset in seen:
                continue
            if offset < partition.start_offset:
                assert known.state.is_terminal or offset < self.log_start, f"{offset} is lost: {known}"
                self.done.setdefault(offset, known.state)
                del self.records[offset]
            else:
                assert known.deliveries == 0, f"{offset} is forgotten: {known}"

    def drain(self) -> None:
        """From now on everybody accepts what he gets."""
        while self.under_way:
            self.finish(may_fail=False)
        for _ in range(10_000):
            self.now_ms += LOCK_MS + 1
            stored, _ = self.partition.expire(self.now_ms)
            for offset, known in list(self.records.items()):
                if known.state is Q:
                    state = X if offset < self.partition.start_offset else A
                    self.records[offset] = self.after(known, state)
            if stored:
                self.store(stored)
            self.partition.settle()
            self.fetch(greedy=True)
            for member in MEMBERS:
                for offset, known in sorted(self.records.items()):
                    if known.state is Q and known.holder == member and offset >= self.partition.start_offset:
                        accepted = [Acknowledgement(offset, offset, [AcknowledgeType.ACCEPT])]
                        transition = self.partition.acknowledge(member, accepted, self.now_ms)
                        self.let_go(offset, AcknowledgeType.ACCEPT, transition)
                        self.begin(transition)
                        self.finish(may_fail=False)
            self.check()
            if self.is_drained:
                return
        raise AssertionError(f"records are left: {self.partition.in_flight.batches}, {self.log_start}")

    @property
    def is_drained(self) -> bool:
        """Whether nothing that a member could get is left."""
        left = [
            batch
            for batch in self.log
            if batch.last_offset >= max(self.partition.start_offset, self.log_start)
            and batch not in self.aborted
            and any(
                not self.records.get(offset, NEW).state.is_terminal
                for offset in range(batch.first_offset, batch.last_offset + 1)
                if offset >= max(self.partition.start_offset, self.log_start)
            )
        ]
        return not left and not self.under_way


@pytest.mark.parametrize("history", range(12))
def test_share_partitions_keep_their_promises(seed: int, history: int) -> None:
    world = World(random.Random(seed * 1000 + history))
    for _ in range(STEPS):
        world.step()
    world.drain()
