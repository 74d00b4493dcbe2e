"""What is left of a log, in words: the same words for Kafka's files and for ours."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from protocol.records.batch import KNOWN_BITS, RecordBatch, read_batches
from protocol.records.control import read_end_transaction_marker
from protocol.records.record import Record

Files = Mapping[str, bytes]
"""Name -> content of what is in a log's folder."""

NOTHING = -1
INDEXES = (".index", ".timeindex", ".txnindex")


class Outcome(NamedTuple):
    """How a log is after a turn of the cleaner."""

    facts: dict[str, Any]
    """Where it begins and ends, what is known of its producers, and its leader epochs."""
    segments: dict[int, list[str]]
    """Base offset -> its batches."""
    files: dict[str, bytes]
    """The logs, with whatever compressed batches they have, and the indexes of all segments but the last."""


def outcome(facts: dict[str, Any], files: Files) -> Outcome:
    log_start = facts["log start"]
    if facts["clean up to"] <= log_start:
        facts["clean up to"] = NOTHING  # whatever the checkpoint says
    # Kafka may take the beginning of the batch that the log starts in.
    facts["last stable"] = max(facts["last stable"], log_start)
    logs = {int(name[:20]): content for name, content in sorted(files.items()) if name.endswith(".log")}
    return Outcome(
        facts,
        {base: [describe(batch) for batch in read_batches(content)] for base, content in logs.items()},
        {
            name: content
            for name, content in sorted(files.items())
            if name.endswith(".log") or (name.endswith(INDEXES) and int(name[:20]) < max(logs))
        },
    )


def describe(batch: RecordBatch) -> str:
    """Everything but the bytes, which depend on the compressor."""
    words = [f"{batch.base_offset}-{batch.last_offset} epoch {batch.partition_leader_epoch}"]
    if batch.codec_number:
        words.append(batch.compression.name.lower())
    if batch.timestamp_type:
        words.append("append time")
    if batch.producer_id >= 0:
        kind = "transactional " if batch.is_transactional else ""
        words.append(f"{kind}producer {batch.producer_id}/{batch.producer_epoch}/{batch.base_sequence}")
    if batch.is_control:
        words.append("control")
    if batch.has_delete_horizon:
        words.append("horizon")
    words.append(f"times {batch.base_timestamp} {batch.max_timestamp}")
    assert not batch.attributes & ~KNOWN_BITS
    records = [_describe_record(batch, record) for record in batch.records()]
    return f"{', '.join(words)}: {'; '.join(records) or 'empty'}"


def _describe_record(batch: RecordBatch, record: Record) -> str:
    marker = read_end_transaction_marker(record) if batch.is_control else None
    if marker is not None:
        return f"{'commit' if marker.is_commit else 'abort'} by {marker.coordinator_epoch}"
    key = "null" if record.key is None else repr(record.key.decode())
    value = "null" if record.value is None else _describe_value(record.value.decode())
    headers = "".join(f" with {name!r}={content!r}" for name, content in record.headers)
    return f"{record.offset} {key}={value}@{record.timestamp}{headers}"


def _describe_value(value: str) -> str:
    """Its number and its size: see ``Batches``."""
    number = value.lstrip(".")
    assert value == number.rjust(len(value), ".")
    return f"{number}/{len(value)}"


def differences(theirs: Outcome, ours: Outcome, suffixes: Sequence[str] = ()) -> list[str]:
    """In what ours is different.  Of the files that were kept, those with these suffixes must be the same."""
    found = [
        f"{name}: Kafka has {value}, we {ours.facts.get(name)}"
        for name, value in theirs.facts.items()
        if value != ours.facts.get(name)
    ]
    if list(theirs.segments) != list(ours.segments):
        return [*found, f"Kafka's segments begin at {list(theirs.segments)}, ours at {list(ours.segments)}"]
    for base, batches in theirs.segments.items():
        pairs = zip_longest(batches, ours.segments[base], fillvalue="nothing")
        found += [f"in segment {base}: Kafka has {k!r}, we {o!r}" for k, o in pairs if k != o][:1]
    if not found and theirs.files:
        names = sorted(set(theirs.files) | set(ours.files))
        for name in [name for name in names if name.endswith(tuple(suffixes))]:
            k, o = theirs.files.get(name), ours.files.get(name)
            if (k or b"") != (o or b""):
                found.append(f"{name}: Kafka has {_hex(k)}, we {_hex(o)}")
    return found


def _hex(content: bytes | None) -> str:
    return "no such file" if content is None else f"{len(content)} bytes {content.hex()}"
