"""One partition, as the broker that leads it sees it: what is appended, what may be read, who waits."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from broker.config.topic_settings import TopicSettings
from broker.metadata.image import PartitionImage
from broker.partitions.append import policy_for, prepare, prepare_quickly
from broker.partitions.replica import NO_EPOCH, ReadSurroundings, Replica, Watcher
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.errors import RecordsTooLarge
from protocol.records.validation import RefusedBatch
from storage.config import LogConfig
from storage.errors import DiskFailure
from storage.partition_log import Appended, PartitionLog
from storage.transaction_verification import VOUCHED, Verification

if TYPE_CHECKING:
    from broker.partitions.replication import IsrProposal, Replication

__all__ = ["NO_EPOCH", "Leader", "PendingAppend", "Watcher", "WhenAppended", "WhenCommitted"]

WhenAppended: TypeAlias = Callable[[Appended | Exception], None]
"""Told once, when a batch has had its turn: where it lies, or why not."""

WhenCommitted: TypeAlias = Callable[[KafkaError | None], None]
"""Told once: None when the records are committed, or why this leadership ended before that."""


class Surroundings(ReadSurroundings, Protocol):
    """What a leader needs from whoever holds it: work that would keep the loop waiting, and the cluster."""

    def check_aside(self, pending: "PendingAppend") -> None:
        """Call ``pending.check`` in a thread, and then ``pending.leader.settle``."""

    def flush_soon(self, leader: "Leader") -> None:
        """Flush the log in a thread and tell ``leader.flushed``, for as long as that returns True."""

    def storage_failed(self, leader: "Leader", failure: DiskFailure) -> None:
        """The file system refused a write; whoever asked for it is told as well."""

    def now_ms(self) -> int:
        """Wall time."""

    def new_replication(self) -> "Replication":
        """What the leader of several replicas keeps of the others; nothing is known yet."""

    def propose_isr(self, leader: "Leader", proposal: "IsrProposal") -> None:
        """Ask the controller, and then call ``leader.isr_accepted`` or ``leader.isr_refused``."""


class PendingAppend:
    """A batch that waits for its turn."""

    __slots__ = ("acks_all", "batch", "done", "error", "is_checked", "leader", "now_ms", "verification")

    def __init__(
        self,
        leader: "Leader",
        batch: RecordBatch,
        now_ms: int,
        done: WhenAppended,
        verification: Verification | None,
        acks_all: bool,
    ) -> None:
        self.leader = leader
        self.batch = batch
        self.now_ms = now_ms
        self.done = done
        self.verification = verification
        self.acks_all = acks_all
        self.is_checked = False
        self.error: Exception | None = None

    def check(self) -> None:
        """Check the batch and keep what comes of it.  Safe in a thread."""
        try:
            leader = self.leader
            self.batch = prepare(self.batch, leader.policy, leader.settings, self.now_ms)
        except Exception as error:
            self.error = error
        self.is_checked = True

    def check_quickly(self) -> bool:
        """The same on the loop; False, and nothing has been done, if that would take too long."""
        try:
            leader = self.leader
            self.batch = prepare_quickly(self.batch, leader.policy, leader.settings, self.now_ms)
        except RecordsTooLarge:
            return False
        except Exception as error:
            self.error = error
        self.is_checked = True
        return True


class Pause:
    """Stands among the batches that wait for their turn: those behind it wait until it is over."""

    __slots__ = ("is_checked",)

    def __init__(self) -> None:
        self.is_checked = False
        """Whether it is over."""


class Leader(Replica):
    """The leading replica of one partition.

    *Order.*  Batches are written in the order in which they are handed over.  A large compressed one is
    checked in a thread; whatever is handed over meanwhile waits behind it, because its sequence numbers
    may continue those of the batch in front.

    *Commitment.*  Records below the high watermark are committed: consumers may read them, and acks=all is
    acknowledged.  This replica's own part in that is everything which is written and, if ``flush.messages``
    asks for it, fsynced; one fsync serves all that was appended before it began.  While it is the only one,
    that is all.  Else ``replication`` says what the others have.
    """

    __slots__ = (
        "_committing",
        "_deleting",
        "_is_flushing",
        "_pause",
        "_pending",
        "_storing",
        "_surroundings",
        "epoch_start",
        "own_end",
        "policy",
        "replication",
        "settings",
    )

    is_leader = True

    def __init__(
        self,
        log: PartitionLog,
        *,
        partition: PartitionImage,
        settings: TopicSettings,
        surroundings: Surroundings,
    ) -> None:
        super().__init__(log, leader_epoch=partition.leader_epoch, surroundings=surroundings)
        self.settings = settings
        self.policy = policy_for(settings, self.topic, self.partition)
        self.replication: Replication | None = None
        """What is known of the other replicas; None while there are none."""
        self.epoch_start = log.log_end
        """Where the log ended when this leader epoch began."""
        self.own_end = log.log_end
        """Everything below is as safe on this replica as it is to be before it counts as committed."""
        self._surroundings = surroundings
        self._pending: deque[PendingAppend | Pause] = deque()
        self._pause: Pause | None = None
        self._committing: deque[tuple[int, WhenCommitted]] = deque()
        self._storing: deque[tuple[int, WhenCommitted]] = deque()
        self._deleting: list[tuple[int, WhenCommitted]] = []
        self._is_flushing = False
        log.assign_leader_epoch(partition.leader_epoch)
        self._follow(partition)

    def __repr__(self) -> str:
        return f"<Leader of {self.topic}-{self.partition} in epoch {self.leader_epoch}>"

    def lead(self, partition: PartitionImage) -> None:
        """Go on as the cluster's image now says."""
        leader_epoch = partition.leader_epoch
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.epoch_start = self.log.log_end
            self.log.assign_leader_epoch(leader_epoch)
        self._follow(partition)

    def _follow(self, partition: PartitionImage) -> None:
        """Other replicas may have come or gone, or be in sync now, or no longer."""
        if len(partition.replicas) > 1:
            if self.replication is None:
                self.replication = self._surroundings.new_replication()
            self.replication.follow(
                partition, epoch_start=self.epoch_start, now_ms=self._surroundings.now_ms()
            )
        else:
            self.replication = None
        self._move_high_watermark()
        if self._deleting:
            self._note_deletions()

    def change_settings(self, settings: TopicSettings) -> None:
        """Go by other settings from the next batch on."""
        self.settings = settings
        self.policy = policy_for(settings, self.topic, self.partition)
        self.log.config = LogConfig.from_settings(settings)
        self._move_high_watermark()  # fewer replicas in sync may be enough now

    # Appending.  What is raised, or handed to ``done``, is a KafkaError or a StorageError.

    @property
    def has_pending(self) -> bool:
        """Whether batches wait for their turn: then the next one goes through ``append_in_turn``, too."""
        return bool(self._pending)

    def append(
        self,
        batch: RecordBatch,
        now_ms: int,
        verification: Verification | None = VOUCHED,
        acks_all: bool = True,
    ) -> Appended:
        """Check and write a client's batch at once.

        Raises RecordsTooLarge, and nothing is done, if it has to be checked in a thread.
        ``verification``, here and below, is that of a transactional batch.  ``acks_all``: somebody waits
        until it is committed, and it is refused with NOT_ENOUGH_REPLICAS if that could not be.
        """
        if acks_all and self.replication is not None:
            self.check_enough_in_sync()
        prepared = prepare_quickly(batch, self.policy, self.settings, now_ms)
        appended = self._write(prepared, now_ms, verification=verification)
        self._commit()
        return appended

    def append_in_turn(
        self,
        batch: RecordBatch,
        now_ms: int,
        done: WhenAppended,
        *,
        check_aside: bool,
        verification: Verification | None = VOUCHED,
        acks_all: bool = True,
    ) -> None:
        """Check and write a client's batch when those before it are written, then call ``done``.

        The batch's bytes must stay until then.  ``check_aside``: check it in a thread, which is done anyway
        if it turns out that checking it would take long.
        """
        pending = PendingAppend(self, batch, now_ms, done, verification, acks_all)
        self._pending.append(pending)
        if check_aside or not pending.check_quickly():
            self._surroundings.check_aside(pending)
        else:
            self.settle()

    def settle(self) -> None:
        """Write the batches whose turn has come."""
        pending = self._pending
        while pending and pending[0].is_checked:
            first = pending.popleft()
            if isinstance(first, PendingAppend):
                first.done(self._write_checked(first))
        self._commit()

    def pause(self) -> None:
        """Let clients' batches wait from now on, until ``resume``; what this broker writes does not."""
        assert self._pause is None, "somebody pauses already"
        self._pause = Pause()
        self._pending.append(self._pause)

    def resume(self) -> None:
        """Let those that wait have their turn."""
        assert self._pause is not None, "nobody pauses"
        self._pause.is_checked = True
        self._pause = None
        self.settle()

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with a copy of the log that has all of it, at the same offsets."""
        assert log.log_end == self.log.log_end
        log.assign_leader_epoch(self.leader_epoch)
        log.advance_high_watermark(self.log.high_watermark)
        log.config = self.log.config
        log.producers.take_over_verifications(self.log.producers)
        self.log = log

    def append_own(
        self, batch: RecordBatch, now_ms: int, verification: Verification | None = VOUCHED
    ) -> Appended:
        """Write a batch that this broker has made, such as a coordinator's, at once and unchecked.

        As with acks=all, NOT_ENOUGH_REPLICAS is raised if it could not be committed.
        """
        if self.replication is not None:
            self.check_enough_in_sync()
        appended = self._write(batch, now_ms, from_client=False, verification=verification)
        self._commit()
        return appended

    def _write_checked(self, pending: PendingAppend) -> Appended | Exception:
        if pending.error is not None:
            return pending.error
        try:
            if pending.acks_all and self.replication is not None:
                self.check_enough_in_sync()
            return self._write(pending.batch, pending.now_ms, verification=pending.verification)
        except Exception as error:
            return error

    def _write(
        self,
        batch: RecordBatch,
        now_ms: int,
        *,
        from_client: bool = True,
        verification: Verification | None = VOUCHED,
    ) -> Appended:
        if self.ended is not None:
            raise self.ended
        try:
            return self.log.append_as_leader(
                batch,
                self.leader_epoch,
                now_ms=now_ms,
                from_client=from_client,
                verification=verification,
            )
        except DiskFailure as failure:
            self._surroundings.storage_failed(self, failure)
            raise

    def check_enough_in_sync(self) -> None:
        """Refuse what is to be acknowledged by all while fewer are in sync than ``min.insync.replicas``."""
        if self.ended is not None:
            raise self.ended
        replication = self.replication
        if replication is not None and not replication.has_enough_in_sync(self.settings.min_insync_replicas):
            raise RefusedBatch(ErrorCode.NOT_ENOUGH_REPLICAS, "fewer are in sync than min.insync.replicas")

    # Commitment

    def when_committed(self, end_offset: int, callback: WhenCommitted) -> None:
        """Call back when everything below ``end_offset``, which is written, is committed; perhaps at once."""
        if self.ended is not None:
            callback(self.ended)
        elif end_offset <= self.log.high_watermark:
            callback(None)
        else:
            _wait(self._committing, end_offset, callback)

    def when_stored(self, end_offset: int, callback: WhenCommitted) -> None:
        """The same for who does not wait for other replicas: everything is as safe here as it is to be."""
        if self.replication is None:
            self.when_committed(end_offset, callback)
        elif self.ended is not None:
            callback(self.ended)
        elif end_offset <= self.own_end:
            callback(None)
        else:
            _wait(self._storing, end_offset, callback)

    def _commit(self) -> None:
        """Move the high watermark as far as it may go."""
        if self.replication is not None:
            self.tell_watchers()  # followers read to the end of the log
        if self._is_flushing or self.ended is not None:
            return
        log = self.log
        if log.needs_flush:
            self._is_flushing = True
            self._surroundings.flush_soon(self)
        else:
            self._advance(log.log_end)

    def flushed(self, end_offset: int) -> bool:
        """Everything below ``end_offset`` is on disk; returns whether there is more to flush at once."""
        if self.ended is not None:
            return False
        self._advance(end_offset)
        self._is_flushing = self.log.needs_flush
        if not self._is_flushing:
            self._advance(self.log.log_end)
        return self._is_flushing

    def _advance(self, end_offset: int) -> None:
        self.own_end = end_offset
        storing = self._storing  # also of who came while there were other replicas
        while storing and storing[0][0] <= end_offset:
            storing.popleft()[1](None)
        if self.replication is None:
            self._commit_to(end_offset)
        else:
            self._move_high_watermark()

    def _move_high_watermark(self) -> None:
        """Something else than the log's end has changed that it depends on."""
        end_offset: int | None = self.own_end
        if self.replication is not None:
            end_offset = self.replication.high_watermark(
                self.own_end,
                log_end=self.log.log_end,
                now_ms=self._surroundings.now_ms(),
                min_insync_replicas=self.settings.min_insync_replicas,
            )
        if end_offset is not None:
            self._commit_to(end_offset)

    def _commit_to(self, end_offset: int) -> None:
        if not self.log.advance_high_watermark(end_offset):
            return
        committing = self._committing
        while committing and committing[0][0] <= end_offset:
            committing.popleft()[1](None)
        if self._watchers:
            self.tell_watchers()

    # Followers

    def check_follower(self, broker_id: int, current_leader_epoch: int) -> None:
        """Refuse a fetch of a broker that has no replica of this partition, or goes by another epoch."""
        self.check_epoch(max(current_leader_epoch, NO_EPOCH))
        if self.replication is None or broker_id not in self.replication.followers:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH  # the image may not say yet that it has: it tries again
                if current_leader_epoch >= 0
                else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )

    def follower_fetched(
        self,
        broker_id: int,
        offset: int,
        *,
        log_start: int,
        leader_end: int,
        broker_epoch: int,
    ) -> None:
        """A follower has everything below ``offset``; ``leader_end`` is where the log ended as it was read.

        Raises NOT_LEADER_OR_FOLLOWER if the broker has registered again since.
        """
        replication = self.replication
        assert replication is not None
        has_more = replication.fetched(
            broker_id,
            offset,
            log_start=log_start,
            now_ms=self._surroundings.now_ms(),
            leader_end=leader_end,
            broker_epoch=broker_epoch,
        )
        proposal = replication.propose_expansion(broker_id, self.log.high_watermark)
        if proposal is not None:
            self._surroundings.propose_isr(self, proposal)
        if has_more:
            self._move_high_watermark()
        if self._deleting:
            self._note_deletions()

    @property
    def low_watermark(self) -> int:
        """Where the log starts on every live replica."""
        log_start = self.log.log_start
        return log_start if self.replication is None else self.replication.low_watermark(log_start)

    def when_deleted(self, offset: int, callback: WhenCommitted) -> None:
        """Call back when all live replicas have let go of what lies below ``offset``; perhaps at once."""
        if self.ended is not None:
            callback(self.ended)
        elif self.low_watermark >= offset:
            callback(None)
        else:
            self._deleting.append((offset, callback))

    def _note_deletions(self) -> None:
        low_watermark = self.low_watermark
        waiting, self._deleting = self._deleting, []
        for offset, callback in waiting:
            if offset <= low_watermark:
                callback(None)
            else:
                self._deleting.append((offset, callback))

    def shrink_isr(self) -> Collection[int]:
        """Propose to let those go that have been behind for too long, and name them; from time to time."""
        replication = self.replication
        if replication is None:
            return ()
        proposal = replication.propose_shrinking(self.log.log_end, self._surroundings.now_ms())
        if proposal is None:
            return ()
        late = replication.isr.difference(proposal.isr)
        self._surroundings.propose_isr(self, proposal)
        return late

    def isr_accepted(
        self, proposal: "IsrProposal", isr: Sequence[int], *, leader_epoch: int, partition_epoch: int
    ) -> bool:
        """The controller has answered a proposal with this state; False if more is known already."""
        replication = self.replication
        if replication is None or not replication.accepted(
            proposal, isr, leader_epoch=leader_epoch, partition_epoch=partition_epoch
        ):
            return False
        self._move_high_watermark()
        return True

    def isr_refused(self, proposal: "IsrProposal", code: ErrorCode) -> None:
        """The controller has refused a proposal."""
        if self.ended is None and self.replication is not None and self.replication.refused(proposal, code):
            self._surroundings.propose_isr(self, proposal)

    # The end

    def end(self, reason: KafkaError) -> None:
        """This broker leads the partition no longer: whoever waits for something is told.

        Whoever handed over a batch that is being checked is told after that, since its bytes are in use.
        """
        self.ended = reason
        waiting = [*self._storing, *self._committing, *self._deleting]
        self._storing.clear()
        self._committing.clear()
        self._deleting.clear()
        for _, callback in waiting:
            callback(reason)
        self.tell_watchers()


def _wait(waiting: deque[tuple[int, WhenCommitted]], end_offset: int, callback: WhenCommitted) -> None:
    """Stand behind all that wait for less or as much: a producer may repeat what is not committed yet."""
    behind: list[tuple[int, WhenCommitted]] = []
    while waiting and waiting[-1][0] > end_offset:
        behind.append(waiting.pop())
    waiting.append((end_offset, callback))
    waiting.extend(reversed(behind))
