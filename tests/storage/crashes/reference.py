"""What logs must hold, as plain lists of batches: there are no files here, no segments and no indexes."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from protocol.records.batch import RecordBatch
from protocol.records.control import ControlType, read_control_type, read_end_transaction_marker

SEQUENCES = 1 << 31


class Entry(NamedTuple):
    """One record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Batch(NamedTuple):
    """All that a reader learns of a batch."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    max_timestamp: int
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, batch: RecordBatch) -> "Batch":
        return _read(bytes(batch.data))

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCES

    def is_left_of(self, original: "Batch") -> bool:
        """Whether this may be what compaction has left of ``original``."""
        return self._header() == original._header() and set(self.entries) <= set(original.entries)

    def _header(self) -> "Batch":
        return self._replace(entries=(), max_timestamp=0)


@lru_cache(1000)
def _read(data: bytes) -> Batch:
    """Every look at a log meets the same batches again."""
    batch = RecordBatch(data)
    return Batch(
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        batch.is_control,
        batch.max_timestamp,
        tuple(Entry(r.offset, r.timestamp, r.key, r.value) for r in batch.records()),
    )


class Marker(NamedTuple):
    """What a control batch says."""

    is_commit: bool
    coordinator_epoch: int


def read_marker(batch: RecordBatch) -> Marker | None:
    """None if compaction has emptied the batch."""
    for record in batch.records():
        marker = read_end_transaction_marker(record)
        assert marker is not None
        assert read_control_type(record) is (ControlType.COMMIT if marker.is_commit else ControlType.ABORT)
        return Marker(*marker)
    return None


def marker_of(batch: Batch) -> Marker | None:
    """The same for a batch that was read."""
    for entry in batch.entries:
        assert entry.key is not None
        assert entry.value is not None
        return Marker(entry.key[3] == ControlType.COMMIT, int.from_bytes(entry.value[2:6]))
    return None


class KnownProducer(NamedTuple):
    """What a log must know of a producer."""

    producer_epoch: int
    last_sequence: int
    coordinator_epoch: int
    last_timestamp: int
    transaction_start: int


class Aborted(NamedTuple):
    """One aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int


class Decided(NamedTuple):
    """What the markers among some batches say of the others."""

    open: dict[int, int]
    """Producer -> first offset of its open transaction."""
    ended: list[tuple[int, int]]
    """First offset and marker's offset of every transaction that has one."""
    aborted: list[Aborted]
    """In the order of their markers."""
    committed: list[Entry]
    """Every record that readers of committed ones may see, by offset."""


def producers_of(batches: Iterable[Batch]) -> dict[int, KnownProducer]:
    """What batches say of their producers."""
    known: dict[int, KnownProducer] = {}
    for batch in batches:
        if batch.producer_id < 0:
            continue
        before = known.get(batch.producer_id, KnownProducer(-1, -1, -1, -1, -1))
        if batch.is_control:
            marker = marker_of(batch)
            if marker is None:
                continue
            sequence = before.last_sequence if before.producer_epoch == batch.producer_epoch else -1
            after = KnownProducer(
                batch.producer_epoch, sequence, marker.coordinator_epoch, batch.max_timestamp, -1
            )
        else:
            start = before.transaction_start
            if batch.is_transactional and start < 0:
                start = batch.base_offset
            after = KnownProducer(
                batch.producer_epoch,
                batch.last_sequence,
                before.coordinator_epoch,
                batch.max_timestamp,
                start,
            )
        known[batch.producer_id] = after
    return known


def decide(batches: Sequence[Batch]) -> Decided:
    """Follow every transaction."""
    opened: dict[int, int] = {}
    waiting: dict[int, list[Entry]] = {}
    ended: list[tuple[int, int]] = []
    aborted: list[Aborted] = []
    committed: list[Entry] = []
    for batch in batches:
        if batch.is_control:
            marker = marker_of(batch)
            start = opened.pop(batch.producer_id, None) if marker is not None else None
            if marker is None or start is None:
                continue
            ended.append((start, batch.base_offset))
            entries = waiting.pop(batch.producer_id)
            if marker.is_commit:
                committed += entries
            else:
                aborted.append(Aborted(batch.producer_id, start, batch.base_offset))
        elif batch.is_transactional:
            opened.setdefault(batch.producer_id, batch.base_offset)
            waiting.setdefault(batch.producer_id, []).extend(batch.entries)
        else:
            committed += batch.entries
    return Decided(opened, ended, aborted, sorted(committed))


