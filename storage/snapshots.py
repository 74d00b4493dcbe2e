"""Snapshots of the metadata log: ``.checkpoint`` files beside its segments (KIP-630).

What stands in them is the business of whoever writes: here they are bytes with a name.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from protocol.records.batch import RecordBatch
from storage import paths
from storage.errors import DiskFailure
from storage.file_range import FileRange
from storage.filesystem import Buffer, FileSystem
from storage.removals import Removals
from storage.stored_batches import read_stored_batches


class SnapshotId(NamedTuple):
    """All records below ``end_offset``, the last of them written in ``epoch``."""

    end_offset: int
    epoch: int


BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)
"""What formatting left: initial voters and feature levels.  Never sent to others, and no history."""


def snapshot_name(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}{paths.SNAPSHOT}"


def parse_snapshot_name(name: str) -> SnapshotId | None:
    """None for anything but a finished snapshot."""
    stem = name.removesuffix(paths.SNAPSHOT)
    end_offset, dash, epoch = stem.partition("-")
    if len(stem) == len(name) or not dash or not (stem.isascii() and (end_offset + epoch).isdigit()):
        return None
    return SnapshotId(int(end_offset), int(epoch))


class SnapshotWriter:
    """A snapshot being written, under a name that no reader takes for finished.  Raises DiskFailure."""

    def __init__(self, file_system: FileSystem, path: str, part_path: str) -> None:
        """For ``Snapshots.create``."""
        self.size_bytes = 0
        self._file_system = file_system
        self._path = path
        self._part_path = part_path
        self._file = file_system.open(part_path, create=True)

    def append(self, data: Buffer) -> None:
        """Add bytes at the end."""
        try:
            self._file.pwrite(data, self.size_bytes)
        except OSError as error:
            raise DiskFailure(self._part_path, "write", error) from error
        self.size_bytes += len(data)

    def finish(self) -> None:
        """Give it its name.  It is on the device on return: do this in a thread."""
        try:
            self._file.sync()
            self._file_system.rename(self._part_path, self._path)
            self._file_system.sync_directory(os.path.dirname(self._path))
        except OSError as error:
            raise DiskFailure(self._part_path, "finish", error) from error

    def abandon(self) -> None:
        """Remove what was written so far."""
        try:
            self._file_system.remove(self._part_path)
        except FileNotFoundError:
            pass


class Snapshots:
    """The snapshots in the metadata log's directory."""

    def __init__(
        self,
        file_system: FileSystem,
        directory: str,
        removals: Removals,
        *,
        random_below: Callable[[int], int],
    ) -> None:
        """Finds those that are there, and removes what a crash left unfinished or marked as deleted."""
        self.directory = directory
        self._file_system = file_system
        self._removals = removals
        self._random_below = random_below
        self._ids: list[SnapshotId] = []
        try:
            for name in file_system.list_names(directory):
                if name.endswith((paths.SNAPSHOT_PART, paths.SNAPSHOT + paths.DELETED)):
                    file_system.remove(os.path.join(directory, name))
                elif (snapshot := parse_snapshot_name(name)) is not None:
                    self._ids.append(snapshot)
        except OSError as error:
            raise DiskFailure(directory, "read", error) from error
        self._ids.sort()

    @property
    def ids(self) -> list[SnapshotId]:
        """Oldest first, the bootstrap snapshot included."""
        return list(self._ids)

    @property
    def latest(self) -> SnapshotId | None:
        return self._ids[-1] if self._ids else None

    def path(self, snapshot: SnapshotId) -> str:
        return os.path.join(self.directory, snapshot_name(snapshot))

    def create(self, snapshot: SnapshotId) -> SnapshotWriter:
        """Begin to write one; after ``finish`` pass it to ``add``."""
        path = self.path(snapshot)
        unique = self._random_below(1 << 63)
        part_path = f"{path.removesuffix(paths.SNAPSHOT)}-{unique}{paths.SNAPSHOT_PART}"
        try:
            return SnapshotWriter(self._file_system, path, part_path)
        except OSError as error:
            raise DiskFailure(part_path, "create", error) from error

    def add(self, snapshot: SnapshotId) -> None:
        """A snapshot has got its name."""
        if snapshot not in self._ids:
            self._ids.append(snapshot)
            self._ids.sort()

    def open(self, snapshot: SnapshotId) -> FileRange:
        """The whole file.  Raises KeyError if there is no such snapshot, or DiskFailure."""
        if snapshot not in self._ids:
            raise KeyError(snapshot)
        try:
            file = self._file_system.open(self.path(snapshot))
            return FileRange(file, 0, file.size(), snapshot.end_offset)
        except OSError as error:
            raise DiskFailure(self.path(snapshot), "read", error) from error

    def read_batches(self, snapshot: SnapshotId) -> Iterator[RecordBatch]:
        """Every batch, its CRC checked.  Raises KeyError, CorruptLog, CorruptRecords or DiskFailure."""
        whole = self.open(snapshot)
        for _, batch in read_stored_batches(whole.file, 0, whole.size_bytes):
            batch.check_crc()
            yield batch

    def remove(self, snapshot: SnapshotId, *, due_ms: int) -> None:
        """Mark it as deleted; the file goes when ``due_ms`` is past.  Raises DiskFailure."""
        self._ids.remove(snapshot)
        try:
            self._removals.mark_file(self.path(snapshot), due_ms)
        except OSError as error:
            raise DiskFailure(self.path(snapshot), "rename", error) from error
