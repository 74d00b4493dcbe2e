"""When this node writes a snapshot of the metadata log, and what it drops then: the same for all nodes.

Every node makes its own snapshots of what is committed, whether it leads the quorum or follows it.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from broker.metadata.image import MetadataImage
from broker.raft.log import Loaded, MetadataLog
from broker.raft.snapshots import SnapshotId, build_snapshot, list_snapshots, write_snapshot
from broker.raft.voters import VoterSet
from storage.errors import DiskFailure


class SnapshotRules(NamedTuple):
    """When to write a snapshot, and when to drop old ones with the log before them."""

    bytes_between: int = 20 << 20
    """``metadata.log.max.record.bytes.between.snapshots``"""
    interval_ms: int = 3_600_000
    """``metadata.log.max.snapshot.interval.ms``; 0 for never because of time."""
    retention_bytes: int = 100 << 20
    """``metadata.max.retention.bytes``: of log and snapshots together."""
    retention_ms: int = 7 * 24 * 3_600_000
    """``metadata.max.retention.ms``"""


class PendingSnapshot:
    """A snapshot to be written in a thread: everything it reads is immutable."""

    def __init__(
        self,
        log: MetadataLog,
        image: MetadataImage,
        *,
        kraft_version: int,
        voters: VoterSet,
        now_ms: int,
        unique: str,
    ) -> None:
        self.id = SnapshotId(image.offset + 1, image.epoch)
        self._log = log
        self._image = image
        self._kraft_version = kraft_version
        self._voters = voters
        self._now_ms = now_ms
        self._unique = unique

    def write(self) -> None:
        """Write the file; raises OSError, and leaves at most an unfinished part of it then."""
        from broker.metadata.snapshot import image_records  # seldom needed

        batches = build_snapshot(
            image_records(self._image),
            self.id,
            kraft_version=self._kraft_version,
            voters=self._voters,
            last_timestamp_ms=self._image.timestamp_ms,
            now_ms=self._now_ms,
        )
        write_snapshot(self._log.file_system, self._log.directory, self.id, batches, unique=self._unique)


class Snapshotting:
    """Knows when the next snapshot is due.  Called in the Trio thread."""

    def __init__(
        self,
        log: MetadataLog,
        loaded: Loaded,
        *,
        rules: SnapshotRules,
        now_ms: Callable[[], int],
        unique: Callable[[], str],
    ) -> None:
        """``unique`` gives a new text for the names of unfinished files."""
        self.bytes_since = loaded.bytes_since_snapshot
        """How much was committed since the last one: what the next one will spare the next start."""
        self.unique = unique
        self.snapshots = list_snapshots(log.file_system, log.directory)
        """All but the bootstrap one, oldest first; a list that does not change, but is replaced."""
        self._log = log
        self._rules = rules
        self._now_ms = now_ms
        self._end = -1 if loaded.snapshot is None else loaded.snapshot.end_offset
        self._due_ms = now_ms() + rules.interval_ms

    def due(self, image: MetadataImage, *, kraft_version: int, voters: VoterSet) -> PendingSnapshot | None:
        """A snapshot of ``image``, which is committed, if it is time for one.

        ``kraft_version`` and ``voters`` are those of its offset.
        """
        rules = self._rules
        is_due = self.bytes_since >= rules.bytes_between or (
            rules.interval_ms > 0 and self._now_ms() >= self._due_ms
        )
        if not is_due or image.offset + 1 <= self._end:
            return None
        # Counting begins anew at once: one that fails is tried again only when the next one would be due.
        self._begin_anew()
        return PendingSnapshot(
            self._log,
            image,
            kraft_version=kraft_version,
            voters=voters,
            now_ms=self._now_ms(),
            unique=self.unique(),
        )

    def finish(self, written: PendingSnapshot) -> None:
        """Back in the loop, once it is written: drop what is old.  Raises OSError or DiskFailure."""
        if written.id.end_offset < self._log.log.log_start:  # meanwhile a leader's has come
            self._mark(written.id)
            return
        self._log.note_snapshot(written.id)
        self.snapshots = [*self.snapshots, written.id]
        self._end = max(self._end, written.id.end_offset)
        self._drop_old()

    def note_received(self, snapshot: SnapshotId) -> None:
        """The leader's snapshot is here, and the log begins at its end: it spares one of our own.

        Those before go with the log that only they needed.  Raises DiskFailure.
        """
        self._end = snapshot.end_offset
        older = [known for known in self.snapshots if known < snapshot]
        self.snapshots = sorted({*self.snapshots, snapshot}.difference(older))
        self._begin_anew()
        try:
            for each in older:
                self._mark(each)
        except OSError as error:
            raise DiskFailure(self._log.directory, "rename in", error) from error

    def _mark(self, snapshot: SnapshotId) -> None:
        path = os.path.join(self._log.directory, snapshot.name)
        self._log.removals.mark_file(path, self._now_ms() + self._log.log.config.file_delete_delay_ms)

    def _begin_anew(self) -> None:
        self.bytes_since = 0
        self._due_ms = self._now_ms() + self._rules.interval_ms

    def _drop_old(self) -> None:
        """Drop the oldest snapshots, and the log that only they need, by age and by size."""
        now_ms = self._now_ms()
        file_system, directory = self._log.file_system, self._log.directory
        snapshots = self.snapshots
        sizes = [file_system.file_size(os.path.join(directory, snapshot.name)) for snapshot in snapshots]
        log = self._log.log
        total_bytes = log.size_bytes + sum(sizes)
        for snapshot, size, successor in zip(snapshots[:-1], sizes, snapshots[1:], strict=False):
            path = os.path.join(directory, snapshot.name)
            is_old = now_ms - file_system.modified_ms(path) > self._rules.retention_ms
            if not is_old and total_bytes <= self._rules.retention_bytes:
                return
            self._mark(snapshot)
            self.snapshots = self.snapshots[1:]
            total_bytes -= size
            before = log.size_bytes
            log.delete_records_before(successor.end_offset)
            log.remove_segments_below_log_start(now_ms=now_ms)
            total_bytes -= before - log.size_bytes
