"""``__cluster_metadata-0``: the records that make the cluster, in Kafka's files."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.metadata.image import empty_image
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import Replay, ReplayError
from broker.raft.batches import (
    BATCH_BYTES_MAX,
    ControlRecord,
    KRaftNotes,
    build_control_batch,
    build_metadata_batch,
    read_metadata_batch,
)
from broker.raft.snapshots import (
    BOOTSTRAP,
    Snapshot,
    SnapshotId,
    list_snapshots,
    parse_snapshot,
    read_snapshot,
    remove_leftovers,
)
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, KafkaError
from protocol.records.batch import RecordBatch, read_batches
from protocol.schema import Message
from storage.errors import CorruptFile, CorruptLog, DiskFailure, OffsetNotNext
from storage.filesystem import Buffer
from storage.log_services import LogServices
from storage.node_files import QuorumState, read_quorum_state, write_quorum_state
from storage.partition_log import PartitionLog

READ_BYTES = 1 << 20

OLD_BOOTSTRAP = "bootstrap.checkpoint"
"""Where Kafka up to 4.2 put what 0-0 holds since."""


class Loaded(NamedTuple):
    """What was found on disk."""

    replay: Replay
    notes: KRaftNotes
    """kraft.version and voters by the latest control records of log and snapshot."""
    bootstrap: Snapshot | None
    """How the directory was formatted; None once log or snapshot say all that it says."""
    snapshot: SnapshotId | None
    """The one that the image was built on."""
    bytes_since_snapshot: int
    """Of records behind it: what the next snapshot will spare the next start."""
    has_voters_record: bool
    """Whether log or snapshot name the voters; before the first start only the format does."""


class RecordsMissing(CorruptLog):
    """There is a hole in the log, from ``offset`` on."""

    def __init__(self, path: str, position: int, reason: str, offset: int) -> None:
        super().__init__(path, position, reason)
        self.offset = offset


class MetadataLog:
    """The log and the files beside it.  Called from one thread, but for what a FlushJob runs."""

    def __init__(
        self, log: PartitionLog, services: LogServices, *, batch_bytes_max: int = BATCH_BYTES_MAX
    ) -> None:
        """``log`` is what ``LogDirectory.open_metadata_log`` gives, and ``services`` its directory's."""
        self.log = log
        self.directory = log.directory
        self.file_system = services.file_system
        self.removals = services.removals
        self.newest_snapshot: SnapshotId | None = None
        """Of the finished ones; known once the log is loaded."""
        self._batch_bytes_max = batch_bytes_max

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.log.log_end

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, or of the snapshot that an empty log goes on from; 0 if none."""
        snapshot = self.newest_snapshot
        if snapshot is not None and snapshot.end_offset == self.end_offset:
            return max(self.log.leader_epochs.latest, snapshot.epoch)
        return max(self.log.leader_epochs.latest, 0)

    def note_snapshot(self, snapshot: SnapshotId) -> None:
        """A snapshot is there, whole."""
        if self.newest_snapshot is None or snapshot > self.newest_snapshot:
            self.newest_snapshot = snapshot

    def read_quorum_state(self) -> QuorumState | None:
        """What this node remembers of elections; None before the first."""
        return read_quorum_state(self.file_system, self.directory)

    def write_quorum_state(self, state: QuorumState) -> None:
        """On the device on return."""
        write_quorum_state(self.file_system, self.directory, state)

    def append_control(self, records: Sequence[ControlRecord], *, epoch: int, now_ms: int) -> int:
        """Append KRaft's own notes as one batch; return its size in bytes.  Raises DiskFailure."""
        batch = build_control_batch(records, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        return self._append(batch, epoch, now_ms)

    def append(self, records: Sequence[VersionedRecord], *, epoch: int, now_ms: int) -> int:
        """Append records as one batch; return its size in bytes.

        Raises POLICY_VIOLATION if it is longer than followers accept, or DiskFailure; the log is as before
        then.
        """
        batch = build_metadata_batch(records, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        return self._append(batch, epoch, now_ms)

    def _append(self, batch: bytearray, epoch: int, now_ms: int) -> int:
        if len(batch) > self._batch_bytes_max:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )
        self._flush_segment_before(RecordBatch(batch), now_ms)
        self.log.append_as_leader(RecordBatch(batch), epoch, now_ms=now_ms, from_client=False)
        return len(batch)

    def _flush_segment_before(self, batch: RecordBatch, now_ms: int) -> None:
        """Fsync a segment that is full before ``batch`` begins the next one.  Raises DiskFailure.

        A power cut could keep the next one, and not the end of this: what follows a hole cannot be read, and
        only the last segment may be cut where nobody else has the log.
        """
        if self.log.begins_segment(batch, now_ms=now_ms):
            self.log.flush()

    def load(self, cluster_id: str, *, now_ms: int, applies_log: bool = True) -> Loaded:
        """Read snapshot and log into an image.

        With ``applies_log`` false, records of the log are only looked through: nobody has said yet which of
        them are committed.  A snapshot always is.

        Raises CorruptFile, which records that contradict each other are, too, or DiskFailure.  A log that
        ends before the newest snapshot does, by offset or by epoch, is dropped: the snapshot came from
        elsewhere.
        """
        try:
            return self._load(cluster_id, now_ms, applies_log)
        except OSError as error:
            raise DiskFailure(error.filename or self.directory, "load", error) from error

    def _load(self, cluster_id: str, now_ms: int, applies_log: bool) -> Loaded:
        remove_leftovers(self.file_system, self.directory)
        replay = Replay(empty_image(cluster_id))
        notes = KRaftNotes()
        snapshots = list_snapshots(self.file_system, self.directory)
        newest = snapshots[-1] if snapshots else None
        self.newest_snapshot = newest
        start = 0
        if newest is not None:
            notes = self.apply_snapshot(replay, newest)
            start = newest.end_offset
            # A longer log may end before it, too: with records of older epochs that no majority ever had.
            if self.log.log_end < start or self.log.leader_epochs.latest < newest.epoch:
                self.log.truncate_fully_and_start_at(start, now_ms=now_ms)
        if self.log.log_start > start:
            raise CorruptLog(self.directory, 0, f"records before offset {self.log.log_start} are missing")
        for snapshot in snapshots:
            if snapshot.end_offset < self.log.log_start:  # one cannot go on from there
                self.file_system.remove(os.path.join(self.directory, snapshot.name))
        try:
            logged, size_bytes = self._replay_log(replay, start, applies=applies_log)
        except RecordsMissing as hole:
            if applies_log:
                raise
            # A power cut may take the end of a segment that was not fsynced, and not what came after it.
            # Nobody counts on either: the leader sends it again.
            self.log.truncate_to(hole.offset, now_ms=now_ms)
            self.log.flush()
            logged, size_bytes = self._replay_log(replay, start, applies=applies_log)
        has_voters_record = logged.voters is not None or (newest is not None and notes.voters is not None)
        notes = notes.completed_by(logged)
        if applies_log:
            replay.publish()
        bootstrap = None
        if replay.image.metadata_version == 0 or not has_voters_record:
            bootstrap = self._read_bootstrap()
            if bootstrap is not None:
                notes = bootstrap.notes.completed_by(notes)
        return Loaded(replay, notes, bootstrap, newest, size_bytes, has_voters_record)

    def apply_snapshot(self, replay: Replay, snapshot: SnapshotId) -> KRaftNotes:
        """Apply a snapshot to an empty image; return what it says of the quorum.  Raises CorruptFile."""
        content = read_snapshot(self.file_system, self.directory, snapshot)
        end, epoch, timestamp_ms = snapshot.end_offset - 1, snapshot.epoch, content.timestamp_ms
        for messages in content.batches:
            _apply(replay, messages, end, epoch, timestamp_ms, snapshot.name)
        replay.skip_to(end, epoch, timestamp_ms)
        return content.notes

    def _replay_log(self, replay: Replay, start: int, *, applies: bool) -> tuple[KRaftNotes, int]:
        notes = KRaftNotes()
        size_bytes = 0
        for batch in self.batches(start):
            size_bytes += batch.size_bytes
            if applies or batch.is_control:
                notes = self.apply_batch(replay if applies else None, notes, batch)
            else:
                self._check_crc(batch)
        return notes, size_bytes

    def batches(self, start: int, end: int | None = None) -> Iterator[RecordBatch]:
        """The batches from ``start`` up to ``end``, exclusive, or to the end of the log.

        Raises CorruptLog where one is missing, and DiskFailure.
        """
        offset = start
        while (found := self.log.read(offset, READ_BYTES, upper=end)) is not None:
            for batch in read_batches(found.read()):
                if batch.base_offset > offset:
                    raise RecordsMissing(
                        found.file.path,
                        found.position + batch.position,
                        f"offset {batch.base_offset} follows {offset - 1}: records between are missing",
                        offset,
                    )
                offset = batch.next_offset
                if batch.last_offset >= start:
                    yield batch
        limit = self.end_offset if end is None else min(end, self.end_offset)
        if offset < limit:  # an empty segment may be what says where the log ends
            raise RecordsMissing(
                self.directory, 0, f"the records from offset {offset} to {limit - 1} are missing", offset
            )

    def apply_batch(self, replay: Replay | None, notes: KRaftNotes, batch: RecordBatch) -> KRaftNotes:
        """Apply one batch of the log; return ``notes`` with what it says of the quorum.

        Without ``replay`` only that is looked at.  Raises CorruptFile.
        """
        self._check_crc(batch)
        epoch, timestamp_ms = batch.partition_leader_epoch, batch.max_timestamp
        try:
            if batch.is_control:
                notes = notes.updated(batch)
                if replay is not None:
                    replay.skip_to(batch.last_offset, epoch, timestamp_ms)
                return notes
            if replay is None:
                return notes
            messages = read_metadata_batch(batch)
        except DecodeError as error:
            raise CorruptFile(self._where(batch), str(error)) from error
        _apply(replay, messages, batch.last_offset, epoch, timestamp_ms, self._where(batch))
        return notes

    def read_notes(self, end: int) -> KRaftNotes:
        """What snapshot and log say of the quorum below ``end``.  Raises CorruptFile or DiskFailure."""
        notes = KRaftNotes()
        start = self.log.log_start
        if self.newest_snapshot is not None:
            notes = read_snapshot(self.file_system, self.directory, self.newest_snapshot).notes
            start = self.newest_snapshot.end_offset
        for batch in self.batches(start, end):
            if batch.is_control:
                notes = self.apply_batch(None, notes, batch)
        return notes

    def _check_crc(self, batch: RecordBatch) -> None:
        try:
            batch.check_crc()
        except DecodeError as error:
            raise CorruptFile(self._where(batch), str(error)) from error

    def _where(self, batch: RecordBatch) -> str:
        return f"{self.directory}, the batch at offset {batch.base_offset}"

    # What comes from a leader elsewhere

    def append_as_follower(self, records: Buffer, *, epoch_max: int, now_ms: int) -> Iterator[RecordBatch]:
        """Append batches as they are, up to the first of an epoch above ``epoch_max``; yield each then.

        Raises OffsetNotNext where one does not follow the log, CorruptRecords or DiskFailure; those before it
        are appended then.
        """
        for batch in read_batches(records):
            if batch.partition_leader_epoch > epoch_max:
                break
            if batch.base_offset != self.end_offset:
                raise OffsetNotNext(batch.base_offset, self.end_offset)
            self._flush_segment_before(batch, now_ms)
            self.log.append_as_follower(batch.data, now_ms=now_ms)
            yield batch

    def find_divergence(self, epoch: int, end_offset: int) -> int:
        """Where to cut this log, given that in the leader's ``epoch``, the last both may have, ends there."""
        if epoch == 0:
            return min(end_offset, self.end_offset)
        known, end = self.log.end_offset_for_epoch(epoch)
        if known < 0:
            known, end = self.last_epoch, self.end_offset
        return min(end, end_offset) if known == epoch else end

    def truncate(self, offset: int, *, now_ms: int) -> None:
        """Forget everything from ``offset`` on.  Raises DiskFailure."""
        self.log.truncate_to(offset, now_ms=now_ms)
        self.log.flush()

    def restart_at(self, snapshot: SnapshotId, *, now_ms: int) -> None:
        """Go on, empty, where ``snapshot`` ends, which is there and whole.  Raises DiskFailure."""
        self.log.truncate_fully_and_start_at(snapshot.end_offset, now_ms=now_ms)
        self.log.flush()
        self.note_snapshot(snapshot)

    def _read_bootstrap(self) -> Snapshot | None:
        """Kafka up to 4.2 put the feature levels into a file of their own, beside the voters' 0-0."""
        parent = os.path.dirname(self.directory)
        found: Snapshot | None = None
        for path in (
            os.path.join(self.directory, BOOTSTRAP.name),
            os.path.join(parent, OLD_BOOTSTRAP),
        ):
            try:
                data = self.file_system.read_file(path)
            except FileNotFoundError:
                continue
            snapshot = parse_snapshot(path, data)
            found = snapshot if found is None else found._replace(batches=found.batches or snapshot.batches)
        return found


def _apply(
    replay: Replay, messages: Sequence[Message], offset: int, epoch: int, timestamp_ms: int, where: str
) -> None:
    try:
        replay.apply(messages, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
    except ReplayError as error:
        raise CorruptFile(where, str(error)) from error
