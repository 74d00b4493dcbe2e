"""The leader of the metadata quorum.  What it has flushed is committed, if it votes alone.

While the controller is handed over two nodes vote, and then the other one must have it as well.  The epoch
matters in both cases.  Each leader begins a new one, noted on disk before the first record of it, so that
another node which has read further than the disk kept finds out and forgets what was lost.
"""

from collections.abc import Callable, Sequence

import trio

from broker.metadata.feed import MetadataFeed
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import MetadataChanges, Replay
from broker.raft.batches import ControlRecord, leader_change, quorum_records
from broker.raft.log import Loaded, MetadataLog
from broker.raft.replicas import ReplicaKey, Replicas
from broker.raft.snapshotting import PendingSnapshot, Snapshotting
from broker.raft.voters import Voter, VoterEndpoint, VoterSet, find_voter, replace_voter, voters_record
from protocol.records.control import ControlType
from protocol.schema import Message
from storage.node_files import QuorumState
from storage.partition_log import FlushJob


class QuorumMismatch(Exception):
    """This node cannot lead the quorum that the log describes; the text is for the operator."""


class RaftService:
    """The leader of one epoch.  Everything runs in the Trio thread.

    ``latest`` is the image after everything appended.
    """

    def __init__(
        self,
        log: MetadataLog,
        loaded: Loaded,
        *,
        node_id: int,
        directory_id: bytes,
        now_ms: Callable[[], int],
        snapshotting: Snapshotting,
        feed: MetadataFeed,
    ) -> None:
        """``loaded`` holds the whole log, of which ``feed`` may have published less."""
        self.log = log
        self.feed = feed
        """What is committed, and who follows it."""
        self.latest: MetadataImage = loaded.replay.image
        self.epoch = -1
        self.voters: VoterSet = loaded.notes.voters or ()
        self.bootstrap: Sequence[Message] = (
            []
            if loaded.bootstrap is None
            else [record for batch in loaded.bootstrap.batches for record in batch]
        )
        """What the directory was formatted with, while the log does not say it."""
        if loaded.notes.kraft_version:  # who has only followed publishes none before it is committed
            feed.kraft_version = loaded.notes.kraft_version
        self.snapshotting = snapshotting
        self.now_ms = now_ms
        self._node_id = node_id
        self._directory_id = directory_id
        self._has_voters_record = loaded.has_voters_record
        self.endpoints: tuple[VoterEndpoint, ...] = ()
        """Where this node's controller listens."""
        self.replicas = Replicas(ReplicaKey(node_id, directory_id))
        """The other nodes that copy the log."""
        self.parked: dict[Callable[[], None], None] = {}
        """Called, once and in turn, when there is more to copy or to commit: the fetches that wait for it."""
        self.on_commit: Callable[[], None] = _nothing
        """Called when another voter's fetch has committed something."""
        self.has_company = trio.Event()
        """Set when another node has fetched, or votes."""
        self._heard: dict[int, float] = {}
        """Trio's time of the last sign of life of each other node."""
        self.voters_offset = -1
        """Where the latest record of the voters lies that this leader has appended."""
        self._epoch_start = -1
        self._unfinished = loaded.replay if loaded.replay.in_transaction else None

    @property
    def image(self) -> MetadataImage:
        """The cluster after everything committed and published."""
        return self.feed.image

    @property
    def kraft_version(self) -> int:
        return self.feed.kraft_version

    @property
    def node_id(self) -> int:
        return self._node_id

    @property
    def high_watermark(self) -> int:
        """Everything below is committed; -1 before the first record of this epoch is."""
        committed = self.log.log.high_watermark
        return committed if committed > self._epoch_start >= 0 else -1

    @property
    def are_voters_committed(self) -> bool:
        """Whether the latest voter set is."""
        return self.high_watermark > self.voters_offset

    @property
    def in_transaction(self) -> bool:
        """Whether the log ends inside a metadata transaction, which only an abort can follow."""
        return self._unfinished is not None

    def lead(self, endpoints: tuple[VoterEndpoint, ...], *, elected_in: int | None = None) -> None:
        """Begin a new epoch with this node as leader, whose controller listens at ``endpoints``.

        If others vote as well they have elected this node, in the epoch ``elected_in``, which is noted on
        disk.  Raises QuorumMismatch if this node neither votes nor was elected.
        """
        voters = self._check_voters(endpoints, was_elected=elected_in is not None)
        self.endpoints = endpoints
        state = self.log.read_quorum_state()
        noted = 0 if state is None else state.leader_epoch
        if elected_in is None:
            self.epoch = max(noted, self.log.last_epoch, 0) + 1
        else:
            assert elected_in >= noted, "an epoch that is over"
            assert elected_in > self.log.last_epoch, "an epoch that had another leader"
            self.epoch = elected_in
        # Kafka notes its vote first and its victory then.  With one voter both are one event.
        self.log.write_quorum_state(
            QuorumState(
                leader_id=self._node_id,
                leader_epoch=self.epoch,
                voters=(self._node_id,) if self.kraft_version == 0 else (),
                data_version=0 if self.kraft_version == 0 else 1,
            )
        )
        self._epoch_start = self.log.end_offset
        voter_ids = [voter.id for voter in voters] or [self._node_id]
        records = [leader_change(self._node_id, voter_ids)]
        if voters != self.voters or not self._has_voters_record:
            records += quorum_records(self.kraft_version, voters)
        self._append_notes(records)
        if len(records) > 1:
            self._note_voters(voters)
        else:
            self._tell_replicas()

    def upgrade(self, kraft_version: int) -> None:
        """Go over to ``kraft_version``, which is higher: from now on a record names the voters (KIP-853).

        Committed with the next flush.  Raises DiskFailure.
        """
        voters = (Voter(self._node_id, self._directory_id, self.endpoints),)
        self._append_notes(quorum_records(kraft_version, voters))
        self.feed.kraft_version = kraft_version
        self._note_voters(voters)

    def change_voters(self, voters: VoterSet) -> None:
        """Append a new voter set, which counts from now on; see ``voters_offset`` for when it is committed.

        It differs by one voter at most from the one before, which is committed.  Raises DiskFailure.
        """
        assert self.kraft_version >= 1, "only records can change voters"
        self._append_notes([(ControlType.KRAFT_VOTERS, voters_record(voters))])
        self._note_voters(voters)

    def _note_voters(self, voters: VoterSet) -> None:
        self.voters = voters
        self.voters_offset = self.log.end_offset - 1
        self._has_voters_record = True
        self._tell_replicas()

    def _tell_replicas(self) -> None:
        keys = [ReplicaKey(voter.id, voter.directory_id) for voter in self.voters]
        self.replicas.set_voters(keys or [self.replicas.leader])
        if not self.replicas.is_alone:
            self.has_company.set()

    def _append_notes(self, records: Sequence[ControlRecord]) -> None:
        now_ms = self.now_ms()
        self.log.append_control(records, epoch=self.epoch, now_ms=now_ms)
        replay = self._unfinished or Replay(self.latest)
        replay.skip_to(self.log.end_offset - 1, self.epoch, now_ms)
        if self._unfinished is None:
            replay.publish()
            self.latest = replay.image
        self._hurry_voters()

    def _hurry_voters(self) -> None:
        """Let other voters write what was appended while this leader does."""
        if self.parked and not self.replicas.is_alone:
            self._wake_parked()

    def _check_voters(self, endpoints: tuple[VoterEndpoint, ...], *, was_elected: bool) -> VoterSet:
        if self.kraft_version == 0:
            return ()
        myself = find_voter(self.voters, self._node_id, self._directory_id)
        if myself is None:
            if was_elected:
                return self.voters  # for as long as it takes to commit that it does not vote any more
            raise QuorumMismatch(
                f"node {self._node_id} is not among the voters of this metadata log: {_shown(self.voters)}"
            )
        return replace_voter(self.voters, Voter(myself.id, myself.directory_id, endpoints))

    def append(self, records: Sequence[VersionedRecord]) -> tuple[MetadataImage, MetadataChanges]:
        """Append ``records`` as one batch; return the image they make and what is new in it.

        Nothing is committed before a flush.  Raises ReplayError, KafkaError or DiskFailure, and then
        nothing has changed.
        """
        now_ms = self.now_ms()
        replay = self._unfinished or Replay(self.latest)
        messages = [record for record, _ in records]
        offset = self.log.end_offset + len(messages) - 1
        replay.apply(messages, offset=offset, epoch=self.epoch, timestamp_ms=now_ms)
        assert not replay.in_transaction, "a decision holds a transaction whole"
        changes = replay.publish()
        self.snapshotting.bytes_since += self.log.append(records, epoch=self.epoch, now_ms=now_ms)
        assert self.log.end_offset == offset + 1
        self._unfinished = None
        self.latest = replay.image
        self._hurry_voters()
        return replay.image, changes

    def begin_flush(self) -> FlushJob | None:
        """What to run in a thread before ``commit``; None if everything is on the device."""
        return self.log.log.begin_flush()

    def commit(self) -> None:
        """Take for committed what a majority of the voters has on its device, this leader included.

        But nothing before a record of this epoch is: that alone says that no later leader lacks it.
        """
        committed = self.replicas.committed(self.log.log.recovery_point)
        if committed > self._epoch_start and self.log.log.advance_high_watermark(committed) and self.parked:
            self._wake_parked()

    def note_fetch(self, replica: ReplicaKey, offset: int) -> None:
        """Another node has fetched from ``offset`` on: it has everything below."""
        self.note_sign(replica)
        if self.replicas.note_fetch(replica, offset, self.log.end_offset, self.now_ms()):
            self.commit()
            self.on_commit()

    def note_sign(self, replica: ReplicaKey) -> None:
        """Another node is there, and takes this one for the leader."""
        self.has_company.set()
        self._heard[replica.id] = trio.current_time()

    def heard_at(self, node_id: int) -> float | None:
        """Trio's time at which this node was heard of last; None if it was not in this epoch."""
        return self._heard.get(node_id)

    def end(self) -> None:
        """This node leads no longer: who waits for news is told so."""
        self._wake_parked()

    def _wake_parked(self) -> None:
        parked, self.parked = self.parked, {}
        for wake in parked:
            wake()

    def flush(self) -> None:
        """Flush and commit at once: at start and stop, where waiting is right."""
        self.log.log.flush()
        self.commit()

    # Snapshots

    def due_snapshot(self) -> PendingSnapshot | None:
        """A snapshot of the committed image, if it is time for one."""
        if self.image is not self.latest:
            return None
        return self.snapshotting.due(self.image, kraft_version=self.kraft_version, voters=self.voters)

    def finish_snapshot(self, written: PendingSnapshot) -> None:
        """Back in the loop, once it is written: drop what is old.  Raises OSError or DiskFailure."""
        self.snapshotting.finish(written)


def _nothing() -> None:
    """Nobody waits for it."""


def _shown(voters: VoterSet) -> str:
    return ", ".join(f"node {voter.id}" for voter in voters) or "none"
