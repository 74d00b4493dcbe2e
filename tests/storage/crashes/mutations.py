"""Mistakes that storage could make: each of them must make some history fail.

What none of the invariants sees would be a hole in them.
"""

import os
from collections.abc import Sequence
from typing import Any

import storage.cleaned_segments
import storage.loading
import storage.partition_log
import storage.recovery
from protocol.records.batch import RecordBatch
from storage import paths
from storage.cleaner import Cleanable, assess
from storage.compaction import Survivors, Transactions
from storage.directory_checkpoints import DirectoryCheckpoints
from storage.leader_epochs import LeaderEpochs
from storage.memory_filesystem import MemoryFile, MemoryFileSystem
from storage.offset_index import OffsetIndex
from storage.offset_map import OffsetMap
from storage.partition_log import FlushJob, PartitionLog
from storage.producer_snapshot import ProducerSnapshots
from storage.producer_state import ProducerState
from storage.segment import Segment
from storage.segments import first_untrusted
from storage.swaps import finish_swaps, mark_cleaned, unmark_swapped
from storage.time_index import TimeIndex
from storage.transaction_index import TransactionIndex
from tests.storage.crashes.histories import History, make_history, play
from tests.support.mistakes import Mistakes, Patch

MISTAKES = Mistakes()
mistake, made = MISTAKES.note, MISTAKES.made


def history_that_shows(name: str, tried_max: int) -> History | None:
    """The first one of so many that fails with a mistake, and not without it."""
    for number in range(tried_max):
        history = make_history(f"{name} {number}")
        with made(name):
            fails = play(history) is not None
        if fails and play(history) is None:
            return history
    return None


def nothing(*_: object, **__: object) -> None:
    """Forgets what is to be done."""


# Fsyncs


def _syncs_no(patch: Patch, suffix: str) -> None:
    right = MemoryFile.sync
    patch(MemoryFile, "sync", lambda file: None if file.path.endswith(suffix) else right(file))


@mistake
def logs_are_not_fsynced(patch: Patch) -> None:
    _syncs_no(patch, paths.LOG)


@mistake
def indexes_of_sealed_segments_are_not_fsynced(patch: Patch) -> None:
    _syncs_no(patch, "index")


@mistake
def checkpoints_are_not_fsynced(patch: Patch) -> None:
    _syncs_no(patch, ".tmp")


@mistake
def cleaned_segments_are_not_fsynced(patch: Patch) -> None:
    _syncs_no(patch, paths.CLEANED)


@mistake
def names_of_segments_are_not_fsynced(patch: Patch) -> None:
    right = MemoryFileSystem.sync_directory
    patch(
        MemoryFileSystem,
        "sync_directory",
        lambda memory, path: None if os.path.basename(path)[-2:] == "-0" else right(memory, path),
    )


@mistake
def the_name_of_a_new_log_is_not_fsynced(patch: Patch) -> None:
    right = FlushJob.__init__

    def init(job: FlushJob, log: PartitionLog) -> None:
        right(job, log)
        job._syncs_parent = False

    patch(FlushJob, "__init__", init)


@mistake
def a_stop_does_not_wait_for_the_disk(patch: Patch) -> None:
    patch(PartitionLog, "begin_close", lambda log: log._complete() and None)


# Checkpoints and marks


@mistake
def the_recovery_point_moves_too_far(patch: Patch) -> None:
    right = FlushJob.finish

    def finish(job: FlushJob) -> None:
        job.end_offset = job._log.log_end
        right(job)

    patch(FlushJob, "finish", finish)


@mistake
def the_recovery_point_stays_behind_a_cut(patch: Patch) -> None:
    right = PartitionLog.lower_recovery_point

    def lower_recovery_point(log: PartitionLog, offset: int) -> None:
        recovery_point = log.recovery_point
        right(log, offset)
        log.recovery_point = recovery_point

    patch(PartitionLog, "lower_recovery_point", lower_recovery_point)


@mistake
def a_cut_is_announced_when_it_is_made(patch: Patch) -> None:
    right = PartitionLog.lower_recovery_point

    def note_cut(log: PartitionLog, offset: int) -> None:
        log._give_up_swap()
        right(log, offset)

    patch(PartitionLog, "lower_recovery_point", nothing)
    patch(PartitionLog, "_note_cut", note_cut)


@mistake
def a_flush_forgets_that_the_log_was_cut_meanwhile(patch: Patch) -> None:
    right = FlushJob.finish

    def finish(job: FlushJob) -> None:
        job._cuts = job._log._cuts
        right(job)

    patch(FlushJob, "finish", finish)


@mistake
def log_starts_are_not_written_down(patch: Patch) -> None:
    _forgets_checkpoint(patch, paths.LOG_STARTS)


@mistake
def high_watermarks_are_not_written_down(patch: Patch) -> None:
    _forgets_checkpoint(patch, paths.HIGH_WATERMARKS)


def _forgets_checkpoint(patch: Patch, forgotten: str) -> None:
    right = DirectoryCheckpoints._write

    def write(checkpoints: DirectoryCheckpoints, name: str, content: bytes, number: int) -> None:
        if name != forgotten:
            right(checkpoints, name, content, number)

    patch(DirectoryCheckpoints, "_write", write)


@mistake
def the_mark_of_a_clean_stop_is_believed_for_ever(patch: Patch) -> None:
    right = MemoryFileSystem.remove
    patch(
        MemoryFileSystem,
        "remove",
        lambda memory, path: None if path.endswith(paths.CLEAN_SHUTDOWN) else right(memory, path),
    )


# Recovery


@mistake
def recovery_checks_no_crc(patch: Patch) -> None:
    patch(RecordBatch, "check_crc", nothing)


