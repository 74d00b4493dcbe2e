"""A log directory in a memory file system, taken through the steps of a history beside its reference."""

import errno
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from protocol.records.batch import RecordBatch, TimestampType, read_batch
from protocol.records.builder import build_batch
from protocol.records.compression import Compression
from protocol.records.control import EndTransactionMarker, build_end_transaction_marker
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.errors import DiskFailure, InconsistentTopicId, ReplicaExists
from storage.log_directory import LogDirectory
from storage.log_services import LogServices
from storage.memory_filesystem import MemoryFileSystem, Names, PowerCut
from storage.partition_log import FlushJob, LogChanged, PartitionLog
from storage.worker import Throttle, do_job
from tests.storage.crashes.reference import (
    SEQUENCES,
    Batch,
    Cleaning,
    KnownProducer,
    Reference,
    producers_of,
    read_marker,
)

PATH = "data"
PLAIN: Replica = ("plain", 0)
TABLE: Replica = ("table", 0)
"""Compacted."""

NOTHING, CLEAN_STOP, KILL, POWER_CUT = range(4)
"""What was before a look at a log, and counts if several things were: the worst comes last."""

KEYS = 5
PRODUCERS = 3
ATTEMPTS = 6
"""Starts that may fail, one after the other."""

CODECS = [Compression.NONE] * 6 + [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


class Fault(NamedTuple):
    """What goes wrong in a step."""

    kind: str
    """``power``: cut at a change; ``kill``: the process dies there; ``refuse``: an operation fails."""
    after: int
    """So many changes, or operations of the name, go well before."""
    operation: str = ""
    error_number: int = 0
    keeps: float = 1.0
    """The share of an interrupted write that is made."""


class Step(NamedTuple):
    """One thing that happens; the details come from its own seed, so that other steps can be left out."""

    name: str
    seed: int
    fault: Fault | None = None


class BrokerEnded(Exception):
    """What the broker does when a disk fails in a way that leaves it no choice; or the power has failed."""

    def __init__(self, *, loses_power: bool) -> None:
        self.loses_power = loses_power


@dataclass
class Run:
    """A flush that is under way."""

    replica: Replica
    log: PartitionLog
    job: FlushJob
    end_offset: int
    cuts: int


@dataclass
class Cleaned:
    """What a worker has made and nobody has put in place yet."""

    replica: Replica
    log: PartitionLog
    cuts: int
    reference_cuts: int
    now_ms: int
    ready: list[list[int]] = field(default_factory=list)
    end_offset: int = 0
    steps: Iterator[Callable[[], None]] | None = None
    """The swap of the first of what is ready, if it has begun."""
    sync: Callable[[], None] | None = None
    """What its thread has still to do."""
    is_whole: bool = True


Look = Callable[["Subject", Replica, int], None]


class Subject:
    """The directory, what the cluster knows of its replicas, and what is under way.

    ``look`` is called after each start, with every replica and what was before the start, while the reference
    still is what it was then.
    """

    def __init__(self, chance: Random, look: "Look") -> None:
        self._look = look
        self._names_from = Random(chance.getrandbits(32))
        self.memory = MemoryFileSystem(now_ms=lambda: self.now_ms)
        self.now_ms = 1_000_000
        self.names = chance.choice(list(Names))
        self.sector_bytes = chance.choice([0, 512])
        self.open_files_max = chance.choice([2, 8, 100])
        self.configs = {
            PLAIN: _config(chance, compacts=False),
            TABLE: _config(chance, compacts=True),
        }
        self.reports: list[str] = []
        self.references: dict[Replica, Reference] = {}
        """What the cluster's metadata says is here."""
        self.topics_made = 0
        self.directory: LogDirectory
        self.running: list[Run] = []
        self.cleanings: list[Cleaned] = []
        self.leader_epoch = 0
        self.values = 0
        self.is_expecting_failure = False
        self.half_deleted: set[str] = set()
        """Folders where a deletion has failed: the next start finds indexes there that have no segment."""
        self._open()
        for replica in self.configs:
            self._create(replica)

    def log(self, replica: Replica) -> PartitionLog | None:
        return self.directory.log(*replica)

    # The course of things

    def perform(self, step: Step) -> None:
        """Go one step, with all that follows from its fault."""
        chance = Random(step.seed)
        fault = step.fault
        if fault is not None:
            self.arm(fault)
        try:
            getattr(self, step.name)(chance)
        except PowerCut:
            assert fault is not None
            self.crash(chance, loses_power=fault.kind == "power")
        except BrokerEnded as end:
            self.crash(chance, loses_power=end.loses_power)
        finally:
            self.disarm()
        self._check_ends()

    def arm(self, fault: Fault) -> None:
        if fault.kind == "refuse":
            self.is_expecting_failure = True
            self.memory.refused_keeps = fault.keeps
            self.memory.refuse(fault.operation, fault.error_number, after=fault.after)
        else:
            self.memory.cut_keeps = fault.keeps
            self.memory.stop_after = fault.after + 1

    def disarm(self) -> None:
        self.is_expecting_failure = False
        self.memory.refuse_nothing()
        self.memory.stop_after = None

    def _failed(self) -> None:
        """A DiskFailure was raised: that must have a reason."""
        assert self.is_expecting_failure, "nothing was refused"

    def _pick(self, chance: Random) -> tuple[Replica, Reference, PartitionLog] | None:
        replica = chance.choice(list(self.configs))
        reference = self.references.get(replica)
        log = self.log(replica)
        return (replica, reference, log) if reference is not None and log is not None else None

    def _check_ends(self) -> None:
        for replica, reference in self.references.items():
            log = self.log(replica)
            if log is not None:
                ends = (log.log_start, log.high_watermark, log.log_end)
                assert ends == (reference.log_start, reference.high_watermark, reference.log_end), replica
                assert log.recovery_point <= reference.flushed, f"the recovery point of {replica}"
                low, high = reference.last_stable()
                assert low <= log.last_stable <= high, f"last stable offset of {replica}"

    # Appending

    def append(self, chance: Random) -> None:
        """What a client sends: plain, idempotent or transactional; sometimes a second time."""
        if (picked := self._pick(chance)) is None:
            return
        replica, reference, log = picked
        known = self._producers(reference, log)
        producer_id = chance.choice([-1, *range(PRODUCERS)])
        options: dict[str, Any] = {}
        if producer_id >= 0:
            before = known.get(producer_id)
            if before is None:
                epoch, sequence = 0, chance.choice([0, 0, 7, SEQUENCES - 2])
            elif chance.random() < 0.1 and before.transaction_start < 0:
                epoch, sequence = before.producer_epoch + 1, 0
            else:
                epoch = before.producer_epoch
                sequence = (before.last_sequence + 1) % SEQUENCES
            in_transaction = before is not None and before.transaction_start >= 0
            options = {
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "base_sequence": sequence,
                "is_transactional": in_transaction or chance.random() < 0.5,
            }
        batch = self._build(chance, replica, chance.randrange(1, 4), **options)
        if (
            self._append_as_leader(reference, log, batch, chance)
            and producer_id >= 0
            and chance.random() < 0.1
        ):
            again = log.append_as_leader(
                read_batch(bytearray(batch.data)), self.leader_epoch, now_ms=self.now_ms
            )
            assert again.is_duplicate
            assert again.base_offset == reference.batches[-1].base_offset

    def _producers(self, reference: Reference, log: PartitionLog) -> dict[int, KnownProducer]:
        """What clients and coordinators know; if records were deleted, what the log still knows."""
        if not reference.deleted_below and not reference.log_start:
            return producers_of(reference.batches)
        return {
            each.producer_id: KnownProducer(
                each.producer_epoch,
                each.last_sequence,
                each.coordinator_epoch,
                each.last_timestamp,
                each.transaction_start,
            )
            for each in log.active_producers()
        }

    def end_transaction(self, chance: Random) -> None:
        """A marker, mostly for a transaction that is open."""
        if (picked := self._pick(chance)) is None:
            return
        _, reference, log = picked
        known = self._producers(reference, log)
        opened = [each for each, state in known.items() if state.transaction_start >= 0]
        candidates = opened if opened and chance.random() < 0.9 else list(known)
        if not candidates:
            return
        producer_id = chance.choice(candidates)
        state = known[producer_id]
        batch = read_batch(
            build_end_transaction_marker(
                EndTransactionMarker(
                    chance.random() < 0.5, max(state.coordinator_epoch, 0) + chance.randrange(2)
                ),
                producer_id=producer_id,
                producer_epoch=state.producer_epoch,
                timestamp=self.now_ms,
            )
        )
        self._append_as_leader(reference, log, batch, chance, from_client=False)

    def append_as_follower(self, chance: Random) -> None:
        """Several batches at once, as another broker led them; compaction has made gaps between some."""
        if (picked := self._pick(chance)) is None:
            return
        replica, reference, log = picked
        if chance.random() < 0.2:
            self.leader_epoch += 1
        records = bytearray()
        batches = []
        offset = reference.log_end
        for _ in range(chance.randrange(1, 4)):
            if reference.compacts and chance.random() < 0.1:
                offset += chance.choice([1, 5, 1 << 31])
            new = self._build(chance, replica, chance.randrange(1, 3))
            new.set_place(offset, self.leader_epoch)
            offset = new.next_offset
            records += new.data
            batches.append(Batch.of(new))
        reference.writes(batches)
        try:
            log.append_as_follower(records + records[:30], now_ms=self.now_ms)
        except DiskFailure:
            self._failed()
        written = [batch for batch in batches if batch.last_offset < log.log_end]
        for batch in written:
            reference.has_holes |= batch.base_offset > reference.log_end
            reference.acknowledge([batch])
        if log.log_end > reference.log_end:
            # It goes on behind a gap that no record is in.
            reference.log_end = log.log_end
            reference.has_holes = True

    def _build(self, chance: Random, replica: Replica, count: int, **options: Any) -> RecordBatch:
        append_time = chance.random() < 0.1
        records = []
        for _ in range(count):
            self.values += 1
            value: bytes | None = b"%d " % self.values + bytes(chance.randrange(40))
            key: bytes | None = None
            if replica == TABLE:
                key = b"key %d" % chance.randrange(KEYS)
                value = None if chance.random() < 0.25 else value
            records.append((self.now_ms + chance.randrange(-300, 300), key, value, ()))
        return read_batch(
            build_batch(
                records,
                compression=chance.choice(CODECS),
                timestamp_type=TimestampType(append_time),
                append_timestamp=self.now_ms if append_time else None,
                **options,
            )
        )

    def _append_as_leader(
        self,
        reference: Reference,
        log: PartitionLog,
        batch: RecordBatch,
        chance: Random,
        *,
        from_client: bool = True,
    ) -> bool:
        if chance.random() < 0.05:
            self.leader_epoch += 1
        batch.set_place(reference.log_end, self.leader_epoch)
        expected = Batch.of(batch)
        assert batch.is_control == (expected.is_control and read_marker(batch) is not None)
        batch.set_place(0, -1)
        reference.writes([expected])
        producers = sorted(log.active_producers())
        try:
            appended = log.append_as_leader(
                batch, self.leader_epoch, now_ms=self.now_ms, from_client=from_client
            )
        except DiskFailure:
            self._failed()
            assert log.log_end == reference.log_end, "a failed append leaves the log as it was"
            assert sorted(log.active_producers()) == producers
            return False
        assert (appended.base_offset, appended.last_offset) == (expected.base_offset, expected.last_offset)
        assert not appended.is_duplicate
        reference.acknowledge([expected])
        if chance.random() < 0.7:
            self._advance(reference, log, reference.log_end)
        return True

    def advance_high_watermark(self, chance: Random) -> None:
        if (picked := self._pick(chance)) is not None:
            _, reference, log = picked
            self._advance(reference, log, chance.randint(reference.high_watermark, reference.log_end))

    def _advance(self, reference: Reference, log: PartitionLog, offset: int) -> None:
        log.advance_high_watermark(offset)
        reference.advance_high_watermark(offset)

    def lead_anew(self, chance: Random) -> None:
        if (picked := self._pick(chance)) is not None:
            self.leader_epoch += 1
            picked[2].assign_leader_epoch(self.leader_epoch)

    def roll(self, chance: Random) -> None:
        if (picked := self._pick(chance)) is not None:
            try:
                picked[2].roll(now_ms=self.now_ms)
            except DiskFailure:
                self._failed()

    # Flushing

    def begin_flush(self, chance: Random) -> None:
        if (picked := self._pick(chance)) is not None:
            self._begin_flush(*picked)

    def _begin_flush(self, replica: Replica, reference: Reference, log: PartitionLog) -> Run | None:
        job = log.begin_flush()
        if job is None:
            return None
        run = Run(replica, log, job, reference.log_end, reference.cuts)
        self.running.append(run)
        return run

    def finish_flush(self, chance: Random) -> None:
        """Of any flush under way, in any order, as threads would."""
        if self.running:
            self._finish_flush(self.running[chance.randrange(len(self.running))])

    def _finish_flush(self, run: Run) -> None:
        self.running.remove(run)
        try:
            run.job.run()
        except DiskFailure as failure:
            self._failed()
            if not failure.lacks_descriptor:
                raise BrokerEnded(loses_power=True) from failure
            run.job.run()
        run.job.finish()
        reference = self.references.get(run.replica)
        if reference is not None and self.log(run.replica) is run.log and reference.cuts == run.cuts:
            reference.flushed = max(reference.flushed, run.end_offset)

    def checkpoint(self, chance: Random) -> None:
        """Recovery points and log starts."""
        self._write_checkpoint()

    def _write_checkpoint(self) -> bool:
        starts = {replica: each.log_start for replica, each in self.references.items() if self.log(replica)}
        write = self.directory.begin_checkpoint()
        try:
            write()
        except DiskFailure:
            self._failed()
            return False
        for replica, start in starts.items():
            self.references[replica].stored_start = max(self.references[replica].stored_start, start)
        return True

    def checkpoint_high_watermarks(self, chance: Random) -> None:
        marks = {
            replica: each.high_watermark for replica, each in self.references.items() if self.log(replica)
        }
        for replica, mark in marks.items():
            reference = self.references[replica]
            reference.stored_high_watermark = min(reference.stored_high_watermark, mark)
        write = self.directory.begin_high_watermark_checkpoint()
        try:
            write()
        except DiskFailure:
            self._failed()
            return
        for replica, mark in marks.items():
            self.references[replica].stored_high_watermark = mark

    # Shortening

    def delete_records(self, chance: Random) -> None:
        if (picked := self._pick(chance)) is None:
            return
        _, reference, log = picked
        offset = chance.randint(reference.log_start, reference.high_watermark)
        reference.start_at(log.delete_records_before(offset))
        assert reference.log_start == offset

    def apply_retention(self, chance: Random) -> None:
        if (picked := self._pick(chance)) is None:
            return
        replica, reference, log = picked
        config = self.configs[replica]
        deletes = config.deletes and (config.retention_ms >= 0 or config.retention_bytes >= 0)
        try:
            log.delete_expired_segments(now_ms=self.now_ms, at_most=chance.choice([1, 2, 100]))
        except DiskFailure:
            self._failed()
            self.half_deleted.add(log.directory)
        finally:
            assert log.log_start == reference.log_start or deletes
            assert reference.log_start <= log.log_start <= reference.high_watermark
            reference.start_at(log.log_start)

    def truncate(self, chance: Random) -> None:
        """As a follower does that finds that its leader has other records."""
        if (picked := self._pick(chance)) is None:
            return
        _, reference, log = picked
        lowest = max(reference.decided_up_to, reference.log_start) if chance.random() < 0.7 else 0
        if reference.compacts:
            lowest = reference.decided_up_to
        ends = [each.last_offset + 1 for each in reference.batches if each.last_offset >= lowest]
        target = chance.choice([*ends, reference.log_end, reference.log_end + 3])
        if target < log.recovery_point and not self._lower_recovery_point(log, target):
            return
        if target < reference.log_end:
            reference.truncate(target)
        try:
            log.truncate_to(target, now_ms=self.now_ms)
        except DiskFailure as failure:
            self._failed()
            raise BrokerEnded(loses_power=False) from failure
        self._note_cut(reference, chance)

    def truncate_fully(self, chance: Random) -> None:
        """As a follower does whose leader has nothing of what it has."""
        if (picked := self._pick(chance)) is None:
            return
        _, reference, log = picked
        target = chance.choice(
            [reference.log_end + chance.randrange(50), chance.randint(reference.log_start, reference.log_end)]
        )
        if target < reference.decided_up_to and reference.compacts:
            return
        if target < log.recovery_point and not self._lower_recovery_point(log, target):
            return
        reference.start_afresh(target)
        try:
            log.truncate_fully_and_start_at(target, now_ms=self.now_ms)
        except DiskFailure as failure:
            self._failed()
            raise BrokerEnded(loses_power=False) from failure
        self._note_cut(reference, chance)

    def _lower_recovery_point(self, log: PartitionLog, target: int) -> bool:
        """Before a truncation; whether it may begin."""
        log.lower_recovery_point(target)
        return self._write_checkpoint()

    def _note_cut(self, reference: Reference, chance: Random) -> None:
        """Before more is appended: the checkpoint must not promise what is gone."""
        if chance.random() < 0.1:
            raise BrokerEnded(loses_power=True)
        try:
            self.directory.begin_checkpoint()()
        except DiskFailure as failure:
            self._failed()
            raise BrokerEnded(loses_power=False) from failure
        reference.is_being_cut = False

    # Compaction

    def compact(self, chance: Random) -> None:
        """What the broker asks of its worker, up to the cleaned files; ``swap_in`` puts them in place."""
        replica = TABLE
        reference = self.references.get(replica)
        log = self.log(replica)
        if reference is None or log is None or any(each.log is log for each in self.cleanings):
            return
        try:
            cleanable = log.assess(self.directory.cleaner_offset(*replica), now_ms=self.now_ms)
        except DiskFailure:
            self._failed()
            return
        if not cleanable.is_due(self.configs[replica]):
            return
        run = self._begin_flush(replica, reference, log)
        if run is not None:
            self._finish_flush(run)
        if log.log_start > log.first_base and not self._write_checkpoint():
            return
        try:
            job = log.begin_cleaning(
                cleanable,
                keys_max=chance.choice([1, 3, 100]),
                bytes_per_second=float("inf"),
                now_ms=self.now_ms,
            )
        except DiskFailure:
            self._failed()
            return
        cleaned = Cleaned(replica, log, log.cuts, reference.cuts, self.now_ms)
        answers: list[dict[str, Any]] = []
        worker = LogServices(
            self.memory, random_below=lambda _: 0, report=self.reports.append, open_files_max=4
        )
        do_job(worker, "clean", json.loads(json.dumps(job._asdict())), answers.append, Throttle())
        for answer in answers:
            if "ready" in answer:
                cleaned.ready.append(answer["ready"])
            elif "cleaned" in answer:
                cleaned.end_offset = answer["cleaned"][0]
            else:
                assert not answer["is_damage"], answer["failed"]
                self._failed()
        reference.cleanings.append(Cleaning(job.upper, self.now_ms))
        self.cleanings.append(cleaned)
        if chance.random() < 0.6:
            self.swap_in(chance)

    def swap_in(self, chance: Random) -> None:
        """Cleaned segments take their places, and it is noted that the log is clean."""
        if not self.cleanings:
            return
        cleaned = self.cleanings[0]
        try:
            while cleaned.ready:
                bases = cleaned.ready[0]
                if cleaned.steps is None:
                    cleaned.steps = cleaned.log.swap_in_steps(bases, cuts=cleaned.cuts, now_ms=self.now_ms)
                try:
                    while (sync := cleaned.sync or next(cleaned.steps, None)) is not None:
                        cleaned.sync = sync
                        if chance.random() < 0.15:
                            return  # something else happens meanwhile, or the next step goes on
                        sync()
                        cleaned.sync = None
                        if chance.random() < 0.1:
                            return
                except LogChanged:
                    cleaned.is_whole = False
                cleaned.steps = None
                cleaned.ready.pop(0)
        except DiskFailure as failure:
            self._failed()
            raise BrokerEnded(loses_power=False) from failure
        self.cleanings.pop(0)
        if cleaned.is_whole and cleaned.end_offset and self.log(cleaned.replica) is cleaned.log:
            try:
                self.directory.begin_cleaner_checkpoint(*cleaned.replica, cleaned.end_offset)()
            except DiskFailure:
                self._failed()

    # Replicas and time

    def pass_time(self, chance: Random) -> None:
        self.now_ms += chance.choice([10, 400, 3000, 70_000])
        remove = self.directory.services.removals.begin(self.now_ms)
        if remove is not None:
            try:
                remove()
            except OSError:
                self._failed()

    def delete_partition(self, chance: Random) -> None:
        """The cluster forgets it first; what is left of it here must not come back."""
        if (picked := self._pick(chance)) is None:
            return
        replica = picked[0]
        del self.references[replica]
        self.cleanings = [each for each in self.cleanings if each.replica != replica]
        try:
            self.directory.delete_log(*replica, delay_ms=60_000, now_ms=self.now_ms)
        except DiskFailure:
            self._failed()

    def create_partition(self, chance: Random) -> None:
        missing = [replica for replica in self.configs if self.log(replica) is None]
        if missing:
            self._create(chance.choice(missing))

    def _create(self, replica: Replica) -> None:
        """A new topic, unless the cluster has one already, and its replica."""
        if replica not in self.references:
            self.topics_made += 1
            self.references[replica] = Reference(
                self.topics_made.to_bytes(16), compacts=self.configs[replica].compacts
            )
        try:
            self._take_up(replica)
        except DiskFailure:
            self._failed()

    # Ends and starts

    def close(self, chance: Random) -> None:
        """A clean stop, and perhaps a power cut behind it."""
        self._set_out_of_action()
        try:
            self.directory.close()
        except DiskFailure:
            self._failed()
            self.crash(chance, loses_power=chance.random() < 0.5)
            return
        for replica, reference in self.references.items():
            if self.log(replica) is not None:
                reference.flushed = reference.log_end
                reference.stored_start = reference.log_start
                reference.stored_high_watermark = reference.high_watermark
        self.disarm()
        if chance.random() < 0.5:
            self.memory.lose_power(chance, sector_bytes=self.sector_bytes, names=self.names)
        self._start(chance, after=CLEAN_STOP)

    def look(self, chance: Random) -> None:
        """Without any stop."""
        self.disarm()
        for replica in self.references:
            if self.log(replica) is not None:
                self._look(self, replica, NOTHING)

    def kill(self, chance: Random) -> None:
        self.crash(chance, loses_power=False)

    def cut_power(self, chance: Random) -> None:
        self.crash(chance, loses_power=True)

    def crash(self, chance: Random, *, loses_power: bool) -> None:
        """The process is gone, or the machine; some of the starts that follow end like that, too."""
        self._set_out_of_action()
        self._start(chance, after=self._end(chance, loses_power))

    def _end(self, chance: Random, loses_power: bool) -> int:
        """What was before the next start.

        Where an fsync has failed the machine had better go down, too: else the next process would read, and
        trust, what is in the cache only.
        """
        self.disarm()
        if loses_power or self.memory.failed_syncs:
            self.memory.failed_syncs = 0
            self.memory.lose_power(chance, sector_bytes=self.sector_bytes, names=self.names)
            return POWER_CUT
        self.memory.kill()
        return KILL

    def _set_out_of_action(self) -> None:
        self.running.clear()
        self.cleanings.clear()

    def _start(self, chance: Random, *, after: int) -> None:
        for attempt in range(ATTEMPTS):
            if chance.random() < 0.3 and attempt + 1 < ATTEMPTS:
                self.arm(random_fault(chance, 25))
            self.reports.clear()
            try:
                self._open()
                self._take_up_all()
                self.disarm()
                break
            except PowerCut:
                after = max(after, self._end(chance, chance.random() < 0.5))
            except DiskFailure:
                self._failed()
                after = max(after, self._end(chance, loses_power=False))
        else:
            raise AssertionError(f"it does not start: {self.reports}")
        for replica, reference in self.references.items():
            log = self.log(replica)
            assert log is not None
            self._look(self, replica, after)
            self._settle(reference, log, chance)
        self.half_deleted.clear()

    def _settle(self, reference: Reference, log: PartitionLog, chance: Random) -> None:
        """The reference goes on from what was found, which was looked at; a broker alone leads at once."""
        assert reference.log_end == log.log_end
        reference.log_start = log.log_start
        reference.high_watermark = log.high_watermark
        reference.stored_high_watermark = min(reference.stored_high_watermark, log.log_end)
        if chance.random() < 0.8:
            self._advance(reference, log, reference.log_end)

    def _open(self) -> None:
        self.directory = LogDirectory.open(
            PATH,
            self.memory,
            random_below=self._names_from.randrange,
            report=self.reports.append,
            now_ms=self.now_ms,
            open_files_max=self.open_files_max,
        )

    def _take_up_all(self) -> None:
        """Put aside what the cluster does not know, and open or make the rest."""
        for replica in self.directory.replicas:
            if replica not in self.references:
                self.directory.set_aside(*replica)
        for replica in self.references:
            self._take_up(replica)

    def _take_up(self, replica: Replica) -> None:
        reference = self.references[replica]
        config = self.configs[replica]
        if replica in self.directory.replicas:
            try:
                self.directory.open_log(*replica, reference.topic_id, config, now_ms=self.now_ms)
                return
            except InconsistentTopicId:
                self.directory.set_aside(*replica)
        assert not reference.flushed, f"{replica} is lost"
        reference.stored_start = reference.stored_high_watermark = 0
        try:
            self.directory.create_log(*replica, reference.topic_id, config, now_ms=self.now_ms)
        except ReplicaExists as error:
            raise AssertionError from error


def _config(chance: Random, *, compacts: bool) -> LogConfig:
    deletes = chance.random() < (0.3 if compacts else 0.8)
    return LogConfig(
        segment_bytes=chance.choice([500, 900, 3000]),
        segment_ms=chance.choice([1000, 10_000_000]),
        index_interval_bytes=chance.choice([0, 150, 4096]),
        segment_index_bytes=chance.choice([40, 10_000]),
        file_delete_delay_ms=chance.choice([0, 60_000]),
        deletes=deletes,
        retention_ms=chance.choice([-1, 2000, 50_000]),
        retention_bytes=chance.choice([-1, 1500]),
        compacts=compacts,
        min_cleanable_dirty_ratio=chance.choice([0.0, 0.3]),
        min_compaction_lag_ms=chance.choice([0, 0, 300]),
        delete_retention_ms=chance.choice([0, 500]),
    )


REFUSED = ["open", "read", "write", "truncate", "sync", "rename", "remove"]


def random_fault(chance: Random, changes_max: int) -> Fault:
    kind = chance.choice(["power", "kill", "refuse"])
    if kind != "refuse":
        return Fault(kind, chance.randrange(changes_max), keeps=chance.choice([0.0, 0.5, 1.0]))
    operation = chance.choice(REFUSED)
    numbers = [errno.EIO]
    if operation in ("write", "open"):
        numbers.append(errno.ENOSPC)
    if operation == "open":
        numbers.append(errno.EMFILE)
    return Fault(
        "refuse",
        chance.choice([0, 0, 1, chance.randrange(changes_max)]),
        operation,
        chance.choice(numbers),
        chance.choice([0.0, 0.0, 0.5, 1.0]),
    )
