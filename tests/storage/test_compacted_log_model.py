"""A compacted log against a dictionary, through random operations, crashes, torn and reordered writes."""

import os
from random import Random
from typing import NamedTuple

import pytest

from protocol.records.batch import RecordBatch, read_batch, read_batches
from protocol.records.builder import build_batch
from storage import paths
from storage.cleaned_segments import clean
from storage.config import LogConfig
from storage.memory_filesystem import PowerCut
from storage.partition_log import FlushJob, PartitionLog
from tests.storage.builders import DIRECTORY, World, marker, read_all

KEYS = 6


class Written(NamedTuple):
    """One record that was appended."""

    key: bytes
    value: bytes | None
    producer_id: int
    """Of its transaction; -1 outside any."""


class Model:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.world = World(open_files_max=chance.choice([2, 100]))
        self.now_ms = 0
        self.world.memory.now_ms = lambda: self.now_ms
        self.config = LogConfig(
            segment_bytes=chance.choice([300, 800, 3000]),
            index_interval_bytes=chance.choice([0, 150]),
            compacts=True,
            deletes=chance.random() < 0.3,
            retention_ms=chance.choice([500, 100_000]),
            min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=chance.choice([0, 300]),
        )
        self.log = self.world.create(self.config)
        self.log.close()
        self.world.memory.sync_everything()
        self.written: dict[int, Written] = {}
        """Offset -> data record: of everything that was appended and not truncated or lost."""
        self.markers: dict[int, tuple[int, bool]] = {}
        """Offset -> producer and whether it is a commit: of the markers, likewise."""
        self.flushed = 0
        self.checkpointed = 0
        self.cleaned: int | None = None
        self.compacted = 0
        """The high watermark at the last cleaning, finished or not: a log is never truncated below."""
        self.log_start = 0
        self.pending: list[FlushJob] = []

    # Operations

    def append(self) -> None:
        self.write(self.chance.randrange(1, 4))

    def append_transactional(self) -> None:
        producer_id = self.chance.randrange(3)
        is_open = any(
            p.producer_id == producer_id and p.transaction_start >= 0 for p in self.log.active_producers()
        )
        if is_open and self.chance.random() < 0.5:
            is_commit = self.chance.random() < 0.5
            end = marker(commit=is_commit, producer_id=producer_id, timestamp=self.now_ms)
            self.markers[self.append_batch(end)] = producer_id, is_commit
        else:
            self.write(
                self.chance.randrange(1, 3),
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                is_transactional=True,
            )

    def write(self, count: int, *, producer_id: int = -1, **options: object) -> None:
        new = [
            Written(
                b"key %d" % self.chance.randrange(KEYS),
                None if self.chance.random() < 0.25 else bytes(self.chance.randrange(30, 60)),
                producer_id,
            )
            for _ in range(count)
        ]
        records = [(self.now_ms, each.key, each.value, ()) for each in new]
        batch = build_batch(records, producer_id=producer_id, **options)  # type: ignore[arg-type]
        self.written.update(enumerate(new, self.log.log_end))  # first: the power may be cut in the write
        self.append_batch(read_batch(batch))

    def append_batch(self, new: RecordBatch) -> int:
        appended = self.log.append_as_leader(new, 0, now_ms=self.now_ms, from_client=False)
        self.log.advance_high_watermark(self.log.log_end)
        return appended.base_offset

    def roll(self) -> None:
        self.log.roll(now_ms=self.now_ms)

    def begin_flush(self) -> None:
        if (job := self.log.begin_flush()) is not None:
            self.pending.append(job)

    def finish_flush(self) -> None:
        if self.pending:
            job = self.pending.pop(self.chance.randrange(len(self.pending)))
            job.run()
            job.finish()
            self.flushed = max(self.flushed, self.log.recovery_point)

    def checkpoint(self) -> None:
        self.checkpointed = self.log.recovery_point

    def pass_time(self) -> None:
        self.now_ms += self.chance.choice([10, 200, 1000])
        remove = self.world.services.removals.begin(self.now_ms)
        if remove is not None:
            remove()

    def compact(self) -> None:
        cleanable = self.log.assess(self.cleaned, now_ms=self.now_ms)
        if not cleanable.cleanable_bytes:
            return
        self.compacted = max(self.compacted, self.log.high_watermark)
        self.log.flush()
        self.flushed = max(self.flushed, self.log.recovery_point)
        job = self.log.begin_cleaning(
            cleanable, keys_max=self.chance.choice([2, 100]), bytes_per_second=1, now_ms=self.now_ms
        )
        ready: list[list[int]] = []
        done = clean(self.world.services, job, ready.append, lambda _: None)
        for _ in range(self.chance.randrange(3)):
            self.append()  # the broker goes on meanwhile
        for bases in ready:
            assert self.log.swap_in(bases, cuts=self.log.cuts, now_ms=self.now_ms)
        self.world.memory.sync_directory(DIRECTORY)
        self.cleaned = done.end_offset

    def apply_retention(self) -> None:
        self.log.delete_expired_segments(now_ms=self.now_ms)
        self.log_start = self.log.log_start

    def delete_records(self) -> None:
        if self.chance.random() < 0.3:
            target = self.chance.randrange(self.log_start, self.log.high_watermark + 1)
            self.log_start = self.log.delete_records_before(target)

    def truncate(self) -> None:
        bases = [each.base_offset for each in read_all(self.log) if each.base_offset >= self.compacted]
        if bases and self.chance.random() < 0.3:
            target = self.chance.choice(bases)
            self.log.truncate_to(target, now_ms=self.now_ms)
            self.checkpointed = min(self.checkpointed, target)
            self.pending.clear()
            self.world.memory.sync_everything()
            self.forget_from(target)
            self.flushed = target

    def forget_from(self, target: int) -> None:
        self.written = {offset: each for offset, each in self.written.items() if offset < target}
        self.markers = {offset: each for offset, each in self.markers.items() if offset < target}
        if self.cleaned is not None:
            self.cleaned = min(self.cleaned, target)
        self.log_start = self.log.log_start

    def decided(self) -> set[int]:
        """Offsets of the records that readers of committed ones see, if they were all there."""
        found: set[int] = set()
        transactions: dict[int, list[int]] = {}
        for offset in sorted([*self.written, *self.markers]):
            if offset in self.markers:
                producer_id, is_commit = self.markers[offset]
                records = transactions.pop(producer_id, [])
                if is_commit:
                    found.update(records)
            elif (producer_id := self.written[offset].producer_id) >= 0:
                transactions.setdefault(producer_id, []).append(offset)
            else:
                found.add(offset)
        return found

    # Restarts

    def close_and_open(self) -> None:
        self.log.close()
        self.world.memory.lose_power(self.chance)
        self.flushed = self.log.log_end
        self.reopen(was_clean=True)

    def kill(self) -> None:
        self.world.memory.kill()
        end = self.log.log_end
        self.reopen(was_clean=False)
        assert self.log.log_end == end

    def cut_power(self) -> None:
        self.world.memory.lose_power(self.chance)
        self.reopen(was_clean=False)

    def cut_power_at_any_time(self) -> None:
        """Mostly in the middle of a cleaning."""
        self.finish_flush()
        self.world.memory.stop_after = self.chance.randrange(1, 40)
        try:
            for _ in range(3):
                self.compact()
                self.begin_flush()
                self.finish_flush()
        except PowerCut:
            pass
        self.world.memory.lose_power(self.chance)
        self.reopen(was_clean=False)

    def reopen(self, *, was_clean: bool) -> None:
        self.pending.clear()
        end = self.log.log_end
        self.log = self.world.open(
            self.config,
            was_clean=was_clean,
            recovery_point=self.checkpointed,
            log_start=self.log_start,
            high_watermark=end,
            now_ms=self.now_ms,
        )
        assert self.log.log_end >= self.flushed, "what was flushed is there"
        found = {record.offset for each in read_all(self.log) for record in each.records()}
        if not was_clean:
            # Nothing that is not flushed was compacted, so what is missing there was lost.
            for known in (self.written, self.markers):
                for offset in [o for o in known if self.flushed <= o and o not in found]:
                    del known[offset]
        self.forget_from(self.log.log_end)
        self.flushed = min(self.flushed, self.log.log_end)

    # What must hold

    def check(self) -> None:
        log = self.log
        assert log.log_start <= log.last_stable <= log.high_watermark <= log.log_end
        found: dict[int, tuple[bytes | None, bytes | None]] = {}
        last = -1
        for each in read_all(log):
            assert each.base_offset > last, "offsets ascend"
            last = each.last_offset
            each.check_crc()
            if each.is_control:
                continue
            for record in each.records():
                found[record.offset] = record.key, record.value
        for offset, (key, value) in found.items():
            if offset >= self.log_start:
                assert self.written[offset][:2] == (key, value), "no record differs"
        self.check_latest(found)
        for offset in list(found)[:: max(len(found) // 5, 1)]:
            if offset >= log.log_start:
                piece = log.read(offset, 1)
                assert piece is not None
                (batch,) = read_batches(piece.read())
                assert batch.base_offset <= offset <= batch.last_offset, "indexes agree with the log"

    def check_latest(self, found: dict[int, tuple[bytes | None, bytes | None]]) -> None:
        """Of each key the last decided value is there; or, if it was deleted, no older one is."""
        decided = {offset for offset in self.decided() if offset >= self.log.log_start}
        latest = {self.written[offset].key: offset for offset in sorted(decided)}
        for key, offset in latest.items():
            if self.written[offset].value is not None:
                assert offset in found, f"{key!r} is lost"
            elif offset not in found:
                older = [o for o, (k, _) in found.items() if k == key and o in decided and o < offset]
                assert not older, f"{key!r} is back"

    def check_against_rebuild(self) -> None:
        """Indexes and producer state are what recovery makes of the records alone."""
        self.log.close()
        before = state_of(self.log)
        rebuilt = self.world.open(
            self.config,
            was_clean=False,
            recovery_point=0,
            log_start=self.log.log_start,
            high_watermark=self.log.log_end,
            now_ms=self.now_ms,
        )
        assert state_of(rebuilt) == before
        self.log = rebuilt


def state_of(log: PartitionLog) -> dict[str, object]:
    return {
        "start": log.log_start,
        "end": log.log_end,
        "segments": [each[:2] for each in log.segments],
        "offset indexes": [
            [s.offset_index._read(n) for n in range(s.offset_index.count)] for s in log._segments
        ],
    }


OPERATIONS = [
    (Model.append, 30),
    (Model.append_transactional, 12),
    (Model.roll, 5),
    (Model.begin_flush, 8),
    (Model.finish_flush, 10),
    (Model.checkpoint, 4),
    (Model.pass_time, 6),
    (Model.compact, 8),
    (Model.apply_retention, 3),
    (Model.delete_records, 2),
    (Model.truncate, 2),
    (Model.close_and_open, 2),
    (Model.kill, 2),
    (Model.cut_power, 2),
    (Model.cut_power_at_any_time, 3),
]


def go_through_one_history(chance: Random) -> None:
    model = Model(chance)
    operations = [operation for operation, _ in OPERATIONS]
    weights = [weight for _, weight in OPERATIONS]
    history: list[str] = []
    try:
        for _ in range(70):
            operation = chance.choices(operations, weights)[0]
            history.append(operation.__name__)
            operation(model)
            model.check()
        model.check_against_rebuild()
        model.check()
        transient = (paths.CLEANED, paths.SWAP)
        assert not [name for name in model.world.names() if name.endswith(transient)]
    except BaseException as error:
        error.add_note(f"after {' '.join(history)}")
        raise


@pytest.mark.parametrize("run", range(30))
def test_no_history_loses_or_revives_a_key(run: int, seed: int) -> None:
    go_through_one_history(Random(seed + run))


@pytest.mark.slow
@pytest.mark.parametrize("run", range(20))
def test_no_history_of_many_loses_or_revives_a_key(run: int, seed: int) -> None:
    """``OTTLA_TEST_HISTORIES`` says how many there are in each of the twenty runs."""
    for number in range(int(os.environ.get("OTTLA_TEST_HISTORIES", "10"))):
        go_through_one_history(Random(f"{seed} {run} {number}"))
