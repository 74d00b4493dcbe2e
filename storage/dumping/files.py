"""Finds out by its name what a file is, and shows what is in it."""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from protocol.stored.decoding import METADATA_TOPIC, TOPICS
from protocol.uuids import uuid_to_text
from storage import offset_index, paths, time_index, transaction_index
from storage.checkpoints import read_epochs, read_offsets
from storage.dumping.logs import Moved, damage_item, dump_log
from storage.dumping.values import Item
from storage.errors import CorruptFile, StorageError
from storage.filesystem import FileSystem
from storage.node_files import (
    parse_properties,
    read_clean_shutdown,
    read_meta_properties,
    read_quorum_state,
    read_topic_id,
)
from storage.producer_snapshot import decode_producer_snapshot
from storage.transaction_index import AbortedTransaction
from storage.verification.entries import EntryFile
from storage.verification.log_dir import CHECKPOINTS, OLD_BOOTSTRAP
from storage.verification.read_only import open_to_read, reason_of

AUTO = "auto"
DECODERS = {
    "offsets": "__consumer_offsets",
    "transactions": "__transaction_state",
    "share": "__share_group_state",
    "metadata": METADATA_TOPIC,
}
"""Names of what records can be decoded as, and the topics that have such records."""

_TRANSIENT = (paths.DELETED, paths.CLEANED, paths.SWAP, paths.SNAPSHOT_PART.removeprefix(paths.SNAPSHOT))


class Wanted(NamedTuple):
    """What is to be shown of logs."""

    shows_records: bool = False
    decoder: str | None = AUTO
    """One of ``DECODERS``, ``AUTO`` for what the folder's name says, None for bytes as they are."""


