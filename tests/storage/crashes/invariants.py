"""What must hold of a log after each start, and at any other time: one function for each promise."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from protocol.records.batch import RecordBatch, read_batches
from storage import paths
from storage.checkpoints import Replica
from storage.file_range import FileRange
from storage.memory_filesystem import Names
from storage.partition_log import PartitionLog
from storage.segment import Segment
from storage.sparse_index import SparseIndex
from tests.storage.crashes.reference import (
    Aborted,
    Batch,
    Entry,
    Reference,
    decide,
    is_dense,
    producers_of,
)
from tests.storage.crashes.subject import CLEAN_STOP, NOTHING, POWER_CUT, Subject

SAMPLES = 6
"""Offsets and times that are looked up, of each log."""


class StoredSegment(NamedTuple):
    """A segment's file, read without any help of storage."""

    segment: Segment
    batches: list[RecordBatch]


class View(NamedTuple):
    """One log, and what is known of it."""

    subject: Subject
    replica: Replica
    reference: Reference
    log: PartitionLog
    after: int
    segments: list[StoredSegment]
    stored: list[Batch]
    """All that the files hold, deleted records included."""

    @property
    def served(self) -> list[Batch]:
        return [batch for batch in self.stored if batch.last_offset >= self.log.log_start]


def look(subject: Subject, replica: Replica, after: int) -> None:
    """Check everything; the reference takes over what a power cut has left."""
    log = subject.log(replica)
    assert log is not None
    reference = subject.references[replica]
    segments = [StoredSegment(each, read_file(subject, each)) for each in log._segments]
    stored = [Batch.of(batch) for segment in segments for batch in segment.batches]
    view = View(subject, replica, reference, log, after, segments, stored)
    for invariant in BEFORE_ADOPTION:
        invariant(view)
    if after == POWER_CUT:
        reference.has_holes |= not is_dense(stored, log.log_start, log.log_end)
        if log.log_start > reference.deleted_below:
            reference.has_lost_its_head = reference.has_forgotten = True
    reference.adopt(stored, log.log_start, log.log_end, log.recovery_point)
    for invariant in INVARIANTS:
        invariant(view)


def read_file(subject: Subject, segment: Segment) -> list[RecordBatch]:
    content = subject.memory.read_file(segment.file.path)[: segment.size_bytes]
    batches = list(read_batches(content))
    assert sum(batch.size_bytes for batch in batches) == segment.size_bytes, "a segment is whole batches"
    for batch in batches:
        batch.check_crc()
    return batches


# What a crash may take


def nothing_that_was_flushed_is_lost(view: View) -> None:
    _are_found(view, view.reference.flushed)


def nothing_that_was_acknowledged_is_lost(view: View) -> None:
    """Unless the power was cut: what a process has written outlives it."""
    if view.after != POWER_CUT:
        _are_found(view, view.reference.log_end)
        if not view.reference.is_being_cut:
            assert view.log.log_end >= view.reference.log_end, "the log ends where it ended"


def _are_found(view: View, end_offset: int) -> None:
    """What readers were promised below ``end_offset`` is in the files, and is served."""
    reference = view.reference
    found = {batch.base_offset: batch for batch in view.served}
    for batch in reference.batches:
        if batch.base_offset >= end_offset or batch.last_offset < reference.deleted_below:
            continue
        there = found.get(batch.base_offset)
        if not reference.compacts:
            assert there == batch, f"{batch} is lost"
            continue
        assert there is None or there.is_left_of(batch), f"{batch} has become {there}"
        entries = there.entries if there is not None else ()
        for entry in batch.entries:
            assert entry in entries or entry.offset < reference.cleaned, f"{entry} is lost"


def offsets_are_used_once(view: View) -> None:
    """What was flushed, and was deleted since, still counts.

    If all of that was deleted, the name of an empty segment is all that says so; like Kafka we count on it
    that a file system makes it before it removes the others.
    """
    reference = view.reference
    counts_on_order = reference.deleted_below >= reference.flushed
    if not reference.is_being_cut and not (counts_on_order and view.subject.names is Names.ANY):
        assert view.log.log_end >= reference.flushed, "offsets would be given again"


def no_record_differs(view: View) -> None:
    """From what was appended at its offset."""
    for batch in view.stored:
        view.reference.original_of(batch)


