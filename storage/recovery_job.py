"""Recovery of a log in another process: what that is told, and what it answers.

The files are the result, as a closed log has them.  Only the producers' state goes back as well, because
the files remember one batch of each producer, and recovery has seen five.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from storage.config import LogConfig
from storage.log_services import LogServices
from storage.producer_state import ProducerBatch, ProducerEntry, ProducerState
from storage.recovery import complete, recover_log
from storage.swaps import finish_swaps

Say = Callable[[dict[str, Any]], None]


class RecoveryJob(NamedTuple):
    """All that the worker process is told of a log."""

    directory: str
    recovery_point: int
    log_start: int
    """Both as the checkpoints say."""
    now_ms: int
    producer_expiration_ms: int
    segment_index_bytes: int
    index_interval_bytes: int


def run_recovery(services: LogServices, job: RecoveryJob, say: Say) -> None:
    """Do the job, saying ``{"checked": bytes}`` meanwhile and ``{"recovered": …}`` in the end.

    Raises OSError, CorruptFile, UnsupportedFormat.
    """
    services.producer_expiration_ms = job.producer_expiration_ms
    config = LogConfig(
        segment_index_bytes=job.segment_index_bytes, index_interval_bytes=job.index_interval_bytes
    )
    parts = recover_log(
        services,
        job.directory,
        finish_swaps(services, job.directory),
        config,
        recovery_point=job.recovery_point,
        log_start=job.log_start,
        note_checked=lambda size: say({"checked": size}),
        now_ms=job.now_ms,
    )
    complete(services, job.directory, parts)
    say({"recovered": None if parts.producers is None else pack_producers(parts.producers)})


def pack_producers(producers: ProducerState) -> dict[str, Any]:
    """The state as JSON can carry it."""
    return {
        "end_offset": producers.end_offset,
        "decided": list(producers.decided.items()),
        "entries": [
            [
                entry.producer_id,
                entry.producer_epoch,
                entry.coordinator_epoch,
                entry.last_timestamp,
                entry.transaction_start,
                entry.batches,
            ]
            for entry in producers.entries.values()
        ],
    }


def unpack_producers(packed: dict[str, Any], job: RecoveryJob, *, now_ms: int) -> ProducerState:
    """The state that ``pack_producers`` was given, without what has expired meanwhile."""
    producers = ProducerState(expiration_ms=job.producer_expiration_ms)
    entries = []
    for *facts, batches in packed["entries"]:
        entry = ProducerEntry(*facts)
        entry.batches = [ProducerBatch(*batch) for batch in batches]
        entries.append(entry)
    producers.load(entries, packed["end_offset"], now_ms)
    producers.decided.update(map(tuple, packed["decided"]))
    return producers
