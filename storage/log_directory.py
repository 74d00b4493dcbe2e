"""One entry of ``log.dirs``: its lock, its replicas, its checkpoints, and how it is left."""

import os
from collections.abc import Callable, Iterable, Mapping, Set

from protocol.uuids import ONE_UUID
from storage import paths
from storage.checkpoints import Replica
from storage.config import LogConfig
from storage.directory_checkpoints import DirectoryCheckpoints
from storage.errors import (
    CorruptFile,
    DirectoryLocked,
    DiskFailure,
    DuplicateReplica,
    InconsistentTopicId,
    ReplicaExists,
    ReplicaNotFound,
    StorageError,
    UnexpectedDirectory,
)
from storage.filesystem import FileSystem, Lock
from storage.loading import create_log, load_log
from storage.log_services import LogServices, Report
from storage.node_files import (
    NO_BROKER_EPOCH,
    MetaProperties,
    read_clean_shutdown,
    read_meta_properties,
    read_topic_id,
    write_clean_shutdown,
    write_meta_properties,
    write_topic_id,
)
from storage.partition_log import FlushJob, PartitionLog
from storage.producer_state import ProducerState
from storage.recovery import Cut
from storage.recovery_job import RecoveryJob
from storage.retention import may_need_care
from storage.segments import list_segments

METADATA_TOPIC_ID = ONE_UUID

_FSYNCED_ONE_BY_ONE_MAX = 100
"""If more logs than these have changed, a stop asks for everything on the device at once."""

_CLOSED_AT_ONCE = 64
"""Logs that are flushed together at the end, unless descriptors are few: each holds several meanwhile."""

_FILES_PER_LOG = 4


def run_in_turn(jobs: list[FlushJob]) -> None:
    """Run flushes one after the other."""
    for job in jobs:
        job.run()


