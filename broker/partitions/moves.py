"""Moves of replicas from one log directory to another (KIP-113): copies that catch up and take over.

A copy grows in a ``-future`` folder of its new directory, and is fsynced.  When it has nearly all, clients'
batches wait for a moment: the rest is copied, and fsynced as far as the source is, the controller notes the
new place, and only then the folders change their names.  So the copy in the directory that the metadata names
has everything that was acknowledged, wherever a crash falls.
"""

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import trio

from broker.errors import ErrorCode, KafkaError
from broker.flushing import run_flush
from broker.partitions.assignments import RETRY_SECONDS
from protocol.records.batch import RecordBatch
from protocol.records.errors import CorruptRecords
from storage import paths
from storage.checkpoints import Replica
from storage.errors import CorruptFile, DiskFailure, StorageError
from storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from broker.partitions.manager import PartitionManager
    from broker.services import Services
    from storage.file_range import FileRange
    from storage.partition_log import PartitionLog

COPY_BYTES: Final = 1 << 20
"""What is copied in one step."""

FLUSH_BYTES: Final = 64 << 20
"""After so many bytes the copy is fsynced, so that a crash costs no long recovery."""


class Stage(Enum):
    """How far a move is."""

    COPYING = auto()
    ASSIGNING = auto()
    """The controller is told: from now on the metadata may name the new directory."""
    OVER = auto()
    """The copy has taken over, or was given up."""


class Move:
    """One replica on its way.  Only the task that carries it out touches ``future``, here or in a thread."""

    __slots__ = (
        "cleaned_to",
        "cut_to",
        "ended",
        "future",
        "replica",
        "scope",
        "source",
        "stage",
        "target",
        "unflushed",
    )

    def __init__(
        self, source: "PartitionLog", target: LogDirectory, future: "PartitionLog", cleaned_to: int | None
    ) -> None:
        self.replica: Replica = (source.topic, source.partition)
        self.source = source
        self.target = target
        self.future = future
        self.cleaned_to = cleaned_to
        """Up to where the source was compacted when the copying began, and so is the copy."""
        self.cut_to: int | None = None
        """The source has lost everything from here on, and the copy has yet to follow it in that."""
        self.stage = Stage.COPYING
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.unflushed = 0

    @property
    def is_equal(self) -> bool:
        """Whether the copy has all that the source has, and is fsynced as far as it has to be."""
        return self.cut_to is None and self.future.log_end == self.source.log_end and not self.needs_flush

    @property
    def needs_flush(self) -> bool:
        """Whether the source has more on the device, or is about to by ``flush.messages``.

        That all of the copy is there would never be so while something is written during each fsync.
        """
        source, future = self.source, self.future
        unsafe = future.log_end - future.recovery_point
        return future.recovery_point < source.recovery_point or unsafe >= source.config.flush_messages