class Cleaning(NamedTuple):
    """One run of the cleaner, begun."""

    end_offset: int
    now_ms: int


class Reference:
    """One partition: what was appended, and how much of it is promised to be safe."""

    def __init__(self, topic_id: bytes, *, compacts: bool, start: int = 0) -> None:
        self.topic_id = topic_id
        self.compacts = compacts
        self.batches: list[Batch] = []
        """All that is acknowledged and was not truncated since; readers get what is above ``log_start``."""
        self.written: dict[int, list[Batch]] = {}
        """By base offset, all that was ever written: a power cut can bring back what was truncated."""
        self.log_start = self.log_end = self.high_watermark = start
        self.flushed = start
        """Everything below must survive a power cut."""
        self.stored_start = 0
        """Of the last checkpoint: below there must never be a record again."""
        self.stored_high_watermark = 0
        self.decided_up_to = 0
        """The highest high watermark of all: nothing below is ever truncated, as the cleaner counts on it."""
        self.before: list[Batch] = []
        """What there was before the last look: of deleted records, producers may still be remembered."""
        self.gone: list[Batch] = []
        """Deleted, and really not there, though a power cut has brought back some that lie before them."""
        self.doubtful: set[int] = set()
        """Base offsets of markers that are deleted, and that a power cut has taken perhaps before that."""
        self.cleanings: list[Cleaning] = []
        self.deleted_below = start
        """The highest log start of all: what lies below was deleted once, and nobody counts on it."""
        self.cuts = 0
        self.is_being_cut = False
        """A truncation has begun and not ended: the log may end anywhere."""
        self.has_lost_its_head = False
        """A power cut has taken the first segments, but not what a later snapshot says of their producers."""
        self.has_forgotten = False
        """Records have gone of which snapshots of producers may still tell, or not."""
        self.has_holes = False
        """A power cut has taken records out of its middle that were not flushed, or a gap was replicated."""

    @property
    def cleaned(self) -> int:
        """Compaction may have been everywhere below."""
        return max([cleaning.end_offset for cleaning in self.cleanings], default=0)

    def writes(self, batches: Iterable[Batch]) -> None:
        """These may be on disk from now on."""
        for batch in batches:
            self.written.setdefault(batch.base_offset, []).append(batch)

    @property
    def producers_ever(self) -> set[int]:
        return {batch.producer_id for batches in self.written.values() for batch in batches}

    def acknowledge(self, batches: Sequence[Batch]) -> None:
        """These are in the log."""
        self.batches += batches
        if batches:
            self.log_end = batches[-1].last_offset + 1

    def advance_high_watermark(self, offset: int) -> None:
        self.high_watermark = max(self.high_watermark, min(offset, self.log_end))
        self.decided_up_to = max(self.decided_up_to, self.high_watermark)

    def truncate(self, offset: int) -> None:
        """Nothing from ``offset`` on is in the log any more, or promised."""
        self.cuts += 1
        self.is_being_cut = True
        self.batches = [batch for batch in self.batches if batch.base_offset < offset]
        self.gone = [batch for batch in self.gone if batch.base_offset < offset]
        self.doubtful = {base_offset for base_offset in self.doubtful if base_offset < offset}
        self.flushed = min(self.flushed, offset)
        self.log_end = offset
        self.log_start = min(self.log_start, offset)
        self.deleted_below = min(self.deleted_below, offset)
        self.stored_start = min(self.stored_start, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.stored_high_watermark = min(self.stored_high_watermark, offset)
        self._forget_cleanings_from(offset)

    def _forget_cleanings_from(self, log_end: int) -> None:
        """What is written from there on has met no cleaner."""
        self.cleanings = [Cleaning(min(end_offset, log_end), now_ms) for end_offset, now_ms in self.cleanings]

    def start_afresh(self, offset: int) -> None:
        """The log is empty, and goes on at ``offset``."""
        self.has_forgotten = True
        self.truncate(min(offset, self.log_end))
        self.batches.clear()
        self.gone.clear()
        self.start_at(offset)
        self.log_end = self.high_watermark = offset
        self.stored_start = 0
        self.stored_high_watermark = 0

    def start_at(self, offset: int) -> None:
        """Records below were deleted."""
        self.has_forgotten |= offset > 0
        self.log_start = offset
        self.deleted_below = max(self.deleted_below, offset)

    def last_stable(self) -> tuple[int, int]:
        """The lowest and the highest offset that the last stable one may be.

        They differ while transactions are decided, but not replicated, which a restart forgets, or have begun
        or ended with records that are deleted.
        """
        everything = sorted(self.batches + self.gone)
        known = decide([batch for batch in everything if batch.base_offset not in self.doubtful])
        ended = decide(everything).ended + known.ended
        unreplicated = [start for start, marker in ended if marker >= self.high_watermark]
        lost = [self.log_start] if self.has_lost_its_head else []
        lowest = self._bounded([*known.open.values(), *unreplicated, *lost])
        served = [batch for batch in self.batches if batch.last_offset >= self.log_start]
        rest = decide(sorted(served + [batch for batch in self.gone if batch.is_control]))
        return lowest, self._bounded([*rest.open.values()])

    def _bounded(self, undecided: list[int]) -> int:
        return max(min([*undecided, self.high_watermark]), self.log_start)

    def adopt(self, found: Sequence[Batch], log_start: int, log_end: int, recovery_point: int) -> None:
        """After a power cut: what was not flushed is what was found, and nothing else.

        If it has undone a truncation, what had been deleted before that is deleted again.  What the log takes
        for flushed, ``recovery_point``, must be.
        """
        self.before = self.batches
        by_base = {batch.base_offset: batch for batch in found}
        kept = [
            batch
            for batch in self.batches
            if self.deleted_below <= batch.last_offset < self.flushed
            or batch.last_offset < self.cleaned
            or batch.last_offset < min(self.deleted_below, log_start)
            or self._is_found(batch, by_base.get(batch.base_offset))
        ]
        known = {batch.base_offset for batch in kept}
        there = known | by_base.keys()
        self.gone = [
            batch
            for batch in self.gone + self.batches
            if batch.last_offset < min(self.deleted_below, log_end) and batch.base_offset not in there
        ]
        self.doubtful = {
            batch.base_offset
            for batch in kept + self.gone
            if batch.is_control
            and batch.base_offset not in by_base
            and (batch.base_offset >= self.flushed or batch.base_offset in self.doubtful)
        }
        for batch in found:
            if batch.base_offset not in known:
                kept.append(self.original_of(batch))
        kept.sort()
        self.batches = kept
        self.log_start = log_start
        self.log_end = log_end
        self.high_watermark = min(max(self.high_watermark, log_start), log_end)
        self.is_being_cut = False
        self._forget_cleanings_from(log_end)
        self.deleted_below = max(min(self.deleted_below, log_end), log_start)
        self.flushed = max(min(self.flushed, log_end), recovery_point)

    def _is_found(self, batch: Batch, found: Batch | None) -> bool:
        return found is not None and found.is_left_of(batch)

    def original_of(self, found: Batch) -> Batch:
        """What was written of which ``found`` is a part."""
        for original in reversed(self.written.get(found.base_offset, [])):
            if found == original or (self.compacts and found.is_left_of(original)):
                return original
        raise AssertionError(f"{found} was never written")


def is_dense(batches: Sequence[Batch], log_start: int, log_end: int) -> bool:
    """Whether every offset that is served is that of a record."""
    offset = log_start
    for batch in batches:
        if batch.last_offset >= log_start:
            if batch.base_offset > offset:
                return False
            offset = batch.last_offset + 1
    return offset == log_end