class LogDirectory:
    """A log directory that this process holds.

    Opening it reads names and checkpoints, but no log: each is opened when ``open_log`` asks for it,
    so that thousands cost little.  After an unclean stop that includes recovery, which may take long:
    ``open_log`` and ``create_log`` may be called from threads, for different replicas at once.
    Everything else belongs to the event loop's thread.

    Clean shutdown: the marker is gone while this object lives, and comes back in ``close`` if the
    directory was clean or every replica has been recovered since.
    """

    def __init__(
        self,
        path: str,
        services: LogServices,
        lock: Lock,
        *,
        properties: MetaProperties | None,
        has_mark: bool,
        previous_broker_epoch: int,
        replicas: Iterable[Replica],
        futures: Mapping[Replica, str],
        deleted: Set[Replica],
    ) -> None:
        """For ``open``."""
        self.path = path
        self.services = services
        self.properties = properties
        """None if the directory was never formatted: see ``write_properties``."""
        self._replicas = set(replicas)
        self._futures = dict(futures)
        """Copies on their way here, by the names of their folders."""
        self.was_clean = has_mark or not (self._replicas or self._futures)
        """Nothing here needs recovery."""
        self.previous_broker_epoch = previous_broker_epoch
        """From the last clean stop; -1 after an unclean one (KIP-966)."""
        self._lock = lock
        self._has_mark = has_mark
        self._is_touched = False
        """A replica was opened, made or moved."""
        self._unrecovered: set[Replica] = set() if self.was_clean else {*self._replicas, *self._futures}
        self._unrecoverable: dict[Replica, CorruptFile] = {}
        """Why some of these never will be: finding that out again may take long."""
        self._logs: dict[Replica, PartitionLog] = {}
        self._future_logs: dict[Replica, PartitionLog] = {}
        self._metadata_log: PartitionLog | None = None
        self._checkpoints = DirectoryCheckpoints(services, path, {*self._replicas, *self._futures})
        self.absent: Mapping[Replica, int] = {
            replica: offset for replica, offset in self._checkpoints.absent.items() if replica not in deleted
        }
        """Replicas that checkpoints name and of which there was no folder at the opening, and the highest
        offset that these know of.  Perhaps they were moved elsewhere."""

    @classmethod
    def open(
        cls,
        path: str,
        file_system: FileSystem,
        *,
        random_below: Callable[[int], int],
        report: Report,
        now_ms: int,
        open_files_max: int = 512,
        producer_expiration_ms: int = 86_400_000,
    ) -> "LogDirectory":
        """Take the directory at ``path``, which is made if need be.

        Raises DirectoryLocked, UnexpectedDirectory, CorruptFile or DiskFailure.
        """
        services = LogServices(
            file_system,
            random_below=random_below,
            report=report,
            open_files_max=open_files_max,
            producer_expiration_ms=producer_expiration_ms,
        )
        path = path.rstrip("/") or "/"
        try:
            if not file_system.exists(path):
                file_system.make_directory(path)
                file_system.sync_directory(os.path.dirname(path))
            lock = file_system.lock(os.path.join(path, paths.LOCK))
            if lock is None:
                raise DirectoryLocked(path)
            try:
                replicas, futures, deleted = _list_replicas(services, path, now_ms)
                properties = read_meta_properties(file_system, path)
                broker_epoch = read_clean_shutdown(file_system, path)
                if broker_epoch is not None:
                    file_system.remove(os.path.join(path, paths.CLEAN_SHUTDOWN))
                if broker_epoch is not None or replicas:
                    # The mark must be gone from the device, too, before any log changes, or a power cut could
                    # leave it behind.  If it is not there, a start that came to nothing may have removed it.
                    file_system.sync_directory(path)
                return cls(
                    path,
                    services,
                    lock,
                    properties=properties,
                    has_mark=broker_epoch is not None,
                    previous_broker_epoch=NO_BROKER_EPOCH if broker_epoch is None else broker_epoch,
                    replicas=replicas,
                    futures=futures,
                    deleted=deleted,
                )
            except BaseException:
                lock.release()
                raise
        except OSError as error:
            raise DiskFailure(path, "use log directory", error) from error

    def write_properties(self, properties: MetaProperties) -> None:
        """Format the directory, or complete what an older Kafka wrote."""
        write_meta_properties(self.services.file_system, self.path, properties)
        self.properties = properties

    @property
    def id(self) -> bytes | None:
        """By which the cluster knows this directory (KIP-858); None until it is formatted."""
        return None if self.properties is None else self.properties.directory_id

    # Replicas

    @property
    def replicas(self) -> list[Replica]:
        """(topic, partition) of every replica here, open or not; the metadata log is none."""
        return list(self._replicas)

    @property
    def replica_count(self) -> int:
        """How many replicas lie here, and copies that are about to."""
        return len(self._replicas) + len(self._futures)

    @property
    def logs(self) -> list[PartitionLog]:
        """Those that are open."""
        return list(self._logs.values())

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """The log if it is open."""
        return self._logs.get((topic, partition))

    def needs_recovery(self, topic: str, partition: int) -> bool:
        """Whether ``open_log`` will have to read much of it."""
        return (topic, partition) in self._unrecovered

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """The topic id that the replica was created for; None if none is stored.

        Raises ReplicaNotFound, CorruptFile.
        """
        self._check_presence(topic, partition)
        return read_topic_id(self.services.file_system, self._replica_path(topic, partition))

    def create_log(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, *, now_ms: int
    ) -> PartitionLog:
        """A new replica.  Waits for one fsync: nothing may be written before the topic id is.

        Raises ReplicaExists or DiskFailure.
        """
        directory = self._replica_path(topic, partition)
        if (topic, partition) in self._replicas:
            raise ReplicaExists(directory)
        self._replicas.add((topic, partition))  # at once, for who asks meanwhile how many there are
        try:
            log = self._create(directory, (topic, partition), topic_id, config, 0, now_ms)
        except BaseException:
            self._replicas.discard((topic, partition))
            raise
        self._logs[topic, partition] = log
        return log

    def _create(
        self, directory: str, replica: Replica, topic_id: bytes, config: LogConfig, start: int, now_ms: int
    ) -> PartitionLog:
        self._is_touched = True
        self._checkpoints.prepare_for_new(replica)
        try:
            self.services.file_system.make_directory(directory)
            write_topic_id(self.services.file_system, directory, topic_id)
            return create_log(
                self.services, directory, *replica, topic_id, config, start=start, now_ms=now_ms
            )
        except OSError as error:
            raise DiskFailure(directory, "create", error) from error

    def open_log(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        recovery_max: int | None = None,
        recovered_producers: ProducerState | None = None,
        now_ms: int,
    ) -> PartitionLog:
        """The log, from disk if it is not open yet, recovered if need be.

        ``recovery_max`` and ``recovered_producers`` are as in ``load_log``.

        Raises ReplicaNotFound, InconsistentTopicId, CorruptLog, UnsupportedFormat, DiskFailure, and
        LargeRecovery.
        """
        replica = (topic, partition)
        log = self._logs.get(replica)
        if log is None:
            self._check_presence(topic, partition)
            if (damage := self._unrecoverable.get(replica)) is not None:
                raise damage.with_traceback(None)
            log = self._load(
                self._replica_path(topic, partition),
                replica,
                topic_id,
                config,
                now_ms,
                recovery_max=recovery_max,
                recovered_producers=recovered_producers,
            )
            self._logs[replica] = log
        elif log.topic_id != topic_id:
            raise InconsistentTopicId(log.directory, log.topic_id, topic_id)
        return log

    def _load(
        self,
        directory: str,
        replica: Replica,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        *,
        recovery_max: int | None = None,
        recovered_producers: ProducerState | None = None,
    ) -> PartitionLog:
        self._is_touched = True
        try:
            stored_id = read_topic_id(self.services.file_system, directory)
            if stored_id != topic_id:
                raise InconsistentTopicId(directory, stored_id, topic_id)
            log = load_log(
                self.services,
                directory,
                *replica,
                topic_id,
                config,
                was_clean=replica not in self._unrecovered,
                recovery_point=self._checkpoints.recovery_points.get(replica, 0),
                log_start=self._checkpoints.log_starts.get(replica, 0),
                high_watermark=self._checkpoints.high_watermarks.get(replica, 0),
                recovery_max=recovery_max,
                recovered_producers=recovered_producers,
                now_ms=now_ms,
            )
        except OSError as error:
            raise DiskFailure(directory, "open", error) from error
        except CorruptFile as damage:
            if replica in self._unrecovered:
                self.note_damage(*replica, damage)
            raise
        self._checkpoints.note_cut(replica, log.log_end)
        self._unrecovered.discard(replica)
        return log

    def note_damage(self, topic: str, partition: int, damage: CorruptFile) -> None:
        """Recovery has failed for good: until the next start ``open_log`` raises this."""
        self._unrecoverable[topic, partition] = damage

    def recovery_job(self, topic: str, partition: int, config: LogConfig, *, now_ms: int) -> RecoveryJob:
        """What another process must be told to recover a log; ``open_log`` takes what it answers."""
        self._check_presence(topic, partition)
        return RecoveryJob(
            directory=self._replica_path(topic, partition),
            recovery_point=self._checkpoints.recovery_points.get((topic, partition), 0),
            log_start=self._checkpoints.log_starts.get((topic, partition), 0),
            now_ms=now_ms,
            producer_expiration_ms=self.services.producer_expiration_ms,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
        )

    def may_need_care(self, topic: str, partition: int, config: LogConfig, *, now_ms: int) -> bool:
        """Whether retention or the cleaner may have work in a closed log: by a glance at its files.

        Safe in a thread as long as nobody opens or deletes this log meanwhile.
        """
        replica = (topic, partition)
        if replica not in self._replicas or replica in self._logs or replica in self._unrecovered:
            return False
        directory = self._replica_path(topic, partition)
        try:
            names = self.services.file_system.list_names(directory)
            segments = list_segments(self.services, directory, names, config, now_ms)
            try:
                return may_need_care(
                    segments, config, log_start=self._checkpoints.log_starts.get(replica, 0), now_ms=now_ms
                )
            finally:
                for segment in segments:
                    segment.close()
        except OSError as error:
            self.services.report(f"cannot look into {directory}: {error}")
            return False

    def open_metadata_log(self, config: LogConfig, *, now_ms: int, is_copy: bool = False) -> PartitionLog:
        """``__cluster_metadata-0``, made if need be; Kafka reads all of it at each start, and so do we.

        It stands apart: it is in no checkpoint, and not among ``replicas`` and ``logs``.  Nor is it cut
        where it is damaged, unless that is what an unclean stop left of its last writes: with its records
        topics would go, and their partitions be strays.  ``is_copy``: other nodes have all of it, and what is
        cut comes again; nobody waits for its fsyncs, so that a power cut may leave holes.

        Raises CorruptFile, UnsupportedFormat, DiskFailure.
        """
        if self._metadata_log is not None:
            return self._metadata_log
        directory = os.path.join(self.path, paths.METADATA_REPLICA)
        file_system = self.services.file_system
        may_cut = Cut.EVERYTHING if is_copy else Cut.TORN_TAIL
        try:
            if not file_system.exists(os.path.join(directory, paths.PARTITION_METADATA)):
                file_system.make_directory(directory)
                write_topic_id(file_system, directory, METADATA_TOPIC_ID)
                file_system.sync_directory(directory)
                file_system.sync_directory(self.path)
            log = load_log(
                self.services,
                directory,
                paths.METADATA_TOPIC,
                0,
                METADATA_TOPIC_ID,
                config,
                was_clean=False,
                may_cut=Cut.NOTHING if self._has_mark else may_cut,
                now_ms=now_ms,
            )
        except OSError as error:
            raise DiskFailure(directory, "open", error) from error
        self._metadata_log = log
        return log

    # Copies of replicas that are about to move here (KIP-113)

    @property
    def futures(self) -> dict[Replica, str]:
        """Every copy, which is not among ``replicas``, and the name of its folder."""
        return dict(self._futures)

    def future_log(self, topic: str, partition: int) -> PartitionLog | None:
        """The copy's log if it is open."""
        return self._future_logs.get((topic, partition))

    def future_topic_id(self, topic: str, partition: int) -> bytes | None:
        """The topic id that the copy was made for; None if none is stored.  Raises CorruptFile."""
        return read_topic_id(self.services.file_system, self._future_path((topic, partition)))

    def create_future_log(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, *, start: int, now_ms: int
    ) -> PartitionLog:
        """An empty copy whose first offset is ``start``.

        Raises ReplicaExists, also if the replica itself lies here, or DiskFailure.
        """
        replica = (topic, partition)
        name = paths.future_name(topic, partition, self._unique())
        directory = os.path.join(self.path, name)
        if replica in self._replicas or replica in self._futures:
            raise ReplicaExists(self._replica_path(topic, partition))
        try:
            log = self._create(directory, replica, topic_id, config, start, now_ms)
        except DiskFailure:
            self._remove_quietly(directory)
            raise
        self._futures[replica] = name
        self._future_logs[replica] = log
        return log

    def _remove_quietly(self, directory: str) -> None:
        """Remove what was begun in vain; what the disk does not let go is found by the next start."""
        try:
            self.services.file_system.remove_tree(directory)
        except OSError as error:
            self.services.report(f"{directory} is left behind: {error}")

    def open_future_log(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, *, now_ms: int
    ) -> PartitionLog:
        """The same as ``open_log`` for a copy."""
        replica = (topic, partition)
        log = self._future_logs.get(replica)
        if log is None:
            log = self._load(self._future_path(replica), replica, topic_id, config, now_ms)
            self._future_logs[replica] = log
        return log

    def promote_future_log(self, topic: str, partition: int) -> PartitionLog:
        """The copy, which is open, becomes the replica.  Raises DiskFailure.

        Its new name is on the device when ``sync`` has returned.
        """
        replica = (topic, partition)
        old, new = self._future_path(replica), self._replica_path(topic, partition)
        log = self._future_logs[replica]
        try:
            self.services.file_system.rename(old, new)
        except OSError as error:
            raise DiskFailure(old, "rename", error) from error
        log.note_renamed(new)
        self.services.removals.note_renamed(old, new)
        del self._futures[replica], self._future_logs[replica]
        self._replicas.add(replica)
        self._logs[replica] = log
        return log

    def delete_future_log(self, topic: str, partition: int, *, delay_ms: int = 60_000, now_ms: int) -> None:
        """Rename a copy away, as ``delete_log`` does with a replica."""
        replica = (topic, partition)
        log = self._future_logs.pop(replica, None)
        path = self._rename_away(self._future_path(replica), replica, paths.DELETE_MARK, log)
        del self._futures[replica]
        self.services.removals.add(path, now_ms + delay_ms)

    def set_aside_future(self, topic: str, partition: int) -> str:
        """Rename a copy that belongs to no replica, as ``set_aside`` does.  Return where."""
        replica = (topic, partition)
        log = self._future_logs.pop(replica, None)
        path = self._rename_away(self._future_path(replica), replica, paths.STRAY_MARK, log)
        del self._futures[replica]
        return path

    def _future_path(self, replica: Replica) -> str:
        return os.path.join(self.path, self._futures[replica])

    def sync(self) -> None:
        """Return when the names of all replicas are on the device.  Raises DiskFailure."""
        try:
            self.services.file_system.sync_directory(self.path)
        except OSError as error:
            raise DiskFailure(self.path, "flush", error) from error

    # The end of a replica

    def delete_log(self, topic: str, partition: int, *, delay_ms: int = 60_000, now_ms: int) -> None:
        """Rename the replica away at once; its files go when ``delay_ms`` have passed.

        Raises ReplicaNotFound or DiskFailure.
        """
        path = self._move_away(topic, partition, paths.DELETE_MARK)
        self.services.removals.add(path, now_ms + delay_ms)

    def set_aside(self, topic: str, partition: int) -> str | None:
        """Rename a replica that the cluster does not know to ``-stray``; it is kept.  Return where.

        None if there is nothing to keep: a process died while it made the folder, which is removed.
        Raises ReplicaNotFound or DiskFailure.
        """
        self._check_presence(topic, partition)
        if not self._is_unfinished(self._replica_path(topic, partition)):
            return self._move_away(topic, partition, paths.STRAY_MARK)
        self.services.removals.add(self._move_away(topic, partition, paths.DELETE_MARK), 0)
        return None

    def _is_unfinished(self, path: str) -> bool:
        """Neither a topic id is in it, which comes before the first record, nor any record."""
        file_system = self.services.file_system
        try:
            names = file_system.list_names(path)
            return paths.PARTITION_METADATA not in names and not any(
                file_system.file_size(os.path.join(path, name)) for name in names if paths.LOG in name
            )
        except OSError as error:
            raise DiskFailure(path, "read", error) from error

    def _move_away(self, topic: str, partition: int, mark: str) -> str:
        self._check_presence(topic, partition)
        replica = (topic, partition)
        log = self._logs.pop(replica, None)
        target = self._rename_away(self._replica_path(topic, partition), replica, mark, log)
        self._replicas.discard(replica)
        return target

    def _rename_away(self, path: str, replica: Replica, mark: str, log: PartitionLog | None) -> str:
        self._is_touched = True
        if log is not None:
            log.abandon()
        target = os.path.join(self.path, paths.marked_name(*replica, self._unique(), mark))
        try:
            self.services.file_system.rename(path, target)
        except OSError as error:
            raise DiskFailure(path, "rename", error) from error
        self._unrecovered.discard(replica)
        self._checkpoints.forget(replica)
        self._unrecoverable.pop(replica, None)
        return target

    def _unique(self) -> str:
        return f"{self.services.random_below(1 << 128):032x}"

    def _check_presence(self, topic: str, partition: int) -> None:
        if (topic, partition) not in self._replicas:
            raise ReplicaNotFound(topic, partition)

    def _replica_path(self, topic: str, partition: int) -> str:
        return os.path.join(self.path, paths.replica_name(topic, partition))

    # Checkpoints

    def begin_checkpoint(self) -> Callable[[], None]:
        """Recovery points and log starts as they are now; calling the answer writes them, in a thread.

        If a log was truncated, what the cleaner's checkpoint says of it goes back as well.
        """
        checkpoints = self._checkpoints
        names = [paths.RECOVERY_POINTS, paths.LOG_STARTS]
        for replica, log in self._open_logs():
            checkpoints.recovery_points[replica] = log.recovery_point
            cleaned = checkpoints.cleaner_offsets.get(replica)
            if cleaned is not None and log.lowest_cut is not None and cleaned > log.lowest_cut:
                # What is written there now was never cleaned.
                checkpoints.cleaner_offsets[replica] = log.lowest_cut
                names.append(paths.CLEANER_OFFSETS)
            log.lowest_cut = None
            if log.needs_stored_start:
                checkpoints.log_starts[replica] = log.log_start
            else:
                checkpoints.log_starts.pop(replica, None)
        return checkpoints.begin(*names)

    def _open_logs(self) -> list[tuple[Replica, PartitionLog]]:
        """Replicas and copies: of one partition there is one of them here."""
        return [*list(self._logs.items()), *list(self._future_logs.items())]  # threads may add to them

    def begin_high_watermark_checkpoint(self) -> Callable[[], None]:
        """The same for the high watermarks, which are due more often."""
        for replica, log in self._open_logs():
            self._checkpoints.high_watermarks[replica] = log.high_watermark
        return self._checkpoints.begin(paths.HIGH_WATERMARKS)

    def cleaner_offset(self, topic: str, partition: int) -> int | None:
        """Up to where the cleaner has been in a log; None if it never was."""
        offset = self._checkpoints.cleaner_offsets.get((topic, partition))
        log = self._logs.get((topic, partition))
        if offset is not None and log is not None and log.lowest_cut is not None:
            return min(offset, log.lowest_cut)
        return offset

    def note_cleaned(self, topic: str, partition: int, offset: int) -> None:
        """A log that has come here is clean below ``offset``; the next checkpoint says so."""
        self._checkpoints.cleaner_offsets[topic, partition] = offset

    def begin_cleaner_checkpoint(self, topic: str, partition: int, offset: int) -> Callable[[], None]:
        """The log is clean below ``offset``; calling the answer writes that down, in a thread."""
        replica = (topic, partition)
        if replica in self._replicas:
            self._checkpoints.cleaner_offsets[replica] = offset
        directory = self._replica_path(topic, partition)
        write_checkpoint = self._checkpoints.begin(paths.CLEANER_OFFSETS)

        def write() -> None:
            try:
                # First, lest the checkpoint outlive the renames that made the log clean.
                self.services.file_system.sync_directory(directory)
            except FileNotFoundError:
                return  # deleted meanwhile
            except OSError as error:
                raise DiskFailure(directory, "flush", error) from error
            write_checkpoint()

        return write

    # The end

    def close(
        self,
        *,
        broker_epoch: int = NO_BROKER_EPOCH,
        run_jobs: Callable[[list[FlushJob]], None] = run_in_turn,
        leaves_mark: bool = True,
    ) -> None:
        """Close every log, write the checkpoints, then the marker of a clean stop; let go of the lock.

        ``run_jobs`` runs all flushes, perhaps several at once.  Where nothing but the metadata log lies,
        no marker is to be left: Kafka would never take it away.  Raises DiskFailure, and then there is
        no marker: the next start recovers.
        """
        try:
            logs = [log for _, log in self._open_logs()]
            if self._metadata_log is not None:
                logs.append(self._metadata_log)
            self._close_logs(logs, run_jobs)
            self.begin_checkpoint()()
            self.begin_high_watermark_checkpoint()()
            if not leaves_mark:
                return
            if not self._unrecovered:
                write_clean_shutdown(self.services.file_system, self.path, broker_epoch)
                return
            self.services.report(
                f"{self.path} gets no mark of a clean stop, because {len(self._unrecovered)} of its logs "
                f"were not recovered, {paths.replica_name(*min(self._unrecovered))} among them: the next "
                "start recovers them all"
            )
        finally:
            self._lock.release()

    def _close_logs(self, logs: list[PartitionLog], run_jobs: Callable[[list[FlushJob]], None]) -> None:
        if len(logs) > _FSYNCED_ONE_BY_ONE_MAX:
            logs = self._close_many(logs)
        at_once = max(min(_CLOSED_AT_ONCE, self.services.descriptors.open_max // _FILES_PER_LOG), 1)
        for first in range(0, len(logs), at_once):
            some = logs[first : first + at_once]
            jobs = [log.begin_close() for log in some]
            run_jobs([job for job in jobs if job is not None])
            for log, job in zip(some, jobs, strict=True):
                log.finish_close(job)

    def _close_many(self, logs: list[PartitionLog]) -> list[PartitionLog]:
        """Close logs with one wait for the device; return those that are still to be fsynced one by one."""
        changed = [log for log in logs if log.begin_close_of_many()]
        if len(changed) <= _FSYNCED_ONE_BY_ONE_MAX:
            return changed
        try:
            if not self.services.file_system.sync_all([self.path, *[log.directory for log in changed]]):
                return changed
        except OSError as error:
            raise DiskFailure(self.path, "flush", error) from error
        for log in changed:
            log.finish_close_of_many()
        return []

    def abandon(self) -> None:
        """Let go of the lock, and leave the replicas as a crash would.

        If none was opened, made or moved, the mark of the last clean stop is put back: a start that
        fails, say because a port is in use, should not cost the next one a recovery.
        """
        try:
            if self._has_mark and not self._is_touched:
                if self._metadata_log is not None:
                    self._metadata_log.flush()  # whose end may be torn after an unclean stop only
                write_clean_shutdown(self.services.file_system, self.path, self.previous_broker_epoch)
        except DiskFailure as failure:
            self.services.report(f"{self.path} will be recovered by the next start: {failure}")
        finally:
            self._lock.release()


def _list_replicas(
    services: LogServices, path: str, now_ms: int
) -> tuple[list[Replica], dict[Replica, str], set[Replica]]:
    """Live replicas, copies with their folders, and deleted ones, which are taken up for removal.

    Raises UnexpectedDirectory.
    """
    replicas = []
    futures: dict[Replica, str] = {}
    deleted: set[Replica] = set()
    strays: list[str] = []
    unexpected: StorageError | None = None
    for name in services.file_system.list_directories(path):
        if name in (paths.METADATA_REPLICA, paths.REMOTE_INDEX_CACHE):
            continue
        if (replica := paths.parse_marked_name(name, paths.DELETE_MARK)) is not None:
            deleted.add(replica)
            services.removals.add(os.path.join(path, name), now_ms)
        elif paths.parse_marked_name(name, paths.STRAY_MARK) is not None:
            strays.append(os.path.join(path, name))
        elif (replica := paths.parse_marked_name(name, paths.FUTURE_MARK)) is not None:
            if replica in futures:
                unexpected = DuplicateReplica(os.path.join(path, name), os.path.join(path, futures[replica]))
            futures[replica] = name
        elif (replica := paths.parse_replica_name(name)) is not None:
            if name == paths.replica_name(*replica):
                replicas.append(replica)
            else:  # a copy that somebody has made, like backup-2026-01: no replica's folder has leading zeros
                strays.append(os.path.join(path, name))
        else:
            unexpected = UnexpectedDirectory(os.path.join(path, name))
    if unexpected is not None:
        raise unexpected
    if strays:  # in one line: every start tells of them, and they may be thousands
        others = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
        services.report(f"{strays[0]}{others}: kept, and not served, because there is no such topic")
    return replicas, futures, deleted
