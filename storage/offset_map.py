"""Where each key was written last, for as many keys as memory allows."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import cast

from protocol.records.batch import RecordBatch
from protocol.records.keys import SHORT_KEY_MAX, Keys

NOT_FOUND = -1

_DIGEST_SIZE = 16


class OffsetMap:
    """Key -> offset of its last record, for at most ``entries_max`` keys.

    Long keys are told apart by a digest, as in Kafka, so that memory does not depend on their length.
    """

    __slots__ = ("_has_risen", "_latest", "_marks", "entries_max", "first_offset", "latest_offset")

    def __init__(self, entries_max: int, first_offset: int = 0) -> None:
        self.entries_max = entries_max
        self.first_offset = first_offset
        """Records below do not count."""
        self.latest_offset = NOT_FOUND
        """Up to here the map knows everything; records behind are kept whatever their key."""
        self._latest: dict[bytes | int, int] = {}
        """Key -> mark, which is twice the offset, and one more if the record has no value."""
        self._marks: array[int] | None = None
        """All marks, ascending, once they are asked for."""
        self._has_risen = True
        """Whether each offset was above those before, so that a mark tells which record is meant."""

    def __len__(self) -> int:
        return len(self._latest)

    def put(self, key: bytes, offset: int, *, is_tombstone: bool = False) -> bool:
        """Note where ``key`` was written last so far; False if the map is full, which ends the pass."""
        if len(self._latest) >= self.entries_max:
            return False
        self._latest[_short(key)] = offset << 1 | is_tombstone
        self.latest_offset = offset
        return True

    def put_all(self, batch: RecordBatch, keys: Keys) -> bool:
        """Note all records of a batch; False if the map is full, which ends the pass."""
        base = batch.base_offset
        deltas = keys.offset_deltas
        is_gapless = isinstance(deltas, range)
        if base <= self.latest_offset or not (
            len(deltas) <= batch.last_offset_delta + 1
            if is_gapless
            else _rise(deltas, batch.last_offset_delta)
        ):
            self._has_risen = False
        if (
            is_gapless
            and base >= self.first_offset
            and not keys.has_null
            and len(self._latest) + len(deltas) <= self.entries_max
        ):
            marks: Sequence[int] = range(base << 1, base + len(deltas) << 1, 2)
            if keys.tombstones:
                marks = list(marks)
                for index in keys.tombstones:
                    marks[index] |= 1
            self._latest.update(zip(_all_short(keys), marks, strict=True))
        elif not self._put_one_by_one(base, keys):
            return False
        if batch.last_offset >= self.first_offset:
            self.advance(batch.last_offset)
        return True

    def _put_one_by_one(self, base_offset: int, keys: Keys) -> bool:
        tombstones = set(keys.tombstones)
        for index, (key, delta) in enumerate(zip(keys.keys, keys.offset_deltas, strict=True)):
            offset = base_offset + delta
            if key is None or offset < self.first_offset:
                continue
            if not self.put(key, offset, is_tombstone=index in tombstones):
                return False
        return True

    def advance(self, offset: int) -> None:
        """Everything up to ``offset``, inclusive, has been noted."""
        self.latest_offset = max(self.latest_offset, offset)

    def get(self, key: bytes) -> int:
        """-1 if the key was not seen."""
        return self._latest.get(_short(key), NOT_FOUND) >> 1

    def has_none_of(self, keys: Keys) -> bool:
        """Whether no record's key was seen."""
        return self._latest.keys().isdisjoint(_all_short(keys))

    def knows_all_of(self, batch: RecordBatch) -> bool:
        """Whether every record of the batch was noted, at its place, so that ``latest_of`` may be asked."""
        return (
            self._has_risen
            and self.first_offset <= batch.base_offset
            and batch.last_offset <= self.latest_offset
            and batch.record_count == batch.last_offset_delta + 1
        )

    def latest_of(self, batch: RecordBatch, *, with_tombstones: bool) -> tuple[Sequence[int], bool]:
        """Which records of such a batch are the last of their keys, and whether tombstones are among them.

        Records are counted from 0.
        """
        if self._marks is None:
            self._marks = array("q", sorted(self._latest.values()))
        first = bisect_left(self._marks, batch.base_offset << 1)
        end = min(first + batch.record_count, len(self._marks))
        end = bisect_left(self._marks, batch.next_offset << 1, first, end)
        if first == end:
            return (), False
        marks: Sequence[int] = self._marks[first:end]
        has_tombstone = any(mark & 1 for mark in marks)
        if has_tombstone and not with_tombstones:
            marks = [mark for mark in marks if not mark & 1]
            has_tombstone = False
        if len(marks) == batch.record_count:
            return range(batch.record_count), has_tombstone
        return [(mark >> 1) - batch.base_offset for mark in marks], has_tombstone


def _rise(deltas: Sequence[int], last_delta: int) -> bool:
    """Whether offset deltas, of which there is one at least, rise from 0 or more to this one or less."""
    return deltas[0] >= 0 and deltas[-1] <= last_delta and all(map(int.__lt__, deltas, deltas[1:]))


def _short(key: bytes) -> bytes | int:
    """What is remembered of a key; of a long one an integer, which cannot be mistaken for another key."""
    if len(key) <= SHORT_KEY_MAX:
        return key
    return int.from_bytes(blake2b(key, digest_size=_DIGEST_SIZE).digest())


def _all_short(keys: Keys) -> Iterable[bytes | int]:
    """The same of all keys of a batch, none of which is null."""
    whole = cast(list[bytes], keys.keys)
    return map(_short, whole) if keys.has_long else whole
