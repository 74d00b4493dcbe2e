"""Producers that write, end, die and come back at random, on a broker that crashes at random.

A simple model says what readers may see: a record counts if its transaction was committed, and a
transaction is committed if its producer was told so.  After every step the log's last stable offset is
looked over, after every crash the coordinator has to know what it knew, and in the end every transaction
is decided.
"""

import random
from collections import defaultdict, deque

import pytest

from broker.transactions.requests import Identity, MarkersDue
from broker.transactions.states import AT_REST
from broker.transactions.transaction import EPOCH_BUMP_VERSION, TransactionPartition
from protocol.error_codes import ErrorCode
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.builder import build_batch
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from storage.errors import ProducerError
from storage.transaction_verification import Verification
from tests.broker.transactions.desk import COMMIT, START_MS, Desk
from tests.storage.builders import World as Disk

STEPS = 1500
PARTITIONS = [("t", 0), ("t", 1)]
IDS = ["x", "y", "z"]


class Partition:
    """A partition's log, and what the model knows of its records."""

    def __init__(self) -> None:
        self.disk = Disk()
        self.log = self.disk.create(now_ms=START_MS)
        self.owners: dict[int, int] = {}
        """Offset of each record -> number of its transaction."""
        self.last_stable = 0

    def write(
        self, identity: Identity, sequence: int, verification: Verification | None, number: int
    ) -> bool:
        """Append as Produce does once the coordinator has answered."""
        batch = RecordBatch(
            build_batch(
                [(START_MS, None, str(number).encode(), ())],
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
        )
        try:
            appended = self.log.append_as_leader(batch, 0, now_ms=START_MS, verification=verification)
        except ProducerError:
            return False
        if not appended.is_duplicate:
            self.owners[appended.base_offset] = number
        self.log.advance_high_watermark(self.log.log_end)
        return True

    def crash(self) -> None:
        """Go on with what is on the disk."""
        self.log = self.disk.open(was_clean=False, now_ms=START_MS)
        self.log.advance_high_watermark(self.log.log_end)

    def end(self, due: MarkersDue) -> None:
        """Write a marker as the leader does."""
        if due.version >= EPOCH_BUMP_VERSION:
            self.log.producers.check_marker_epoch(*due.identity)
        marker = build_end_transaction_marker(
            EndTransactionMarker(due.is_commit, due.coordinator_epoch),
            producer_id=due.identity.producer_id,
            producer_epoch=due.identity.producer_epoch,
            timestamp=START_MS,
        )
        self.log.append_as_leader(RecordBatch(marker), 0, now_ms=START_MS, from_client=False)
        self.log.advance_high_watermark(self.log.log_end)

    def read_committed(self) -> list[int]:
        """The numbers that a consumer sees: all below the last stable offset, less what was aborted."""
        found = self.log.read(0, 1 << 30, upper=self.log.last_stable)
        if found is None:
            return []
        aborted: dict[int, deque[int]] = defaultdict(deque)
        for each in self.log.aborted_transactions(found):
            aborted[each.producer_id].append(each.first_offset)
        seen: list[int] = []
        dropping: set[int] = set()
        for batch in read_batches(found.read()):
            starts = aborted[batch.producer_id]
            if starts and starts[0] <= batch.base_offset:
                dropping.add(batch.producer_id)
                starts.popleft()
            if batch.is_control:
                dropping.discard(batch.producer_id)
            elif batch.producer_id not in dropping:
                seen += [int(record.value or b"-1") for record in batch.records()]
        return seen

    def check(self) -> None:
        assert self.log.last_stable >= self.last_stable, "the last stable offset went back"
        self.last_stable = self.log.last_stable
        starts = [
            entry.transaction_start
            for entry in self.log.producers.entries.values()
            if entry.transaction_start >= 0
        ]
        assert self.log.last_stable == min([*starts, self.log.high_watermark])


class Producer:
    """Follows the protocol of one transaction.version, most of the time."""

    def __init__(self, world: "World", transactional_id: str, version: int) -> None:
        self.world = world
        self.id = transactional_id
        self.version = version
        self.identity: Identity | None = None
        self.number = 0
        self.sequences: dict[TransactionPartition, int] = {}
        self.is_open = False
        self.is_failed = False
        self.unanswered: tuple[Identity, bool] | None = None
        """An end whose answer was lost."""

    def step(self) -> None:
        chance = self.world.chance
        if self.identity is None:
            self.initialize()
        elif self.unanswered is not None:
            self.end(self.unanswered[1])
        elif not self.is_open:
            self.open()
        elif chance.random() < 0.6:
            self.write()
        elif chance.random() < 0.9:
            self.end(not self.is_failed and chance.random() < 0.6)
        else:
            self.identity = None  # it has died, and comes back as somebody else

    def initialize(self) -> None:
        given = self.world.desk.initialize(transactional_id=self.id)
        if given.error is ErrorCode.NONE:
            self.identity = Identity(given.producer_id, given.producer_epoch)
            self.forget()
            self.sequences.clear()
        else:
            assert given.error is ErrorCode.CONCURRENT_TRANSACTIONS

    def open(self) -> None:
        self.number = self.world.new_transaction()
        self.is_open, self.is_failed = True, False

    def forget(self) -> None:
        self.is_open = self.is_failed = False
        self.unanswered = None

    def write(self) -> None:
        assert self.identity is not None
        place = self.world.chance.choice(PARTITIONS)
        partition = self.world.partitions[place]
        sequence = self.sequences.get(place, 0)
        desk = self.world.desk
        if self.version < EPOCH_BUMP_VERSION:
            code = desk.add(self.identity, place, transactional_id=self.id)
            if code is not ErrorCode.NONE:
                self.refused(code)
                return
        try:
            verification = partition.log.producers.begin_verification(
                *self.identity, sequence, starts_at_zero=self.version >= EPOCH_BUMP_VERSION, now_ms=START_MS
            )
        except ProducerError:
            self.is_failed = True
            return
        if verification is not None and self.version >= EPOCH_BUMP_VERSION:
            code = desk.add(self.identity, place, transactional_id=self.id, version=EPOCH_BUMP_VERSION)
            if code is not ErrorCode.NONE:
                self.refused(code)
                return
        if self.world.chance.random() < 0.1:
            self.world.end_something()  # between the answer and the write
        if partition.write(self.identity, sequence, verification, self.number):
            self.sequences[place] = sequence + 1
        else:
            self.is_failed = True

    def end(self, is_commit: bool) -> None:
        identity = self.identity if self.unanswered is None else self.unanswered[0]
        assert identity is not None
        ended = self.world.desk.end(identity, is_commit, version=self.version, transactional_id=self.id)
        if ended.error is ErrorCode.CONCURRENT_TRANSACTIONS:
            return  # markers are being written
        if self.unanswered is None and self.world.chance.random() < 0.2:
            self.unanswered = identity, is_commit
            if ended.error is ErrorCode.NONE:
                self.world.decided(self.number, is_commit)
            return
        if ended.error is ErrorCode.NONE:
            self.world.decided(self.number, is_commit)
            if self.version >= EPOCH_BUMP_VERSION:
                self.identity = Identity(ended.producer_id, ended.producer_epoch)
                self.sequences.clear()
            self.forget()
        else:
            self.refused(ended.error)

    def refused(self, code: ErrorCode) -> None:
        if code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return
        if code is ErrorCode.INVALID_TXN_STATE:
            # Nothing was ever added: there is nothing to end.
            assert self.world.desk.known(self.id).state in AT_REST
            self.forget()
            return
        assert code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING), code
        self.identity = None


