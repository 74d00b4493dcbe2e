"""Producer state in a file, so that a restart need not read the log to know who wrote what.

Only the newest batch of a producer is kept: after a restart one duplicate is recognised, not five.
"""

import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from struct import Struct, error

from protocol.records.checksum import crc32c
from storage import paths
from storage.errors import CorruptFile
from storage.filesystem import FileSystem
from storage.paths import parse_offset_name
from storage.producer_state import NO_SEQUENCE, NO_TRANSACTION, ProducerBatch, ProducerEntry

VERSION = 1

_VERSION = Struct(">h")
_CRC = Struct(">I")
_CRC_POSITION = 2
_COVERED_POSITION = 6
_COUNT = Struct(">i")
_ENTRIES_POSITION = 10
_ENTRY = Struct(">qhiqiqiq")

_NO_OFFSET = -1
_SEQUENCES = 1 << 31


def encode_producer_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The content of ``<end offset>.snapshot``."""
    content = bytearray(_ENTRIES_POSITION)
    count = 0
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        content += _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            last.last_offset if last else _NO_OFFSET,
            last.last_offset - last.base_offset if last else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_start,
        )
        count += 1
    _VERSION.pack_into(content, 0, VERSION)
    _COUNT.pack_into(content, _COVERED_POSITION, count)
    _CRC.pack_into(content, _CRC_POSITION, crc32c(memoryview(content)[_COVERED_POSITION:]))
    return bytes(content)


def decode_producer_snapshot(path: str, content: bytes) -> list[ProducerEntry]:
    """Raises CorruptFile, naming ``path``, unless every byte is as it must be."""
    try:
        (version,) = _VERSION.unpack_from(content, 0)
        (stored_crc,) = _CRC.unpack_from(content, _CRC_POSITION)
        (count,) = _COUNT.unpack_from(content, _COVERED_POSITION)
    except error:
        raise CorruptFile(path, f"{len(content)} bytes are no producer snapshot") from None
    if version != VERSION:
        # Kafka, too, takes a snapshot of another version for a damaged one: the log says all that it did.
        raise CorruptFile(path, f"unknown version {version}")
    if crc32c(memoryview(content)[_COVERED_POSITION:]) != stored_crc:
        raise CorruptFile(path, "wrong CRC")
    if count < 0 or len(content) != _ENTRIES_POSITION + count * _ENTRY.size:
        raise CorruptFile(path, f"{count} entries do not take {len(content)} bytes")
    return [_read_entry(content, _ENTRIES_POSITION + index * _ENTRY.size) for index in range(count)]


def _read_entry(content: bytes, position: int) -> ProducerEntry:
    (
        producer_id,
        producer_epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        transaction_start,
    ) = _ENTRY.unpack_from(content, position)
    entry = ProducerEntry(
        producer_id,
        producer_epoch,
        coordinator_epoch,
        timestamp,
        transaction_start if transaction_start >= 0 else NO_TRANSACTION,
    )
    if last_offset >= 0:
        first_sequence = NO_SEQUENCE
        if last_sequence != NO_SEQUENCE:
            first_sequence = (last_sequence - offset_delta) % _SEQUENCES
        entry.batches.append(
            ProducerBatch(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp)
        )
    return entry


class ProducerSnapshots:
    """The ``.snapshot`` files of one log; each holds the state of all batches below its offset."""

    __slots__ = ("_directory", "_file_system", "_offsets", "_report", "_writes", "unsynced")

    def __init__(
        self,
        file_system: FileSystem,
        directory: str,
        names: Iterable[str],
        report: Callable[[str], None],
    ) -> None:
        self._file_system = file_system
        self._directory = directory
        self._report = report
        found = (parse_offset_name(name, paths.PRODUCER_SNAPSHOT) for name in names)
        self._offsets = sorted(offset for offset in found if offset is not None)
        self._writes = 0
        self.unsynced: dict[int, int] = {}
        """Offset -> which write it was, of those that no fsync has covered yet."""

    @property
    def newest(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    def path(self, offset: int) -> str:
        return os.path.join(self._directory, paths.offset_name(offset) + paths.PRODUCER_SNAPSHOT)

    def note_renamed(self, directory: str) -> None:
        """The files are in this folder now."""
        self._directory = directory

    def write(self, offset: int, entries: Iterable[ProducerEntry]) -> None:
        """Replace the snapshot at ``offset``; it is not fsynced."""
        self._file_system.replace_file(self.path(offset), encode_producer_snapshot(entries), sync=False)
        if offset not in self._offsets:
            insort(self._offsets, offset)
        self._writes += 1
        self.unsynced[offset] = self._writes

    def distrust(self) -> None:
        """Take it that no snapshot is on the device."""
        for offset in self._offsets:
            self._writes += 1
            self.unsynced[offset] = self._writes

    def note_synced(self, synced: Mapping[int, int]) -> None:
        """These, a copy of ``unsynced`` from before the fsync, are on the device."""
        for offset, write in synced.items():
            if self.unsynced.get(offset) == write:
                del self.unsynced[offset]

    def load_newest(self, end_offset: int) -> tuple[list[ProducerEntry], int] | None:
        """What the newest readable snapshot at or below ``end_offset`` holds, and its offset.

        One that is damaged, or of an unknown version, is removed and the next older one tried.
        """
        for offset in reversed(self._offsets[: bisect_left(self._offsets, end_offset + 1)]):
            path = self.path(offset)
            try:
                return decode_producer_snapshot(path, self._file_system.read_file(path)), offset
            except CorruptFile as damage:
                self._report(f"{damage}; it is removed, and an older one or the log is read instead")
                self.remove(offset)
        return None

    def remove(self, offset: int) -> None:
        """Nothing happens if there is no such snapshot."""
        if offset in self._offsets:
            self._file_system.remove(self.path(offset))
            self._offsets.remove(offset)
            self.unsynced.pop(offset, None)

    def between(self, lower: int, upper: int) -> list[int]:
        """Offsets of those that lie above ``lower`` and below ``upper``."""
        return self._offsets[bisect_right(self._offsets, lower) : bisect_left(self._offsets, upper)]

    def remove_above(self, offset: int) -> None:
        for above in self._offsets[bisect_left(self._offsets, offset + 1) :]:
            self.remove(above)

    def remove_strays(self, bases: Iterable[int]) -> None:
        """Remove those that belong to no segment, except the newest if it lies above the last base."""
        kept = set(bases)
        last = max(kept, default=-1)
        newest = self.newest
        for offset in list(self._offsets):
            if offset not in kept and not (offset == newest and offset > last):
                self.remove(offset)

    def clear(self) -> None:
        for offset in list(self._offsets):
            self.remove(offset)