def deleted_records_stay_deleted(view: View) -> None:
    """The log start never goes back behind the last checkpoint, nor at all while the process lives."""
    assert view.log.log_start >= view.reference.stored_start, (
        f"{view.log} began at {view.reference.stored_start}"
    )
    if view.after in (NOTHING, CLEAN_STOP):
        expected = {view.reference.log_start}
        if view.reference.has_holes:
            expected.add(view.log.first_base)  # where the hole ends that the log begins with
        assert view.log.log_start in expected


def only_who_deletes_moves_the_log_start(view: View) -> None:
    """A crash may take the first records if they were not flushed, and no others, compacted or not."""
    reference = view.reference
    start = max(reference.log_start, reference.deleted_below)
    may_lose_its_head = view.after == POWER_CUT and start >= reference.flushed
    if not (may_lose_its_head or reference.is_being_cut):
        for batch in reference.batches:
            assert not start <= batch.base_offset < view.log.log_start, f"{view.log} began at {start}"


def nothing_is_wrong_after_a_clean_stop(view: View) -> None:
    if view.after == CLEAN_STOP:
        assert view.subject.directory.was_clean, "it needs no recovery"
        damage = [line for line in view.subject.reports if not _is_expected(view.subject, line)]
        assert not damage, damage
        if not view.reference.has_holes:
            assert view.log.high_watermark == view.reference.high_watermark


def _is_expected(subject: Subject, line: str) -> bool:
    """Whether a start may say this after a clean stop."""
    if line.endswith(" has no segment; it is removed"):
        return any(line.startswith(f"{folder}/") for folder in subject.half_deleted)
    return paths.STRAY_MARK in line


def the_high_watermark_is_remembered(view: View) -> None:
    if view.after != NOTHING and not view.reference.is_being_cut:
        stored = min(view.reference.stored_high_watermark, view.log.log_end)
        assert view.log.high_watermark >= stored


BEFORE_ADOPTION = (
    nothing_that_was_flushed_is_lost,
    nothing_that_was_acknowledged_is_lost,
    offsets_are_used_once,
    no_record_differs,
    deleted_records_stay_deleted,
    only_who_deletes_moves_the_log_start,
    nothing_is_wrong_after_a_clean_stop,
    the_high_watermark_is_remembered,
)


# What the parts of a log say of each other


def ends_are_in_order(view: View) -> None:
    log = view.log
    assert log.log_start <= log.last_stable <= log.high_watermark <= log.log_end
    assert log.first_base <= log.log_start or view.reference.has_holes
    assert log.recovery_point <= log.log_end
    ends = [segment.base_offset for segment, _ in view.segments]
    ends += [batch.last_offset + 1 for batch in view.stored[-1:]]
    assert log.log_end >= max(ends)


def offsets_ascend(view: View) -> None:
    last = -1
    for segment, batches in view.segments:
        assert segment.base_offset > last
        last = segment.base_offset - 1
        for batch in batches:
            assert batch.base_offset > last
            assert batch.last_offset_delta >= 0
            last = batch.last_offset


def offsets_are_dense(view: View) -> None:
    """Where nothing is compacted, and no power cut took what was not flushed."""
    if not view.reference.compacts and not view.reference.has_holes:
        assert is_dense(view.stored, view.log.log_start, view.log.log_end)


def readers_get_what_is_stored(view: View) -> None:
    log = view.log
    fetched = [Batch.of(batch) for piece in fetch(log, 700, log.log_end) for batch in whole_batches(piece)]
    assert fetched == view.served