class World:
    """A coordinator and the partitions, all of one broker."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.desk = Desk()
        self.partitions = {place: Partition() for place in PARTITIONS}
        self.producers = [Producer(self, name, chance.choice((1, 2))) for name in IDS]
        self.rivals = [Producer(self, name, chance.choice((1, 2))) for name in IDS]
        """Those who take over another's transactional id now and then."""
        self.outcomes: dict[int, bool] = {}
        self.transactions = 0

    def new_transaction(self) -> int:
        self.transactions += 1
        return self.transactions

    def decided(self, number: int, is_commit: bool) -> None:
        assert self.outcomes.setdefault(number, is_commit) is is_commit, "decided twice, and differently"

    def end_something(self) -> None:
        """Write the markers of one transaction; or only some of them, for a crash may come."""
        if not self.desk.due:
            return
        due = self.desk.due.popleft()
        written = [place for place in due.partitions if self.chance.random() < 0.9]
        for place in written:
            self.partitions[place].end(due)
        if len(written) == len(due.partitions):
            assert self.desk.markers_written(due) is ErrorCode.NONE
        else:
            self.desk.due.append(due)

    def crash(self) -> None:
        before = self.desk
        self.desk = before.crash()
        assert self.desk.machine.transactions == before.machine.transactions
        endings = {due.transactional_id: due for due in self.desk.due}
        assert endings == {due.transactional_id: due for due in before.due}
        for partition in self.partitions.values():
            if self.chance.random() < 0.5:
                partition.crash()

    def step(self) -> None:
        kind = self.chance.random()
        if kind < 0.75:
            self.chance.choice(self.rivals if self.chance.random() < 0.04 else self.producers).step()
        elif kind < 0.95:
            self.end_something()
        elif kind < 0.97:
            self.desk.let_pass(self.chance.randrange(40_000))
        else:
            self.crash()
        for partition in self.partitions.values():
            partition.check()

    def settle(self) -> None:
        """No producer comes back: time decides."""
        self.desk.let_pass(120_000)
        for _ in range(1000):
            if not self.desk.due:
                break
            self.end_something()
        states = {each.state for each in self.desk.machine.transactions.values()}
        assert states <= AT_REST, states

    def check_readers(self) -> None:
        for partition in self.partitions.values():
            assert partition.log.last_stable == partition.log.log_end
            committed = [
                number for number in partition.owners.values() if self.outcomes.get(number, False) is COMMIT
            ]
            assert partition.read_committed() == committed


@pytest.mark.parametrize("turn", range(4))
def test_what_is_committed_is_seen_and_nothing_else(seed: int, turn: int) -> None:
    world = World(random.Random(seed * 100 + turn))
    for _ in range(STEPS):
        world.step()
    world.settle()
    world.check_readers()
    assert {True, False} == set(world.outcomes.values()), "this history shows nothing"
