"""The metadata log of a node that does not lead it: what the leader sends, and what of it is committed.

Appending and applying are two things here.  The leader sends records before a majority has them; they count,
and the rest of the broker hears of them, when its high watermark says so.
"""

from collections.abc import Callable

from broker.metadata.differences import differences
from broker.metadata.feed import MetadataFeed
from broker.metadata.image import empty_image
from broker.metadata.replay import Replay
from broker.raft.batches import KRaftNotes
from broker.raft.log import Loaded, MetadataLog
from broker.raft.snapshots import Snapshot, SnapshotId
from broker.raft.snapshotting import PendingSnapshot, Snapshotting
from broker.raft.voters import VoterSet
from storage.errors import CorruptFile
from storage.filesystem import Buffer

UNKNOWN = -1
"""A high watermark that no leader has told yet."""

APPLIED_AT_ONCE_BYTES = 1 << 18
"""How much is applied before others get their turn."""


class FollowedLog:
    """Called in the Trio thread; knows nothing of connections, leaders and elections."""

    def __init__(
        self,
        log: MetadataLog,
        replay: Replay,
        *,
        next_offset: int,
        feed: MetadataFeed,
        snapshotting: Snapshotting,
        applied: KRaftNotes,
        appended: KRaftNotes,
        bootstrap: Snapshot | None = None,
        high_watermark: int = UNKNOWN,
        now_ms: Callable[[], int],
    ) -> None:
        """``replay`` has applied everything below ``next_offset``, of which ``feed`` may have published less.

        ``applied`` is what records say of the quorum up to there, and ``appended`` what those of the whole
        log say: voters count as soon as they are in the log (KIP-853).  ``bootstrap`` is how the directory
        was formatted, which counts where records say nothing.
        """
        self.log = log
        self.high_watermark = high_watermark
        """Everything below is committed; UNKNOWN before a leader has said so."""
        self._feed = feed
        self._replay = replay
        self._next_offset = next_offset
        """The first offset that is not applied."""
        self._snapshotting = snapshotting
        self._applied = applied
        self._appended = appended
        self._bootstrap = bootstrap
        self._now_ms = now_ms
        self._announced = UNKNOWN
        """The leader's high watermark, which may lie above this log's end."""
        self._has_published = feed.image.offset >= 0
        self._has_news = not self._has_published
        """Whether something was applied that is not published."""

    @property
    def voters(self) -> VoterSet:
        return self._appended.voters or ()

    @property
    def kraft_version(self) -> int:
        return self._appended.kraft_version or 0

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def has_caught_up(self) -> bool:
        """Whether an image was published that holds all that was committed at some moment of this run."""
        return self._has_published

    # What the leader sends

    def append(self, records: Buffer, *, epoch_max: int) -> None:
        """Append batches as they are, up to the first of an epoch above ``epoch_max``.

        Raises OffsetNotNext, CorruptRecords, CorruptFile or DiskFailure; what comes before is appended then.
        """
        for batch in self.log.append_as_follower(records, epoch_max=epoch_max, now_ms=self._now_ms()):
            if batch.is_control:
                self._appended = self.log.apply_batch(None, self._appended, batch)

    def truncate(self, epoch: int, end_offset: int) -> int:
        """Forget what the leader does not have, whose ``epoch`` ends at ``end_offset``; return the new end.

        Raises CorruptFile if that is committed, and DiskFailure.
        """
        offset = self.log.find_divergence(epoch, end_offset)
        if offset < max(self.high_watermark, self._next_offset):
            raise CorruptFile(
                self.log.directory,
                f"the leader's log ends at offset {end_offset} of epoch {epoch}, but everything below "
                f"{self.high_watermark} was committed",
            )
        self.log.truncate(offset, now_ms=self._now_ms())
        notes = self._with_format(self._applied)
        for batch in self.log.batches(self._next_offset):
            if batch.is_control:
                notes = self.log.apply_batch(None, notes, batch)
        self._appended = notes
        return offset

    def restart_at(self, snapshot: SnapshotId) -> None:
        """Forget everything, and go on from ``snapshot``, which has been written beside the log.

        Raises CorruptFile or DiskFailure.
        """
        replay = Replay(empty_image(self._feed.image.cluster_id))
        notes = self.log.apply_snapshot(replay, snapshot)
        self.log.restart_at(snapshot, now_ms=self._now_ms())
        self._snapshotting.note_received(snapshot)
        self._replay = replay
        self._has_news = True
        self._next_offset = snapshot.end_offset
        self._applied = self._appended = notes
        self.high_watermark = max(self.high_watermark, snapshot.end_offset)

    def advance(self, high_watermark: int) -> None:
        """The leader says that everything below ``high_watermark`` is committed; UNKNOWN says nothing."""
        self._announced = max(self._announced, high_watermark)
        self.high_watermark = max(self.high_watermark, min(self._announced, self.end_offset))
        self.log.log.advance_high_watermark(self.high_watermark)

    # What is committed

    def apply_some(self) -> bool:
        """Apply committed records, and publish when all are applied; return whether there are more.

        Before the first image is published, it must hold what the leader knew to be committed.  Raises
        CorruptFile where a record cannot be applied: going on without it would be another cluster.
        """
        size_bytes = 0
        for batch in self.log.batches(self._next_offset, self.high_watermark):
            self._applied = self.log.apply_batch(self._replay, self._applied, batch)
            self._next_offset = batch.next_offset
            self._has_news = True
            size_bytes += batch.size_bytes
            if size_bytes >= APPLIED_AT_ONCE_BYTES:
                break
        self._snapshotting.bytes_since += size_bytes
        if self._next_offset < self.high_watermark:
            return True
        is_complete = self._has_published or UNKNOWN != self._announced <= self.high_watermark
        if self._has_news and is_complete:
            self._publish()
        return False

    def _publish(self) -> None:
        self._has_news = False
        before = self._feed.image
        continues = self._replay.image is before
        changes = self._replay.publish()
        image = self._replay.image
        if image.offset == before.offset:
            return
        self._has_published = True
        self._feed.kraft_version = self._applied.kraft_version or 0
        self._feed.publish(image, changes if continues else differences(before, image))

    def due_snapshot(self) -> PendingSnapshot | None:
        """A snapshot of the published image, if it is time for one."""
        image = self._feed.image
        if self._replay.in_transaction or image.offset + 1 != self._next_offset:
            return None
        return self._snapshotting.due(
            image, kraft_version=self._applied.kraft_version or 0, voters=self._applied.voters or ()
        )

    # Taking the lead

    def complete(self) -> Loaded:
        """The whole log as a leader needs it, committed or not: it commits what it finds.

        Raises CorruptFile or DiskFailure.
        """
        replay, notes = self._replay, self._applied
        for batch in self.log.batches(self._next_offset):
            notes = self.log.apply_batch(replay, notes, batch)
        replay.publish()
        return Loaded(
            replay=replay,
            notes=self._with_format(notes),
            bootstrap=self._bootstrap,
            snapshot=self.log.newest_snapshot,
            bytes_since_snapshot=self._snapshotting.bytes_since,
            has_voters_record=notes.voters is not None,
        )

    def _with_format(self, notes: KRaftNotes) -> KRaftNotes:
        """What records say of the quorum, and where they say nothing, how the directory was formatted."""
        return notes if self._bootstrap is None else self._bootstrap.notes.completed_by(notes)