def offset_indexes_agree(view: View) -> None:
    for segment, batches in view.segments:
        segment.load()
        places = {batch.position: batch.last_offset for batch in batches}
        last = -1
        for relative, position in index_entries(segment.offset_index):
            assert relative > last, "offsets ascend"
            last = relative
            assert places.get(position) == segment.base_offset + relative, segment.offset_index.path
    log = view.log
    for batch in view.served[:: max(len(view.served) // SAMPLES, 1)]:
        offset = max(batch.last_offset, log.log_start)
        piece = log.read(offset, 1)
        assert piece is not None
        assert whole_batches(piece)[0].base_offset == batch.base_offset, f"offset {offset} is found"


def time_indexes_agree(view: View) -> None:
    for segment, batches in view.segments:
        segment.load()
        entries = list(index_entries(segment.time_index))
        last = -1
        for timestamp, relative in entries:
            offset = segment.base_offset + relative
            below = [batch.max_timestamp for batch in batches if batch.last_offset <= offset]
            assert timestamp > last, "times ascend"
            last = timestamp
            assert timestamp == max(below), segment.time_index.path
            assert any(b.last_offset == offset and b.max_timestamp == timestamp for b in batches)
        latest = max([batch.max_timestamp for batch in batches], default=-1)
        assert segment.max_timestamp == latest, f"latest time of {segment}"
        if segment is not view.log._segments[-1] and batches:
            assert entries[-1][0] == latest, "a sealed segment says how old it is"


def searches_by_time_agree(view: View) -> None:
    """Kafka looks into the first segment that is late enough, and into no other."""
    entries = [entry for batch in view.stored for entry in batch.entries]
    for entry in entries[:: max(len(entries) // SAMPLES, 1)]:
        for timestamp in (entry.timestamp, entry.timestamp + 1):
            found = view.log.find_by_timestamp(timestamp)
            expected = first_at_or_after(view, timestamp)
            assert (found and found[:2]) == (expected and expected[:2]), f"at {timestamp}"


def first_at_or_after(view: View, timestamp: int) -> Entry | None:
    for _, batches in view.segments:
        if max([batch.max_timestamp for batch in batches], default=-1) >= timestamp:
            for batch in batches:
                for entry in Batch.of(batch).entries if batch.max_timestamp >= timestamp else ():
                    if entry.timestamp >= timestamp and entry.offset >= view.log.log_start:
                        return entry
            return None
    return None


def transaction_indexes_agree(view: View) -> None:
    """Each segment's names just the transactions whose abort marker is in it."""
    real = decide(view.reference.batches).aborted
    by_marker = {aborted.last_offset: aborted for aborted in real}
    for segment, batches in view.segments:
        markers = {batch.base_offset for batch in batches if batch.is_control}
        last = -1
        for aborted in segment.transaction_index.entries():
            assert aborted.last_offset > last
            last = aborted.last_offset
            known = by_marker.get(last)
            if known is None:
                gone = max(view.reference.deleted_below, view.log.log_start)
                assert aborted.first_offset < gone, f"{aborted} was not aborted"
                continue
            assert last in markers, f"the marker of {aborted} is there"
            assert aborted.producer_id == known.producer_id
            first = min(aborted.first_offset, known.first_offset)
            if not view.reference.compacts and first >= view.reference.deleted_below:
                assert aborted.first_offset == known.first_offset


def readers_of_committed_records_get_just_these(view: View) -> None:
    """With the aborted transactions that each fetch is told, and the algorithm of Kafka's consumer."""
    last_stable = readable_end(view, view.log.last_stable)
    start = max(view.log.log_start, view.reference.deleted_below)
    seen: list[Entry] = []
    for piece in fetch(view.log, 900, last_stable):
        aborted = [Aborted(*each[:3]) for each in view.log.aborted_transactions(piece)]
        seen += [
            entry
            for entry in without_aborted(whole_batches(piece), aborted)
            if start <= entry.offset < last_stable
        ]
    committed = [entry for entry in decide(view.reference.batches).committed if entry.offset >= start]
    expected = [entry for entry in committed if entry.offset < last_stable]
    if not view.reference.compacts:
        assert seen == expected, f"of {expected} just {seen}"
        return
    assert set(seen) <= set(expected), "nothing undecided or aborted is seen"
    cleaned = view.reference.cleaned
    assert {e for e in expected if e.offset >= cleaned} <= set(seen), "what is dirty is all there"
    committed = [entry for entry in committed if entry.offset < max(last_stable, cleaned)]
    _check_keys(view, seen, committed, last_stable)


def readable_end(view: View, upper: int) -> int:
    """Where readers stop: an old high watermark may lie inside a batch, which is not given then."""
    return min([b.base_offset for b in view.stored if b.base_offset < upper <= b.last_offset], default=upper)


def _check_keys(view: View, seen: Sequence[Entry], committed: Sequence[Entry], last_stable: int) -> None:
    """Each key has its last value; if it was deleted, no older one."""
    visible = set(seen)
    last_seen = {entry.key: entry for entry in seen}
    for key, last in {entry.key: entry for entry in committed}.items():
        if last.offset >= last_stable:
            continue
        if last in visible:
            assert last_seen[key] == last
            continue
        assert last.value is None, f"{last} is lost"
        assert key not in last_seen, f"{last_seen[key]} is back"
        assert _may_be_forgotten(view, last), f"{last} was not kept for delete.retention.ms"


def _may_be_forgotten(view: View, tombstone: Entry) -> bool:
    """A first cleaning says until when a tombstone stays; one after that takes it away."""
    delay = view.subject.configs[view.replica].delete_retention_ms
    times = [c.now_ms for c in view.reference.cleanings if c.end_offset > tombstone.offset]
    return any(later - earlier >= delay for n, later in enumerate(times) for earlier in times[:n])


def producers_are_what_the_records_say(view: View) -> None:
    """What grew step by step, or was read from a snapshot, is what a walk through all batches gives."""
    log = view.log
    everything = producers_of(view.reference.before)
    left = producers_of(view.reference.batches)
    rest = producers_of([b for b in view.reference.batches if b.last_offset >= log.log_start])
    stored = producers_of(view.stored)
    states = {each.producer_id: each[1:] for each in log.active_producers()}
    served = producers_of(view.served)
    assert served.keys() <= states.keys() <= view.reference.producers_ever
    for producer_id in served if not view.reference.has_forgotten else ():
        state = states[producer_id]
        witnesses = [
            (
                known.producer_epoch,
                known.last_sequence,
                known.last_timestamp,
                known.coordinator_epoch,
                known.transaction_start,
            )
            for walk in (everything, left, rest, stored)
            if (known := walk.get(producer_id)) is not None
        ]
        for number, value in enumerate(state):
            assert value in {witness[number] for witness in witnesses}, f"{producer_id}: {state}, {witnesses}"


def leader_epochs_agree(view: View) -> None:
    epochs = view.log.leader_epochs
    assert list(epochs.entries) == sorted(set(epochs.entries))
    assert all(start <= view.log.log_end for _, start in epochs.entries)
    for batch in view.served:
        if batch.base_offset >= view.reference.deleted_below:
            assert epochs.epoch_at(batch.base_offset) == batch.leader_epoch


def files_are_in_order(view: View) -> None:
    """Nothing half-done is left after a start, and every segment has its indexes."""
    names = set(view.subject.memory.list_names(view.log.directory))
    if view.after != NOTHING:
        assert not [name for name in names if name.endswith((paths.SWAP, paths.CLEANED))]
    bases = {segment.base_offset for segment, _ in view.segments}
    for suffix in paths.SEGMENT_FILES:
        found = {base for name in names if (base := paths.parse_offset_name(name, suffix)) is not None}
        assert found <= bases or view.after == NOTHING  # a deletion may have stopped half-way
    for segment, _ in view.segments:
        log, *indexes, _ = [os.path.basename(file.path) for file in segment.files]
        assert log in names
        if segment.base_offset < max(bases):  # the active one's are in memory at first
            assert names.issuperset(indexes), f"{indexes} are not there"


def descriptors_are_few(view: View) -> None:
    subject = view.subject
    assert subject.directory.services.descriptors.open_count <= subject.open_files_max


INVARIANTS = (
    ends_are_in_order,
    offsets_ascend,
    offsets_are_dense,
    readers_get_what_is_stored,
    offset_indexes_agree,
    time_indexes_agree,
    searches_by_time_agree,
    transaction_indexes_agree,
    readers_of_committed_records_get_just_these,
    producers_are_what_the_records_say,
    leader_epochs_agree,
    files_are_in_order,
    descriptors_are_few,
)


# Reading


def fetch(log: PartitionLog, max_bytes: int, upper: int) -> Iterator[FileRange]:
    """What consumers get who read from the log's start, fetch by fetch."""
    offset = log.log_start
    while (piece := log.read(offset, max_bytes, upper=upper)) is not None:
        yield piece
        batches = whole_batches(piece)
        assert batches, "the first batch is whole whatever the limit"
        offset = batches[-1].next_offset


def whole_batches(piece: FileRange) -> list[RecordBatch]:
    return list(read_batches(piece.read()))


def without_aborted(batches: Sequence[RecordBatch], aborted: Sequence[Aborted]) -> list[Entry]:
    """As Kafka's consumer does it."""
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    skipped: set[int] = set()
    seen: list[Entry] = []
    for batch in batches:
        while waiting and waiting[0].first_offset <= batch.last_offset:
            skipped.add(waiting.pop(0).producer_id)
        read = Batch.of(batch)
        if batch.is_control:
            if read.entries and read.entries[0].key == b"\0\0\0\0":
                skipped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in skipped):
            seen += read.entries
    return seen


def index_entries(index: SparseIndex) -> Iterator[tuple[int, ...]]:
    index.load()
    for number in range(index.count):
        yield index._read(number)
