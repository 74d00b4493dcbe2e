"""A replica's files become a PartitionLog, here or after recovery."""

import os

from storage import paths
from storage.checkpoints import read_epochs
from storage.config import LogConfig
from storage.errors import CorruptFile, UnsupportedFormat
from storage.leader_epochs import LeaderEpochs
from storage.log_services import LogServices
from storage.partition_log import PartitionLog
from storage.producer_replay import load_producers
from storage.producer_snapshot import ProducerSnapshots
from storage.producer_state import ProducerState
from storage.recovery import Cut, LogParts, recover_log
from storage.segments import create_segment, find_index_damage, first_untrusted, list_segments
from storage.swaps import finish_swaps


def load_log(
    services: LogServices,
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    *,
    was_clean: bool,
    recovery_point: int = 0,
    log_start: int = 0,
    high_watermark: int = 0,
    may_cut: Cut = Cut.EVERYTHING,
    recovery_max: int | None = None,
    recovered_producers: ProducerState | None = None,
    now_ms: int,
) -> PartitionLog:
    """Open the log in ``directory``; the offsets are those of the checkpoints, 0 where these say nothing.

    Unless ``was_clean``, the log is recovered first, from the recovery point on.  Otherwise little
    more than the directory and the tail of the last segment is read.  ``may_cut`` is for recovery, and so is
    ``recovery_max``, in bytes.  With ``recovered_producers`` all that was done already, elsewhere.

    Raises LargeRecovery, OSError, CorruptFile, UnsupportedFormat.
    """
    parts: LogParts | None = None
    if recovered_producers is None:
        names = finish_swaps(services, directory)
    else:
        names = services.file_system.list_names(directory)
        for name in names:
            if name.endswith(paths.DELETED):  # by recovery
                services.removals.add(os.path.join(directory, name), now_ms + config.file_delete_delay_ms)
    if was_clean or recovered_producers is not None:
        try:
            parts = _find_parts(services, directory, names, config, log_start, now_ms)
        except UnsupportedFormat:
            raise
        except CorruptFile as damage:
            if not was_clean:
                raise
            services.report(f"{damage}, although the log was closed properly; it is recovered")
            was_clean = False
            names = services.file_system.list_names(directory)
    if parts is None:
        parts = recover_log(
            services,
            directory,
            names,
            config,
            recovery_point=recovery_point,
            log_start=log_start,
            may_cut=may_cut,
            size_max=recovery_max,
            now_ms=now_ms,
        )
        recovered_producers = parts.producers
    segments, log_end, epochs, snapshots = parts.segments, parts.log_end, parts.leader_epochs, parts.snapshots
    producers = recovered_producers
    if not segments:
        # The old ones were deleted, and the name of a new one was lost: no offset is used a second time, but
        # the producers may be those of a log that was given up.
        log_end = max(log_start, recovery_point)
        snapshots.clear()
        producers = None
    if log_end < log_start:
        services.report(
            f"{directory} ends at offset {log_end}, but is known to start at {log_start}; "
            f"its segments are removed"
        )
        for segment in segments:
            segment.mark_deleted(services.removals, now_ms + config.file_delete_delay_ms)
        segments.clear()
        snapshots.clear()
        epochs.clear()
        producers = None
        log_end = log_start
    if not segments:
        segments.append(create_segment(services, directory, log_end, config, now_ms))
        segments[-1].seal()  # with the files that a closed log has
    segments[-1].load()
    log_start = max(log_start, segments[0].base_offset)
    recovery_point = log_end if was_clean else min(recovery_point, log_end)
    epochs.truncate_from_end(log_end)
    epochs.truncate_from_start(log_start)
    snapshots.remove_strays([segment.base_offset for segment in segments])
    if not was_clean:
        epochs.changed = True  # until the next flush has fsynced it
        snapshots.distrust()
    if producers is None:
        producers = ProducerState(log_end, expiration_ms=services.producer_expiration_ms)
        # A log that was closed without a snapshot has seen no producer: Kafka's rule, which spares a scan.
        if snapshots.newest is not None:
            load_producers(producers, snapshots, segments, log_start, log_end, now_ms)
    return PartitionLog(
        services,
        directory,
        topic,
        partition,
        topic_id,
        config,
        segments=segments,
        unsynced=() if was_clean else segments[first_untrusted(segments, recovery_point) : -1],
        leader_epochs=epochs,
        producers=producers,
        snapshots=snapshots,
        log_start=log_start,
        log_end=log_end,
        recovery_point=recovery_point,
        high_watermark=min(max(high_watermark, log_start), log_end),
        stored_epochs=None if was_clean else parts.stored_epochs,
        is_recovered=not was_clean,
    )


def _find_parts(
    services: LogServices, directory: str, names: list[str], config: LogConfig, log_start: int, now_ms: int
) -> LogParts:
    """The parts of a log that is complete on disk.

    Raises CorruptFile if an index is missing or wrong, the last segment ends inside a batch, or the list of
    epochs is damaged.
    """
    segments = list_segments(services, directory, names, config, now_ms)
    for segment in segments:
        if (damage := find_index_damage(services, segment, names)) is not None:
            raise damage
    log_end = segments[-1].read_next_offset() if segments else log_start
    epochs_path = os.path.join(directory, paths.LEADER_EPOCHS)
    epochs = LeaderEpochs(
        read_epochs(services.file_system, epochs_path) if paths.LEADER_EPOCHS in names else ()
    )
    snapshots = ProducerSnapshots(services.file_system, directory, names, services.report)
    return LogParts(segments, log_end, epochs, epochs.entries, snapshots)


def create_log(
    services: LogServices,
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    *,
    start: int = 0,
    now_ms: int,
) -> PartitionLog:
    """A new log whose first offset is ``start``, in a directory that holds no segment."""
    return PartitionLog(
        services,
        directory,
        topic,
        partition,
        topic_id,
        config,
        segments=[create_segment(services, directory, start, config, now_ms)],
        leader_epochs=LeaderEpochs(),
        producers=ProducerState(start, expiration_ms=services.producer_expiration_ms),
        snapshots=ProducerSnapshots(services.file_system, directory, (), services.report),
        log_start=start,
        log_end=start,
        recovery_point=start,
        high_watermark=start,
        is_new=True,
    )