class UnknownFile(StorageError):
    """A name that no file of a log directory has."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not named like a file of a log directory")


Show = Callable[[FileSystem, str, Wanted, Moved], Iterator[Item]]


def dump_file(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    """The items of a file; where it is damaged, what can be read and what is wrong.

    Raises UnknownFile.
    """
    show = _find(os.path.basename(path))
    if show is None:
        raise UnknownFile(path)
    try:
        yield from show(file_system, path, wanted, moved)
    except OSError as error:
        yield damage_item(f"cannot be read: {error.strerror or error}", None)
    except StorageError as error:
        yield damage_item(reason_of(error), None)


def _find(name: str) -> Show | None:
    for suffix in _TRANSIENT:
        name = name.removesuffix(suffix)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in CHECKPOINTS:
        return _dump_offsets
    if name.endswith(paths.SNAPSHOT):
        return _dump_metadata_snapshot
    for suffix, show in _BY_SUFFIX.items():
        # A copy may have a shorter name; Kafka's tool takes it, too.
        full_name = name.rjust(len(paths.offset_name(0) + suffix), "0")
        if name != suffix and paths.parse_offset_name(full_name, suffix) is not None:
            return show
    return None


def topic_of(path: str, decoder: str | None) -> str | None:
    """The internal topic whose records a log has; None if there is nothing to decode."""
    if decoder is None:
        return None
    if decoder != AUTO:
        return DECODERS[decoder]
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    for mark in (paths.DELETE_MARK, paths.STRAY_MARK, paths.FUTURE_MARK):
        marked = paths.parse_marked_name(folder, mark)
        if marked is not None:
            folder = paths.replica_name(*marked)
    replica = paths.parse_replica_name(folder)
    return replica[0] if replica is not None and replica[0] in TOPICS else None


def _base_offset(path: str) -> int:
    return int(os.path.basename(path).partition(".")[0])


# Logs


def _dump_segment(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    file = open_to_read(file_system, path)
    topic = topic_of(path, wanted.decoder)
    yield from dump_log(
        file, _base_offset(path), shows_records=wanted.shows_records, topic=topic, moved=moved
    )


def _dump_metadata_snapshot(
    file_system: FileSystem, path: str, wanted: Wanted, moved: Moved
) -> Iterator[Item]:
    file = open_to_read(file_system, path)
    topic = None if wanted.decoder is None else METADATA_TOPIC
    yield from dump_log(file, 0, shows_records=True, topic=topic, moved=moved)


# Indexes


def _dump_offset_index(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    base = _base_offset(path)
    entries = EntryFile(open_to_read(file_system, path), offset_index.ENTRY)
    yield from _dump_entries(
        entries,
        lambda entry: {"kind": "offsetIndexEntry", "offset": base + entry[0], "position": entry[1]},
        lambda last, entry: last[0] < entry[0] and last[1] < entry[1],
        moved,
    )


def _dump_time_index(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    base = _base_offset(path)
    entries = EntryFile(open_to_read(file_system, path), time_index.ENTRY)
    yield from _dump_entries(
        entries,
        lambda entry: {"kind": "timeIndexEntry", "timestamp": entry[0], "offset": base + entry[1]},
        lambda last, entry: last[0] < entry[0] and last[1] <= entry[1],
        moved,
    )


def _dump_transaction_index(
    file_system: FileSystem, path: str, wanted: Wanted, moved: Moved
) -> Iterator[Item]:
    entries = EntryFile(open_to_read(file_system, path), transaction_index.ENTRY)
    yield from _dump_entries(
        entries,
        lambda entry: {"kind": "abortedTransaction", "version": entry[0], **_aborted(entry)},
        lambda last, entry: last[3] < entry[3],
        moved,
    )


def _aborted(entry: tuple[Any, ...]) -> Item:
    aborted = AbortedTransaction(*entry[1:])
    return {
        "producerId": aborted.producer_id,
        "firstOffset": aborted.first_offset,
        "lastOffset": aborted.last_offset,
        "lastStableOffset": aborted.last_stable,
    }


def _dump_entries(
    entries: EntryFile,
    show: Callable[[tuple[Any, ...]], Item],
    may_follow: Callable[[tuple[Any, ...], tuple[Any, ...]], bool],
    moved: Moved,
) -> Iterator[Item]:
    last: tuple[Any, ...] | None = None
    size = entries.position(1)
    for number, entry in enumerate(entries):
        at = entries.position(number)
        if not any(entry) and (number or entries.count > 1) and entries.is_zero_from(number):
            yield {"kind": "padding", "position": at, "size": entries.size_bytes - at}
            return
        yield show(entry)
        if last is not None and not may_follow(last, entry):
            yield damage_item(f"entry {number} does not follow the one before it", at)
        last = entry
        moved(size)
    if entries.rest:
        yield damage_item(
            f"the last {entries.rest} bytes are no whole entry", entries.position(entries.count)
        )


# Small files


def _dump_producers(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    for entry in decode_producer_snapshot(path, file_system.read_file(path)):
        last = entry.batches[-1] if entry.batches else None
        yield {
            "kind": "producer",
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.transaction_start if entry.transaction_start >= 0 else None,
            "lastTimestamp": entry.last_timestamp,
            "firstSequence": last.first_sequence if last else None,
            "lastSequence": last.last_sequence if last else None,
            "lastOffset": last.last_offset if last else None,
            "offsetDelta": last.last_offset - last.base_offset if last else None,
        }


def _dump_epochs(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    _check_presence(file_system, path)
    for epoch, start in read_epochs(file_system, path):
        yield {"kind": "leaderEpoch", "epoch": epoch, "startOffset": start}


def _dump_offsets(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    _check_presence(file_system, path)
    for (topic, partition), offset in read_offsets(file_system, path).items():
        yield {"kind": "checkpoint", "topic": topic, "partition": partition, "offset": offset}


def _check_presence(file_system: FileSystem, path: str) -> None:
    """A list that does not exist is as good as an empty one, but not for who asked for it."""
    open_to_read(file_system, path)


def _dump_properties(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    try:
        text = file_system.read_file(path).decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptFile(path, "not a text file") from None
    yield {"kind": "properties", **parse_properties(text)}
    read_meta_properties(file_system, os.path.dirname(path))


def _dump_topic_id(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    _check_presence(file_system, path)
    topic_id = read_topic_id(file_system, os.path.dirname(path))
    assert topic_id is not None
    yield {"kind": "partitionMetadata", "topicId": uuid_to_text(topic_id)}


def _dump_quorum_state(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    _check_presence(file_system, path)
    state = read_quorum_state(file_system, os.path.dirname(path))
    assert state is not None
    item: Item = {
        "kind": "quorumState",
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "dataVersion": state.data_version,
    }
    if state.data_version:
        item["votedDirectoryId"] = uuid_to_text(state.voted_directory_id)
    else:
        item["currentVoters"] = list(state.voters)
    yield item


def _dump_clean_mark(file_system: FileSystem, path: str, wanted: Wanted, moved: Moved) -> Iterator[Item]:
    _check_presence(file_system, path)
    yield {"kind": "cleanShutdown", "brokerEpoch": read_clean_shutdown(file_system, os.path.dirname(path))}


_BY_NAME: dict[str, Show] = {
    paths.LEADER_EPOCHS: _dump_epochs,
    paths.META_PROPERTIES: _dump_properties,
    paths.PARTITION_METADATA: _dump_topic_id,
    paths.QUORUM_STATE: _dump_quorum_state,
    paths.CLEAN_SHUTDOWN: _dump_clean_mark,
    OLD_BOOTSTRAP: _dump_metadata_snapshot,
}

_BY_SUFFIX: dict[str, Show] = {
    paths.LOG: _dump_segment,
    paths.OFFSET_INDEX: _dump_offset_index,
    paths.TIME_INDEX: _dump_time_index,
    paths.TRANSACTION_INDEX: _dump_transaction_index,
    paths.PRODUCER_SNAPSHOT: _dump_producers,
}
