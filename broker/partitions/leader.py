"""One partition, as the broker that leads it sees it: what is appended, what may be read, who waits."""

from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

from broker.config.topic_settings import TopicSettings
from broker.metadata.image import PartitionImage
from broker.partitions.append import policy_for, prepare, prepare_quickly
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.errors import RecordsTooLarge
from storage.config import LogConfig
from storage.errors import DiskFailure, OffsetOutOfRange, StorageError
from storage.partition_log import Appended, PartitionLog
from storage.transaction_verification import VOUCHED, Verification

WhenAppended: TypeAlias = Callable[[Appended | Exception], None]
"""Told once, when a batch has had its turn: where it lies, or why not."""

WhenCommitted: TypeAlias = Callable[[KafkaError | None], None]
"""Told once: None when the records are committed, or why this leadership ended before that."""

Watcher: TypeAlias = Callable[["Leader"], None]
"""Told each time that more can be read, and when this leadership ends."""

NO_EPOCH = -1
"""The leader epoch that a client sends which knows none."""


class Surroundings(Protocol):
    """What a leader needs from whoever holds it: work that would keep the loop waiting."""

    def check_aside(self, pending: "PendingAppend") -> None:
        """Call ``pending.check`` in a thread, and then ``pending.leader.settle``."""

    def flush_soon(self, leader: "Leader") -> None:
        """Flush the log in a thread and tell ``leader.flushed``, for as long as that returns True."""

    def storage_failed(self, leader: "Leader", failure: DiskFailure) -> None:
        """The file system refused a write; whoever asked for it is told as well."""

    def read_failed(self, leader: "Leader", failure: StorageError) -> None:
        """Something on disk is damaged or cannot be read; whoever asked is told no more than a code."""


class PendingAppend:
    """A batch that waits for its turn."""

    __slots__ = ("batch", "done", "error", "is_checked", "leader", "now_ms", "verification")

    def __init__(
        self,
        leader: "Leader",
        batch: RecordBatch,
        now_ms: int,
        done: WhenAppended,
        verification: Verification | None,
    ) -> None:
        self.leader = leader
        self.batch = batch
        self.now_ms = now_ms
        self.done = done
        self.verification = verification
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


class Leader:
    """The leading replica of one partition.

    *Order.*  Batches are written in the order in which they are handed over.  A large compressed one is
    checked in a thread; whatever is handed over meanwhile waits behind it, because its sequence numbers
    may continue those of the batch in front.

    *Commitment.*  Records below the high watermark are committed: they may be read and are acknowledged.
    While this is the only replica, that is everything which is written and, if ``flush.messages`` asks
    for it, fsynced.  One fsync serves all that was appended before it began.
    """

    __slots__ = (
        "_committing",
        "_is_flushing",
        "_pause",
        "_pending",
        "_surroundings",
        "_watchers",
        "ended",
        "leader_epoch",
        "log",
        "partition",
        "policy",
        "settings",
        "topic",
        "topic_id",
    )

    def __init__(
        self, log: PartitionLog, *, leader_epoch: int, settings: TopicSettings, surroundings: Surroundings
    ) -> None:
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.partition = log.partition
        self.log = log
        self.leader_epoch = leader_epoch
        self.settings = settings
        self.policy = policy_for(settings, self.topic, self.partition)
        self.ended: KafkaError | None = None
        """Why this object leads no longer, once it does not."""
        self._surroundings = surroundings
        self._pending: deque[PendingAppend | Pause] = deque()
        self._pause: Pause | None = None
        self._committing: deque[tuple[int, WhenCommitted]] = deque()
        self._watchers: dict[Watcher, None] = {}
        self._is_flushing = False
        log.assign_leader_epoch(leader_epoch)
        log.advance_high_watermark(log.log_end)

    def __repr__(self) -> str:
        return f"<Leader of {self.topic}-{self.partition} in epoch {self.leader_epoch}>"

    def lead(self, partition: PartitionImage) -> None:
        """Go on as the cluster's image now says."""
        leader_epoch = partition.leader_epoch
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.assign_leader_epoch(leader_epoch)

    def change_settings(self, settings: TopicSettings) -> None:
        """Go by other settings from the next batch on."""
        self.settings = settings
        self.policy = policy_for(settings, self.topic, self.partition)
        self.log.config = LogConfig.from_settings(settings)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client that takes another epoch for the current one (KIP-320)."""
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # Appending.  What is raised, or handed to ``done``, is a KafkaError or a StorageError.

    @property
    def has_pending(self) -> bool:
        """Whether batches wait for their turn: then the next one goes through ``append_in_turn``, too."""
        return bool(self._pending)

    def append(
        self, batch: RecordBatch, now_ms: int, verification: Verification | None = VOUCHED
    ) -> Appended:
        """Check and write a client's batch at once.

        Raises RecordsTooLarge, and nothing is done, if it has to be checked in a thread.
        ``verification``, here and below, is that of a transactional batch.
        """
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
    ) -> None:
        """Check and write a client's batch when those before it are written, then call ``done``.

        The batch's bytes must stay until then.  ``check_aside``: check it in a thread, which is done anyway
        if it turns out that checking it would take long.
        """
        pending = PendingAppend(self, batch, now_ms, done, verification)
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
        """Write a batch that this broker has made, such as a coordinator's, at once and unchecked."""
        appended = self._write(batch, now_ms, from_client=False, verification=verification)
        self._commit()
        return appended

    def _write_checked(self, pending: PendingAppend) -> Appended | Exception:
        if pending.error is not None:
            return pending.error
        try:
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

    def note_failed_read(self, failure: StorageError) -> None:
        """Let the operator know, unless it was just an offset that the log does not have."""
        if not isinstance(failure, OffsetOutOfRange):
            self._surroundings.read_failed(self, failure)

    # Commitment

    def when_committed(self, end_offset: int, callback: WhenCommitted) -> None:
        """Call back when everything below ``end_offset``, which is written, is committed; perhaps at once.

        Offsets come in ascending order.
        """
        if self.ended is not None:
            callback(self.ended)
        elif end_offset <= self.log.high_watermark:
            callback(None)
        else:
            self._committing.append((end_offset, callback))

    def _commit(self) -> None:
        """Move the high watermark as far as it may go."""
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
        if not self.log.advance_high_watermark(end_offset):
            return
        committing = self._committing
        while committing and committing[0][0] <= end_offset:
            committing.popleft()[1](None)
        if self._watchers:
            self._tell_watchers()

    # Waiting for more to read

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` from now on whenever more can be read, and when this leadership ends."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def _tell_watchers(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)

    # The end

    def end(self, reason: KafkaError) -> None:
        """This broker leads the partition no longer: whoever waits for something is told.

        Whoever handed over a batch that is being checked is told after that, since its bytes are in use.
        """
        self.ended = reason
        committing, self._committing = self._committing, deque()
        for _, callback in committing:
            callback(reason)
        self._tell_watchers()
