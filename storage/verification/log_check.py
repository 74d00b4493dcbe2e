"""Checks one log: its segments from the oldest on, and what must agree with all of them."""

import os
from collections.abc import Callable

from protocol.records.batch import RecordBatch
from storage import paths
from storage.errors import CorruptFile, ProducerError
from storage.filesystem import FileSystem
from storage.producer_replay import read_marker
from storage.producer_snapshot import decode_producer_snapshot
from storage.producer_state import ProducerEntry, ProducerState
from storage.verification.batch_reader import Unreadable, read_leniently
from storage.verification.facts import Kind, ReplicaFacts
from storage.verification.findings import FINDINGS_PER_FILE_MAX, Findings, Severity
from storage.verification.indexes import MarkerSeen
from storage.verification.producers import differences
from storage.verification.read_only import open_to_read, reason_of
from storage.verification.segment_check import SegmentCheck

LookInto = Callable[[RecordBatch], None]
"""Looks into the records of a batch whose topic is known.  Raises DecodeError."""

Moved = Callable[[int], None]
"""Told how many bytes were looked at."""

_FOREVER_MS = 1 << 62


class LogCheck:
    """What is known of a log from the segments that have gone by."""

    def __init__(
        self,
        file_system: FileSystem,
        facts: ReplicaFacts,
        findings: Findings,
        names: dict[str, str],
        bases: list[int],
        epochs: list[tuple[int, int]] | None,
        snapshots: list[int],
        look_into: LookInto | None,
        moved: Moved,
    ) -> None:
        """``names`` says which file on disk has, or is to get, a name; ``epochs`` is None if unreadable."""
        self.next_offset = bases[0] if bases else 0
        self.records = 0
        self.bytes = 0
        self.is_cut = False
        """A start will cut the log, or should not be needed to: what its end says is told already."""
        self.file_system = file_system
        self.facts = facts
        self.findings = findings
        self._names = names
        self.bases = bases
        self._first_offset = self.next_offset
        self._epochs = epochs
        self._epoch_number = -1
        self._epoch_told: int | None = None
        self._last_epoch = -1
        self._snapshots = snapshots
        self._due = 0
        self.look_into = look_into
        self._moved = moved
        self._producers = ProducerState(expiration_ms=_FOREVER_MS)
        self._with_records: set[int] = set()
        """Producers whose open transaction has records in the log."""
        self.is_blind = False
        """Batches could not be read: what producers did is not certain any more."""
        self.is_compacted = facts.may_have_gaps or facts.cleaned_to is not None
        self._suspicions: list[tuple[str, int, str]] = []
        self._suspicion_count = 0
        self._first_untrusted = self._find_untrusted()

    def _find_untrusted(self) -> int:
        """The number of the first segment that a start will read from its beginning, and mend."""
        if self.facts.was_clean and self.facts.kind is not Kind.METADATA:
            return len(self.bases)
        first = 0
        while first + 1 < len(self.bases) and self.bases[first + 1] < self.facts.recovery_point:
            first += 1
        return first

    def severity(self, is_mended: bool) -> Severity:
        return Severity.NOTE if is_mended else Severity.DAMAGE

    def run(self) -> None:
        """Look at everything."""
        self._take_first_snapshot()
        for number in range(len(self.bases)):
            self._check_segment(number)
        if not self.is_compacted:
            for path, position, text in self._suspicions:
                self.findings.damage(path, text, position)
            more = self._suspicion_count - len(self._suspicions)
            if more:
                self.findings.damage(self.facts.path, f"the same kind of thing {more} times more")
        self.compare_snapshots(None)

    def suspect(self, path: str, position: int, text: str) -> None:
        """Something that is damage unless the log turns out to be compacted."""
        self._suspicion_count += 1
        if len(self._suspicions) < FINDINGS_PER_FILE_MAX:
            self._suspicions.append((path, position, text))

    def path(self, base: int, suffix: str) -> str | None:
        name = self._names.get(paths.offset_name(base) + suffix)
        return None if name is None else os.path.join(self.facts.path, name)

    # One segment

    def _check_segment(self, number: int) -> None:
        base = self.bases[number]
        path = self.path(base, paths.LOG)
        assert path is not None
        next_base = self.bases[number + 1] if number + 1 < len(self.bases) else None
        is_mended = number >= self._first_untrusted
        try:
            file = open_to_read(self.file_system, path)
            size = file.size()
        except (CorruptFile, OSError) as error:
            self.findings.damage(path, reason_of(error))
            self.pass_over()
            return
        if base < self.next_offset and self.bases[0] != base:
            self.findings.damage(
                path, f"it begins before offset {self.next_offset}, where the one before ends"
            )
            self.next_offset = base
        segment = SegmentCheck(self, number, file, size, is_mended)
        position = 0
        try:
            for piece in read_leniently(file, size, base):
                if isinstance(piece, Unreadable):
                    segment.see_unreadable(piece)
                    position = piece.end
                else:
                    segment.see(piece, next_base)
                    position = piece.position + piece.batch.size_bytes
                self._moved(position - segment.looked_at)
                segment.looked_at = position
            segment.end()
        except OSError as error:
            self.findings.damage(path, f"cannot be read: {error.strerror or error}", position)
            self.pass_over()
        self.bytes += size

    def pass_over(self) -> None:
        self.is_blind = True
        self.is_compacted = True  # whatever is missing now is told already

    def see_gap(self, path: str, position: int, offset: int) -> None:
        if not self.is_blind:
            self.suspect(
                path,
                position,
                f"offsets {self.next_offset} to {offset - 1} are missing, and nothing says that the topic "
                "was ever compacted",
            )

    # Leader epochs

    def check_epoch(self, path: str, position: int, batch: RecordBatch, is_mended: bool) -> None:
        epoch = batch.partition_leader_epoch
        if epoch < self._last_epoch:
            self.findings.damage(
                path, f"leader epoch {epoch} behind a batch of epoch {self._last_epoch}", position
            )
            return
        self._last_epoch = epoch
        epochs = self._epochs
        if epochs is None:
            return
        if batch.next_offset <= self._log_start:
            return  # nobody asks for the epoch of what was deleted
        offset = max(batch.base_offset, self._log_start)
        number = self._epoch_number
        while number + 1 < len(epochs) and epochs[number + 1][1] <= offset:
            number += 1
        self._epoch_number = number
        expected = epochs[number][0] if number >= 0 else -1
        is_within = number + 1 == len(epochs) or batch.last_offset < epochs[number + 1][1]
        if (epoch == expected and is_within) or epoch == self._epoch_told:
            return
        if is_mended and epoch > max([known for known, _ in epochs], default=-1):
            return  # the list is written with the first flush after an epoch began
        self._epoch_told = epoch
        known = f"is {expected}" if number >= 0 else "is not known"
        if not is_within:
            known = f"ends at {epochs[number + 1][1]}, within the batch"
        self.findings.add(
            self.severity(is_mended),
            path,
            f"the batch at offset {batch.base_offset} has leader epoch {epoch}, which by "
            f"{paths.LEADER_EPOCHS} {known}" + ("; a start will correct that" if is_mended else ""),
            position,
        )

    @property
    def _log_start(self) -> int:
        return max(self.facts.log_start or 0, self._first_offset)

    # Producers

    def check_producer(self, path: str, position: int, batch: RecordBatch) -> None:
        """Take note of a data batch that has a producer."""
        producers = self._producers
        entry = producers.entries.get(batch.producer_id)
        if entry is not None and not self.is_blind:
            try:
                if not batch.has_sequence:
                    producers.check_internal(batch)
                elif entry.batches and producers.check(batch) is not None:
                    self.suspect(path, position, f"producer {batch.producer_id} wrote this batch before")
            except ProducerError as error:
                self.suspect(path, position, str(error))
        producers.apply(batch)
        if batch.is_transactional and batch.record_count:
            self._with_records.add(batch.producer_id)

    def check_marker(self, batch: RecordBatch) -> MarkerSeen | None:
        """Take note of a control batch that has a producer; None if it ends no transaction."""
        marker = read_marker(batch)
        if marker is None:
            return None
        producers = self._producers
        ended = producers.apply_marker(batch, marker)
        producers.advance_high_watermark(1 << 63)  # so that what is ended is forgotten
        last_stable = producers.last_stable_after(ended) if ended is not None else batch.next_offset
        had_records = batch.producer_id in self._with_records
        self._with_records.discard(batch.producer_id)
        return MarkerSeen(
            batch.producer_id, batch.base_offset, not marker.is_commit, ended, had_records, last_stable
        )

    def is_gone(self, offset: int) -> bool:
        """Whether the log had the offset once."""
        return 0 <= offset < self._first_offset

    # Producer snapshots

    def _take_first_snapshot(self) -> None:
        """Where the log's beginning is gone, what its producers did there stands in a snapshot."""
        if self._first_offset in self._snapshots and self._first_offset > 0:
            entries = self._decode_snapshot(self._first_offset)
            if entries is not None:
                self._producers.load(entries, self._first_offset, 0)
                self._with_records |= {entry.producer_id for entry in entries}
        while self._due < len(self._snapshots) and self._snapshots[self._due] <= self._first_offset:
            if self._snapshots[self._due] != self._first_offset:
                path = self.path(self._snapshots[self._due], paths.PRODUCER_SNAPSHOT)
                assert path is not None
                self.findings.note(path, "has no segment; a start will remove it")
            self._due += 1

    def snapshot_is_due(self, offset: int) -> bool:
        return self._due < len(self._snapshots) and self._snapshots[self._due] <= offset

    def compare_snapshots(self, before: int | None) -> None:
        """Those at or below the offset of the next batch; None means all that are left."""
        while self._due < len(self._snapshots):
            offset = self._snapshots[self._due]
            if before is not None and offset > before:
                return
            self._due += 1
            entries = self._decode_snapshot(offset)
            if entries is None:
                continue
            path = self.path(offset, paths.PRODUCER_SNAPSHOT)
            assert path is not None
            is_mended = self._is_rewritten(offset)
            if before is None and offset > self.next_offset and not self.is_cut:
                self.findings.add(
                    self.severity(is_mended),
                    path,
                    f"it is of an offset behind the log's end, {self.next_offset}",
                )
                continue
            if offset < self.next_offset and before is not None:
                self.findings.note(path, "its offset lies within a batch")
                continue
            for difference in differences(
                entries,
                self._producers,
                offset,
                first_offset=self._first_offset,
                is_lenient=self.is_blind or self.is_compacted,
            ):
                self.findings.add(self.severity(is_mended), path, difference)

    def _decode_snapshot(self, offset: int) -> list[ProducerEntry] | None:
        path = self.path(offset, paths.PRODUCER_SNAPSHOT)
        assert path is not None
        try:
            return decode_producer_snapshot(path, self.file_system.read_file(path))
        except (CorruptFile, OSError) as error:
            # One that a recovery begins with is only read: if that fails, an older one or the log is.
            is_mended = self._is_rewritten(offset + 1)
            self.findings.add(
                self.severity(is_mended),
                path,
                reason_of(error) + ("; a start will replace it" if is_mended else ""),
            )
            return None

    def _is_rewritten(self, offset: int) -> bool:
        """Whether a start throws a snapshot away, and makes a new one from the log."""
        return self._first_untrusted < len(self.bases) and offset > self.bases[self._first_untrusted]
