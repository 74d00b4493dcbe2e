"""Snapshots of the metadata log: one file holds an image, and replaces the records before its end.

``00000000000000000042-0000000003.checkpoint`` covers the offsets below 42, of which the last has leader
epoch 3.  The one named 0-0 is how the directory was formatted; it covers nothing.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from broker.metadata.records import VersionedRecord
from broker.raft.batches import (
    KRaftNotes,
    build_control_batch,
    build_values_batch,
    quorum_records,
    read_metadata_batch,
    snapshot_footer,
    snapshot_header,
)
from broker.raft.voters import VoterSet
from protocol.errors import DecodeError
from protocol.records.batch import read_batches
from protocol.schema import Message
from protocol.stored.metadata_records import encode_metadata_record
from storage import paths
from storage.errors import CorruptFile
from storage.filesystem import FileSystem

BATCH_BYTES: Final = 1 << 20
"""A snapshot's batch is closed when it has grown so far: few batches, but none near what readers refuse."""


class SnapshotId(NamedTuple):
    """What a snapshot covers: everything below ``end_offset``, whose last record has ``epoch``."""

    end_offset: int
    epoch: int

    @property
    def name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{paths.SNAPSHOT}"


BOOTSTRAP: Final = SnapshotId(0, 0)


class Snapshot(NamedTuple):
    """The content of a snapshot file."""

    notes: KRaftNotes
    batches: list[list[Message]]
    timestamp_ms: int
    """Of the last record that it covers; -1 if it does not say."""


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """What a file covers by its name; None if it is not a finished snapshot's."""
    found = paths.parse_snapshot_name(name)
    return None if found is None else SnapshotId(*found)


def list_snapshots(file_system: FileSystem, directory: str) -> list[SnapshotId]:
    """All finished snapshots but the bootstrap one, oldest first."""
    names = file_system.list_names(directory)
    found = [parse_snapshot_name(name) for name in names]
    return sorted(snapshot for snapshot in found if snapshot is not None and snapshot != BOOTSTRAP)


def remove_leftovers(file_system: FileSystem, directory: str) -> None:
    """Remove snapshots that were not finished, or were marked as deleted, when the process ended."""
    for name in file_system.list_names(directory):
        if name.endswith((paths.SNAPSHOT_PART, paths.SNAPSHOT + paths.DELETED)):
            file_system.remove(os.path.join(directory, name))


def read_snapshot(file_system: FileSystem, directory: str, snapshot: SnapshotId) -> Snapshot:
    """Raises CorruptFile if it is damaged or was not finished."""
    path = os.path.join(directory, snapshot.name)
    return parse_snapshot(path, file_system.read_file(path))


def parse_snapshot(path: str, data: bytes) -> Snapshot:
    """The snapshot whose file at ``path`` holds ``data``."""
    notes = KRaftNotes()
    batches = []
    position = 0
    try:
        for batch in read_batches(data):
            batch.check_crc()
            position += batch.size_bytes
            if batch.is_control:
                notes = notes.updated(batch)
            else:
                batches.append(read_metadata_batch(batch))
    except DecodeError as error:  # damaged, or of a version that we do not know
        raise CorruptFile(path, f"at byte {position}: {error}") from error
    if position != len(data) or notes.header is None or not notes.has_footer:
        raise CorruptFile(path, f"the snapshot ends early, at byte {position}")
    return Snapshot(notes, batches, notes.header.last_contained_log_timestamp)


def build_snapshot(
    records: Iterable[VersionedRecord],
    snapshot: SnapshotId,
    *,
    kraft_version: int,
    voters: VoterSet,
    last_timestamp_ms: int,
    now_ms: int,
) -> Iterator[bytearray]:
    """The batches of a snapshot file, in order.  Offsets in it begin at 0."""
    opening = [snapshot_header(last_timestamp_ms), *quorum_records(kraft_version, voters)]
    yield build_control_batch(opening, base_offset=0, epoch=snapshot.epoch, now_ms=now_ms)
    offset = len(opening)
    values: list[bytes] = []
    size_bytes = 0
    for record, version in records:
        value = encode_metadata_record(record, version)
        values.append(value)
        size_bytes += len(value)
        if size_bytes >= BATCH_BYTES:
            yield build_values_batch(values, base_offset=offset, epoch=snapshot.epoch, now_ms=now_ms)
            offset += len(values)
            values = []
            size_bytes = 0
    if values:
        yield build_values_batch(values, base_offset=offset, epoch=snapshot.epoch, now_ms=now_ms)
        offset += len(values)
    yield build_control_batch([snapshot_footer()], base_offset=offset, epoch=snapshot.epoch, now_ms=now_ms)


def write_snapshot(
    file_system: FileSystem,
    directory: str,
    snapshot: SnapshotId,
    batches: Iterable[bytes | bytearray],
    *,
    unique: str,
) -> int:
    """Write a file that is there whole or not at all; return its size in bytes.

    ``unique`` tells this attempt from others.  May run in a thread.
    """
    path = os.path.join(directory, snapshot.name)
    part = f"{path.removesuffix(paths.SNAPSHOT)}-{unique}{paths.SNAPSHOT_PART}"
    file = file_system.open(part, create=True)
    position = 0
    for batch in batches:
        file.pwrite(batch, position)
        position += len(batch)
    file.sync()
    file_system.rename(part, path)
    file_system.sync_directory(directory)
    return position
