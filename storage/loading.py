"""A replica's files become a PartitionLog, here or after recovery."""

import os

from storage import paths
from storage.checkpoints import format_epochs, read_epochs
from storage.config import LogConfig
from storage.errors import CorruptFile, UnsupportedFormat
from storage.leader_epochs import LeaderEpochs
from storage.log_services import LogServices
from storage.partition_log import PartitionLog
from storage.producer_replay import load_producers
from storage.producer_snapshot import ProducerSnapshots
from storage.producer_state import ProducerState
from storage.recovery import Cut, recover_log
from storage.segment import Segment
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
    now_ms: int,
) -> PartitionLog:
    """Open the log in ``directory``; the offsets are those of the checkpoints, 0 where these say nothing.

    Unless ``was_clean``, the log is recovered first, from the recovery point on.  Otherwise little
    more than the directory and the tail of the last segment is read.  ``may_cut`` is for recovery.

    Raises OSError, CorruptFile, UnsupportedFormat.
    """
    producers: ProducerState | None = None
    names = finish_swaps(services, directory)
    epochs_path = os.path.join(directory, paths.LEADER_EPOCHS)
    if was_clean:
        try:
            segments, log_end = _find_segments(services, directory, names, config, log_start, now_ms)
            epochs = LeaderEpochs(read_epochs(services.file_system, epochs_path))
        except UnsupportedFormat:
            raise
        except CorruptFile as damage:
            services.report(f"{damage}, although the log was closed properly; it is recovered")
            was_clean = False
    if not was_clean:
        producers = recover_log(
            services,
            directory,
            config,
            recovery_point=recovery_point,
            log_start=log_start,
            may_cut=may_cut,
            now_ms=now_ms,
        )
        names = services.file_system.list_names(directory)
        segments, log_end = _find_segments(services, directory, names, config, log_start, now_ms)
        epochs = LeaderEpochs(read_epochs(services.file_system, epochs_path))
    snapshots = ProducerSnapshots(services.file_system, directory, names, services.report)
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
        segments.append(create_segment(services, directory, log_start, config, now_ms))
        segments[-1].seal()  # with the files that a closed log has
    segments[-1].load()
    log_start = max(log_start, segments[0].base_offset)
    recovery_point = log_end if was_clean else min(recovery_point, log_end)
    epochs.truncate_from_end(log_end)
    epochs.truncate_from_start(log_start)
    snapshots.remove_strays([segment.base_offset for segment in segments])
    if not was_clean:
        if epochs.changed:
            services.file_system.replace_file(epochs_path, format_epochs(epochs.entries), sync=False)
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
        is_recovered=not was_clean,
    )


def _find_segments(
    services: LogServices, directory: str, names: list[str], config: LogConfig, log_start: int, now_ms: int
) -> tuple[list[Segment], int]:
    """The segments, and the offset at which the last one ends.

    Raises CorruptFile if an index is missing or wrong, or the last segment ends inside a batch.
    """
    segments = list_segments(services, directory, names, config, now_ms)
    for segment in segments:
        if (damage := find_index_damage(services, segment, names)) is not None:
            raise damage
    return segments, segments[-1].read_next_offset() if segments else log_start


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