class ReplicaMoves:
    """All moves under way: each is a task, and a few of them copy at the same time."""

    def __init__(self, services: "Services", manager: "PartitionManager") -> None:
        self._services = services
        self._manager = manager
        self._moves: dict[Replica, Move] = {}
        self._slots: trio.CapacityLimiter | None = None
        self._altering = trio.Lock()
        self._copied: tuple[float, int] | None = None
        """When something was copied last, and how much: for the throttle."""

    def target_of(self, replica: Replica) -> LogDirectory | None:
        """Where a replica is moving to."""
        move = self._moves.get(replica)
        return None if move is None else move.target

    def is_assigning(self, replica: Replica) -> bool:
        """Whether the metadata may name a directory in which the replica is not yet."""
        move = self._moves.get(replica)
        return move is not None and move.stage is Stage.ASSIGNING

    def is_moving(self, log: "PartitionLog") -> bool:
        """Whether a log is being copied: it is not compacted meanwhile."""
        move = self._moves.get((log.topic, log.partition))
        return move is not None and move.source is log

    # What is asked for

    async def move(self, replica: Replica, path: str) -> None:
        """Begin to move a replica to the directory at ``path``, or give up that it moves elsewhere.

        Raises what AlterReplicaLogDirs answers.  For a replica that does not exist yet the wish is kept.
        """
        if len(paths.future_name(*replica, "0" * 32)) > paths.NAME_SIZE_MAX:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        places = self._manager.places
        async with self._altering:
            target = places.at(path)
            if target.id in places.cordoned:
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
            self._manager.check_not_lost(replica)
            if self.target_of(replica) not in (None, target):
                await self.cancel(replica)
            if target in (places.homes.get(replica), self.target_of(replica)):
                return
            places.want(replica, target)
            source = self._manager.local_log(*replica)
            if places.homes.get(replica) is target:
                return  # it has been made only now, where it was wanted
            if places.offline:
                # It might be in one of them already: there must not be two copies.
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            del places.wanted[replica]
            await self._begin(source, target)

    async def _begin(self, source: "PartitionLog", target: LogDirectory) -> None:
        manager, now_ms = self._manager, self._services.clock.now_ms()
        home = manager.places.homes[source.topic, source.partition]
        cleaned_to = home.cleaner_offset(source.topic, source.partition)

        def make() -> "PartitionLog":
            with manager.disk_lock:
                return target.create_future_log(
                    source.topic,
                    source.partition,
                    source.topic_id,
                    source.config,
                    start=source.log_start,
                    now_ms=now_ms,
                )

        try:
            future = await self._services.run_blocking(make)
        except StorageError as failure:
            manager.note_failure(target, failure)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from failure
        move = Move(source, target, future, cleaned_to)
        if home.log(*move.replica) is not source:  # deleted, or its directory has failed, meanwhile
            self._drop(move)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        self._start(move)

    async def resume(self, source: "PartitionLog", target: LogDirectory, future: "PartitionLog") -> None:
        """Go on with a copy that an earlier process has begun.  Raises DiskFailure."""
        end = end_of_agreement(source, future)
        if end < future.log_end:
            await self._cut(target, future, end)
        self._start(Move(source, target, future, None))

    async def _cut(self, target: LogDirectory, future: "PartitionLog", end: int) -> None:
        future.lower_recovery_point(end)
        await self._services.run_blocking(target.begin_checkpoint())
        future.truncate_to(end, now_ms=self._services.clock.now_ms())
        await self._services.run_blocking(target.begin_checkpoint())

    def _start(self, move: Move) -> None:
        self._moves[move.replica] = move
        topic, partition = move.replica
        self._services.log.info(f"{topic}-{partition} is being copied to {move.target.path}")
        self._manager.start_soon(self._run, move)

    async def cancel(self, replica: Replica) -> None:
        """Give a move up, and return when its copy is gone."""
        move = self._moves.get(replica)
        if move is not None:
            self.abandon(replica)
            await move.ended.wait()

    def abandon(self, replica: Replica) -> None:
        """Give a move up, if there is one; the copy goes as soon as nobody works on it."""
        move = self._moves.get(replica)
        if move is not None:
            move.scope.cancel()

    def source_was_cut(self, log: "PartitionLog", offset: int) -> None:
        """A log has lost everything from ``offset`` on: its copy, if there is one, follows it in that."""
        move = self._moves.get((log.topic, log.partition))
        if move is not None and move.source is log:
            move.cut_to = offset if move.cut_to is None else min(move.cut_to, offset)
            if move.cleaned_to is not None:
                move.cleaned_to = min(move.cleaned_to, offset)  # what comes there anew was never cleaned

    def directory_failed(self, directory: LogDirectory) -> None:
        """Give up what moves to a directory that is offline, or was to move away from it."""
        for replica, move in self._moves.items():
            if move.target is directory or replica not in self._manager.places.homes:
                move.scope.cancel()

    # One move

    async def _run(self, move: Move) -> None:
        if self._slots is None:
            threads = self._services.config.get("num.replica.alter.log.dirs.threads")
            self._slots = trio.CapacityLimiter(threads or len(self._manager.places.online))
        with move.scope:
            async with self._slots:
                await self._carry_out(move)
        self._end(move)

    def _end(self, move: Move) -> None:
        if self._moves.get(move.replica) is move:
            del self._moves[move.replica]
        move.stage = Stage.OVER
        self._drop(move)
        move.ended.set()
        self._manager.tell_place(move.replica)  # which the controller may know differently

    def _drop(self, move: Move) -> None:
        """Delete the copy, if it is one still.  If the replica is offline, a later start may need it."""
        places = self._manager.places
        if (
            move.replica in places.lost
            or move.target not in places.online
            or move.target.future_log(*move.replica) is not move.future
        ):
            return
        now_ms = self._services.clock.now_ms()
        delay_ms = move.future.config.file_delete_delay_ms
        try:
            move.target.delete_future_log(*move.replica, delay_ms=delay_ms, now_ms=now_ms)
        except DiskFailure as failure:
            self._manager.note_failure(move.target, failure)

    async def _carry_out(self, move: Move) -> None:
        topic, partition = move.replica
        log = self._services.log
        while True:
            try:
                while not await self._copy_some(move):
                    await self._pause()
                await self._flush(move)  # most of it, while nobody waits for that
                await self._switch(move)
                return
            except KafkaError as refusal:
                log.warn_seldom(f"{topic}-{partition} does not move yet: {refusal}")
            except DiskFailure as failure:
                if self._manager.note_failure_at(failure.path, failure):
                    return
                if not failure.lacks_descriptor:
                    log.error(f"{topic}-{partition} stays where it is: {failure}")
                    return
                log.warn_seldom(f"{topic}-{partition} does not move yet: {failure}")
            except (CorruptFile, CorruptRecords) as damage:
                log.error(f"{topic}-{partition} stays where it is: {damage}")
                return
            await trio.sleep(RETRY_SECONDS)

    async def _copy_some(self, move: Move) -> bool:
        """Copy a piece; whether that was all there was when it began."""
        source, future = move.source, move.future
        now_ms = self._services.clock.now_ms()
        while (end := move.cut_to) is not None:
            if end <= future.log_end:  # also where only the checkpoint behind an earlier attempt is missing
                await self._cut(move.target, future, end)
            if move.cut_to == end:
                move.cut_to = None
        if future.log_end < source.log_start:
            future.truncate_fully_and_start_at(source.log_start, now_ms=now_ms)
        found = source.read(future.log_end, COPY_BYTES)
        end = source.log_end
        if found is not None:
            copied = await self._services.run_blocking(_append, move, found, now_ms)
            self._copied = trio.current_time(), copied
        elif future.log_end < end:
            future.skip_to(end, now_ms=now_ms)  # compaction has left nothing there
        future.advance_high_watermark(source.high_watermark)
        future.delete_records_before(min(source.log_start, future.high_watermark))
        return future.log_end >= end

    async def _pause(self) -> None:
        """Keep to ``replica.alter.log.dirs.io.max.bytes.per.second``, which may change meanwhile."""
        config = self._services.config
        await trio.lowlevel.checkpoint()
        while self._copied is not None:
            at, copied = self._copied
            rate = config.get("replica.alter.log.dirs.io.max.bytes.per.second")
            # Whatever was copied, Kafka has forgotten it when its window has moved on.
            window = config.get("alter.log.dirs.replication.quota.window.num") * config.get(
                "alter.log.dirs.replication.quota.window.size.seconds"
            )
            seconds = at + (min(copied / rate, window) if rate else window) - trio.current_time()
            if seconds <= 0:
                return
            await trio.sleep(min(seconds, 1.0))

    async def _switch(self, move: Move) -> None:
        """Let the copy take over.  Raises KafkaError if the controller does not want that."""
        leader = self._manager.open_leader(move.replica)
        if leader is not None:
            leader.pause()
        try:
            await self._equalize(move)
            await self._assign(move)
            await self._equalize(move)  # a coordinator, or a log whose leader is new, does not wait
            source = self._manager.take_over(move)
            move.stage = Stage.OVER
        finally:
            if leader is not None:
                leader.resume()
        topic, partition = move.replica
        self._services.log.info(f"{topic}-{partition} has moved to {move.target.path}")
        # The old name first: of two replicas nobody but the metadata would know which one is right.
        for directory, write in (
            (source, source.sync),
            (move.target, move.target.sync),
            (move.target, move.target.begin_checkpoint()),
        ):
            while True:
                try:
                    await self._services.run_blocking(write)
                    break
                except DiskFailure as failure:
                    if self._manager.note_failure(directory, failure):
                        break
                    if not failure.lacks_descriptor:
                        raise
                    await trio.sleep(RETRY_SECONDS)  # here: the copy must not be put in its place twice

    async def _equalize(self, move: Move) -> None:
        """Copy and fsync until both have the same; nothing can come between that and what follows."""
        while not move.is_equal:
            await self._copy_some(move)
            if move.needs_flush:
                await self._flush(move)

    async def _flush(self, move: Move) -> None:
        job = move.future.begin_flush()
        if job is not None:
            await run_flush(job, self._services.run_blocking, self._services.log)
            job.finish()

    async def _assign(self, move: Move) -> None:
        directory_id = move.target.id
        if directory_id is None:
            return
        outcomes: list[KafkaError | None] = []
        is_told = trio.Event()

        def done(error: KafkaError | None) -> None:
            outcomes.append(error)
            is_told.set()

        move.stage = Stage.ASSIGNING
        self._manager.assignments.assign(move.source.topic_id, move.replica[1], directory_id, done)
        await is_told.wait()
        if outcomes[0] is not None:
            move.stage = Stage.COPYING
            raise outcomes[0]


def _append(move: Move, found: "FileRange", now_ms: int) -> int:
    """Append a piece of the source to the copy; return how many bytes it has.  Runs in a thread."""
    future = move.future
    records = found.read()
    if found.size_bytes:
        base_offset = RecordBatch(memoryview(records)).base_offset
        if base_offset < min(future.log_end, move.source.log_start):  # the log starts inside a batch
            future.truncate_fully_and_start_at(base_offset, now_ms=now_ms)
    future.append_as_follower(records, now_ms=now_ms)
    move.unflushed += len(records)
    if move.unflushed >= FLUSH_BYTES:
        future.flush()
        move.unflushed = 0
    return len(records)


def end_of_agreement(source: "PartitionLog", future: "PartitionLog") -> int:
    """Up to where a copy has what the source has: that may have lost its end since (KIP-101)."""
    end = min(source.log_end, future.log_end)
    for epoch, start in reversed(future.leader_epochs.entries):
        known, epoch_end = source.end_offset_for_epoch(epoch)
        if known == epoch:
            return min(end, epoch_end, future.end_offset_for_epoch(epoch)[1])
        end = min(end, start)
    return end
