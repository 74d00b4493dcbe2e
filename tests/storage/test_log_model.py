"""A log against a plain list, through random operations, crashes, torn and reordered writes."""

from collections.abc import Iterator
from random import Random

import pytest

from storage.config import LogConfig
from storage.errors import DiskFailure
from storage.memory_filesystem import PowerCut
from storage.partition_log import FlushJob, PartitionLog
from storage.producer_snapshot import encode_producer_snapshot
from tests.storage.builders import DIRECTORY, World, batch, marker, read_all, values

ENOSPC = 28


class Model:
    """What the log must hold: a list of (offset, value), and how much of it is promised to be safe."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.world = World(open_files_max=chance.choice([1, 3, 100]))
        self.config = LogConfig(
            segment_bytes=chance.choice([300, 1000, 100_000]),
            index_interval_bytes=chance.choice([0, 100, 4096]),
            segment_index_bytes=chance.choice([40, 10_000]),
        )
        self.log = self.world.create(self.config)
        self.log.close()
        self.world.memory.sync_everything()
        self.records: list[tuple[int, bytes | None]] = []
        self.log_start = 0
        self.log_end = 0
        self.flushed = 0
        """Everything below must survive a power cut."""
        self.checkpointed = 0
        """The recovery point that the checkpoint file has."""
        self.was_closed = False
        self.epoch = 0
        self.now_ms = 0
        self.sequences: dict[int, int] = {}
        self.counter = 0
        self.pending: list[FlushJob] = []
        self.has_deleted = False

    # Operations

    def append(self) -> None:
        self.counter += 1
        count = self.chance.randrange(1, 4)
        contents = [b"%d.%d" % (self.counter, n) + bytes(self.chance.randrange(60)) for n in range(count)]
        producer_id = self.chance.choice([-1, -1, 1, 2])
        sequence = self.sequences.get(producer_id, 0)
        new = batch(
            *contents,
            timestamp=self.chance.randrange(1000),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
        if self.chance.random() < 0.1:
            self.epoch += 1
        appended = self.log.append_as_leader(new, self.epoch, now_ms=self.now_ms)
        assert appended.base_offset == self.log_end
        self.note_appended(contents)
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + count

    def append_transactional(self) -> None:
        self.counter += 1
        content = b"t%d" % self.counter
        producer_id = 50 + self.chance.randrange(3)
        new = batch(
            content, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        self.log.append_as_leader(new, self.epoch, now_ms=self.now_ms, from_client=False)
        self.note_appended([content])
        if self.chance.random() < 0.5:
            end = marker(commit=self.chance.random() < 0.5, producer_id=producer_id)
            self.log.append_as_leader(end, self.epoch, now_ms=self.now_ms, from_client=False)
            (record,) = end.records()
            self.note_appended([record.value])

    def note_appended(self, contents: list[bytes] | list[bytes | None]) -> None:
        for content in contents:
            self.records.append((self.log_end, content))
            self.log_end += 1

    def begin_flush(self) -> None:
        if (job := self.log.begin_flush()) is not None:
            self.pending.append(job)

    def finish_flush(self) -> None:
        """Of any flush under way, in any order, as threads would."""
        if self.pending:
            job = self.pending.pop(self.chance.randrange(len(self.pending)))
            job.run()
            job.finish()
            self.flushed = max(self.flushed, self.log.recovery_point)

    def checkpoint(self) -> None:
        self.checkpointed = self.log.recovery_point

    def roll(self) -> None:
        self.log.roll(now_ms=self.now_ms)

    def truncate(self) -> None:
        if self.records and self.chance.random() < 0.3:
            target = self.chance.choice([each.base_offset for each in read_all(self.log)])
            # As the broker does: the checkpoint must not promise what the log has lost.
            self.checkpointed = min(self.checkpointed, target)
            self.flushed = min(self.flushed, target)
            self.log.truncate_to(target, now_ms=self.now_ms)
            self.records = [entry for entry in self.records if entry[0] < target]
            self.log_end = target
            self.log_start = min(self.log_start, target)
            self.forget_producers()
            # What was truncated may come back after a power cut unless the cut is flushed.
            self.finish_everything()

    def finish_everything(self) -> None:
        self.pending.clear()
        self.world.memory.sync_everything()
        self.flushed = self.log_end

    def delete_records(self) -> None:
        if self.chance.random() < 0.3:
            self.log.advance_high_watermark(self.log_end)
            self.has_deleted = True
            target = self.chance.randrange(self.log_start, self.log_end + 1)
            self.log_start = max(self.log_start, self.log.delete_records_before(target))
            self.records = [entry for entry in self.records if entry[0] >= self.log_start]
            self.log.remove_segments_below_log_start(now_ms=self.now_ms)

    def pass_time(self) -> None:
        self.now_ms += self.chance.choice([10, 70_000])
        remove = self.world.services.removals.begin(self.now_ms)
        if remove is not None:
            remove()

    def fill_disk(self) -> None:
        """An append that the disk has no room for, or only for a part of."""
        self.world.memory.refuse("write", ENOSPC, path_suffix=self.chance.choice([".log", ".index", ""]))
        state = encode_producer_snapshot(self.log.producers.entries.values())
        try:
            self.append()
        except DiskFailure:
            assert self.log.log_end == self.log_end
            assert encode_producer_snapshot(self.log.producers.entries.values()) == state
        else:
            return
        finally:
            self.world.memory.refuse_nothing()

    # Restarts

    def close_and_open(self) -> None:
        self.log.close()
        self.world.memory.lose_power(self.chance)  # a clean stop needs nothing that was not fsynced
        self.flushed = self.log_end
        self.reopen(was_clean=True)
        assert not self.world.reports

    def kill(self) -> None:
        """The process dies; the page cache lives on."""
        self.world.memory.kill()
        end = self.log_end
        self.reopen(was_clean=False)
        assert self.log_end == end, "nothing that was written is lost"

    def cut_power(self) -> None:
        self.world.memory.lose_power(self.chance)
        self.reopen(was_clean=False)

    def cut_power_at_any_time(self) -> None:
        """In the middle of whatever comes next."""
        self.world.memory.stop_after = self.chance.randrange(1, 12)
        try:
            for _ in range(20):
                self.chance.choice([self.append, self.begin_flush, self.finish_flush, self.roll])()
            self.log.close()
        except PowerCut:
            pass
        self.world.memory.lose_power(self.chance)
        # The append that was cut short may be there or not: it was not acknowledged.
        self.reopen(was_clean=False, may_have_more=True)

    def reopen(self, *, was_clean: bool, may_have_more: bool = False) -> None:
        self.pending.clear()
        self.log = self.world.open(
            self.config,
            was_clean=was_clean,
            recovery_point=self.checkpointed,
            log_start=self.log_start,
            now_ms=self.now_ms,
        )
        assert self.log.log_end >= self.flushed
        found = [entry for entry in values(read_all(self.log)) if entry[0] >= self.log_start]
        known = [entry for entry in found if entry[0] < self.log_end]
        assert known == [entry for entry in self.records if entry in known], "what survived is as it was"
        # The device may have kept a later segment and lost the end of an earlier one, but only of
        # what was not fsynced.
        assert [e for e in known if e[0] < self.flushed] == [e for e in self.records if e[0] < self.flushed]
        if not may_have_more:
            assert found == known
        self.records = found
        self.log_end = self.log.log_end
        self.log_start = self.log.log_start
        self.flushed = min(self.flushed, self.log_end)
        self.world.reports.clear()
        self.forget_producers()

    def forget_producers(self) -> None:
        self.sequences = {
            entry.producer_id: entry.last_sequence + 1
            for entry in self.log.producers.entries.values()
            if entry.batches
        }

    # What must hold

    def check(self) -> None:
        log = self.log
        assert (log.log_start, log.log_end) == (self.log_start, self.log_end)
        assert log.log_start <= log.last_stable <= log.high_watermark <= log.log_end
        assert log.recovery_point <= log.log_end
        found = values(read_all(log, max_bytes=self.chance.choice([1, 100, 1 << 20])))
        assert [entry for entry in found if entry[0] >= self.log_start] == self.records
        if self.records:
            offset, _ = self.chance.choice(self.records)
            piece = log.read(offset, 1)
            assert piece is not None
            assert values(read_all(log, offset))[-1] == self.records[-1]
        else:
            assert log.read(log.log_start, 1) is None

    def check_against_rebuild(self) -> None:
        """What grew step by step must be what recovery makes of the records alone."""
        log = self.log
        log.close()
        grown = state_of(log)
        rebuilt = self.world.open(
            self.config, was_clean=False, recovery_point=0, log_start=self.log_start, now_ms=self.now_ms
        )
        for name, value in state_of(rebuilt).items():
            if name in ("epochs", "producers", "first undecided", "aborted") and self.has_deleted:
                continue  # what deleted records left behind is known only to whoever saw them
            assert value == grown[name], name
        # A power cut long ago may have torn a snapshot that was never needed, and left offsets out.
        told = (".snapshot: ", "before it are missing; they had not been flushed")
        assert not [line for line in self.world.reports if not any(known in line for known in told)]
        self.log = rebuilt


def state_of(log: PartitionLog) -> dict[str, object]:
    return {
        "start": log.log_start,
        "end": log.log_end,
        "epochs": log.leader_epochs.entries,
        "producers": sorted(log.active_producers()),
        "first undecided": log.producers.first_undecided,
        "segments": log.segments,
        "aborted": [list(s.transaction_index.entries()) for s in log._segments],
        "offset indexes": [list(index_entries(s.offset_index)) for s in log._segments],
    }


def index_entries(index: object) -> Iterator[tuple[int, ...]]:
    from storage.sparse_index import SparseIndex

    assert isinstance(index, SparseIndex)
    index.load()
    for number in range(index.count):
        yield index._read(number)


OPERATIONS = [
    (Model.append, 40),
    (Model.append_transactional, 6),
    (Model.begin_flush, 6),
    (Model.finish_flush, 6),
    (Model.checkpoint, 4),
    (Model.roll, 2),
    (Model.truncate, 3),
    (Model.delete_records, 3),
    (Model.pass_time, 3),
    (Model.fill_disk, 2),
    (Model.close_and_open, 2),
    (Model.kill, 2),
    (Model.cut_power, 2),
    (Model.cut_power_at_any_time, 2),
]


@pytest.mark.parametrize("run", range(40))
def test_log_behaves_as_a_list(run: int, seed: int) -> None:
    model = Model(Random(seed + run))
    operations = [operation for operation, _ in OPERATIONS]
    weights = [weight for _, weight in OPERATIONS]
    history: list[str] = []
    try:
        for _ in range(60):
            operation = model.chance.choices(operations, weights)[0]
            history.append(operation.__name__)
            operation(model)
            model.check()
        history.append("check_against_rebuild")
        model.check_against_rebuild()
        model.check()
    except BaseException as error:
        error.add_note(f"after {' '.join(history)}")
        raise


def test_directory_is_the_one_used() -> None:
    assert Model(Random(1)).log.directory == DIRECTORY