@mistake
def recovery_begins_one_segment_late(patch: Patch) -> None:
    def first(segments: list[Segment], recovery_point: int) -> int:
        return min(first_untrusted(segments, recovery_point) + 1, len(segments) - 1)

    patch(storage.recovery, "first_untrusted", first)


@mistake
def recovery_leaves_what_is_damaged(patch: Patch) -> None:
    patch(Segment, "cut", nothing)


@mistake
def recovery_keeps_segments_behind_a_damage(patch: Patch) -> None:
    right = Segment.mark_deleted

    def mark_deleted(segment: Segment, *values: Any) -> None:
        if not segment._is_loaded:
            return
        right(segment, *values)

    patch(Segment, "mark_deleted", mark_deleted)


@mistake
def swaps_are_undone_instead_of_finished(patch: Patch) -> None:
    def undo(services: Any, directory: str) -> list[str]:
        for name in services.file_system.list_names(directory):
            if name.endswith(paths.SWAP):
                services.file_system.remove(os.path.join(directory, name))
        return finish_swaps(services, directory)

    patch(storage.loading, "finish_swaps", undo)


# Cuts


@mistake
def offset_indexes_are_not_cut(patch: Patch) -> None:
    patch(OffsetIndex, "truncate_to", nothing)


@mistake
def time_indexes_are_not_cut(patch: Patch) -> None:
    patch(TimeIndex, "truncate_to", nothing)


@mistake
def transaction_indexes_are_not_cut(patch: Patch) -> None:
    patch(TransactionIndex, "truncate_to", nothing)


@mistake
def leader_epochs_are_not_cut(patch: Patch) -> None:
    patch(LeaderEpochs, "truncate_from_end", nothing)


@mistake
def producers_are_not_rebuilt_after_a_cut(patch: Patch) -> None:
    patch(PartitionLog, "_rebuild_producers", nothing)


@mistake
def snapshots_outlive_a_cut(patch: Patch) -> None:
    patch(ProducerSnapshots, "remove_above", nothing)


@mistake
def what_a_failed_write_left_stays(patch: Patch) -> None:
    patch(Segment, "_cut_overhang", nothing)


@mistake
def the_oldest_segments_go_last(patch: Patch) -> None:
    right = PartitionLog._drop

    def drop(log: PartitionLog, first: int, end: int, now_ms: int) -> None:
        for number in reversed(range(first, end)):
            right(log, number, number + 1, now_ms)

    patch(PartitionLog, "_drop", drop)


# What goes with an append


@mistake
def aborts_are_not_indexed(patch: Patch) -> None:
    patch(Segment, "note_aborted", nothing)


@mistake
def sealed_segments_do_not_say_how_old_they_are(patch: Patch) -> None:
    def seal(segment: Segment) -> None:
        segment.load()
        segment._store_indexes()
        segment._places.clear()

    patch(Segment, "seal", seal)


@mistake
def transactions_are_stable_at_once(patch: Patch) -> None:
    patch(ProducerState, "first_unstable", property(nothing))


# Compaction
#
# What goes wrong where a log is cut below what was cleaned is not among these: what the cleaner works on was
# replicated, and no history cuts off that of a compacted log, nor does the broker.


@mistake
def tombstones_go_at_once(patch: Patch) -> None:
    keep, latest_of = Survivors._keep, OffsetMap.latest_of
    patch(Survivors, "_keep", lambda survivors, batch, section, _: keep(survivors, batch, section, False))
    patch(
        OffsetMap, "latest_of", lambda offsets, batch, **_: latest_of(offsets, batch, with_tombstones=False)
    )


@mistake
def aborted_records_count_as_the_last_of_their_keys(patch: Patch) -> None:
    patch(storage.cleaned_segments, "Transactions", lambda _: Transactions(()))


@mistake
def undecided_records_are_compacted(patch: Patch) -> None:
    def assess_all(*values: Any, log_end: int, last_stable: int, **options: Any) -> Cleanable:
        return assess(*values, log_end=log_end, last_stable=log_end, **options)

    patch(storage.partition_log, "assess", assess_all)


@mistake
def producers_are_forgotten_by_compaction(patch: Patch) -> None:
    patch(Survivors, "_must_stay", lambda survivors, batch: batch.next_offset == survivors._high_watermark)


@mistake
def cleaned_segments_are_swapped_in_without_a_moment_as_swap_files(patch: Patch) -> None:
    right = PartitionLog._replace

    def replace(log: PartitionLog, bases: Sequence[int], now_ms: int) -> Segment:
        for segment in log._segments:
            if segment.base_offset in bases:
                segment.mark_deleted(log._services.removals, now_ms)
        mark_cleaned(log._services, log.directory, bases[0])
        return right(log, bases, now_ms)

    patch(storage.partition_log, "mark_cleaned", nothing)
    patch(PartitionLog, "_replace", replace)


@mistake
def a_swap_that_has_begun_is_finished_whatever_comes_between(patch: Patch) -> None:
    patch(PartitionLog, "_give_up_swap", nothing)


@mistake
def names_of_swap_files_are_not_fsynced(patch: Patch) -> None:
    patch(PartitionLog, "_sync_names", nothing)


@mistake
def a_swap_file_gets_its_plain_name_before_what_it_replaces_is_gone_for_good(patch: Patch) -> None:
    right = PartitionLog._replace

    def replace(log: PartitionLog, bases: Sequence[int], now_ms: int) -> Segment:
        cleaned = right(log, bases, now_ms)
        unmark_swapped(log._services, cleaned.files)
        return cleaned

    patch(PartitionLog, "_replace", replace)
