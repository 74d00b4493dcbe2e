"""Ranges of offsets with the same delivery state: how the state of a share partition is kept and merged."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final, NamedTuple

NO_START_OFFSET: Final = -1
"""A share partition of which nothing is known yet: its group's settings say where it starts."""


class DeliveryState(IntEnum):
    """What has become of a record; the numbers are those of the wire and of the log."""

    AVAILABLE = 0
    """Anybody may have it."""
    ACQUIRED = 1
    """A member has it.  Never stored: locks end with the broker that keeps them."""
    ACKNOWLEDGED = 2
    """Processed, and done with."""
    ARCHIVING = 3
    """Given up, and on its way to a dead letter queue (KIP-1191)."""
    ARCHIVED = 4
    """Given up: rejected, delivered too often, or not there."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing will change any more."""
        return self is DeliveryState.ACKNOWLEDGED or self is DeliveryState.ARCHIVED


class StateBatch(NamedTuple):
    """Offsets ``first_offset`` to ``last_offset``, both inclusive, and what has become of them."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def combine(known: Sequence[StateBatch], news: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Both lists as one without overlaps, in order; what lies below ``start_offset`` is left out.

    Where two overlap, the higher delivery count wins, and then the higher state.  ``known`` comes out of this
    function and is in order; what the news do not touch is not looked at again.
    """
    pruned = _from(news, start_offset)
    kept = _from(known, start_offset)
    if not pruned:
        return kept
    # One offset more on either side: what meets there may be one batch.
    low = min(batch.first_offset for batch in pruned) - 1
    high = max(batch.last_offset for batch in pruned) + 1
    begin = bisect_left(kept, low, key=_last_offset)
    end = begin
    while end < len(kept) and kept[end].first_offset <= high:
        end += 1
    return kept[:begin] + _sweep(kept[begin:end] + pruned) + kept[end:]


def _from(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _last_offset(batch: StateBatch) -> int:
    return batch.last_offset


def _sweep(batches: list[StateBatch]) -> list[StateBatch]:
    """Walk over the offsets at which a batch begins or ends; the strongest batch open there counts."""
    batches.sort()
    merged: list[StateBatch] = []
    open_batches: list[tuple[int, int, int]] = []  # negated count and state, last offset: strongest first
    position = 0
    offset = batches[0].first_offset
    while True:
        while position < len(batches) and batches[position].first_offset <= offset:
            batch = batches[position]
            heappush(open_batches, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            position += 1
        while open_batches and open_batches[0][2] < offset:
            heappop(open_batches)
        if not open_batches:
            if position == len(batches):
                return merged
            offset = batches[position].first_offset
            continue
        count, state, last_offset = open_batches[0]
        if position < len(batches):
            last_offset = min(last_offset, batches[position].first_offset - 1)
        _append(merged, StateBatch(offset, last_offset, -state, -count))
        offset = last_offset + 1


def _append(merged: list[StateBatch], batch: StateBatch) -> None:
    if merged:
        before = merged[-1]
        if before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
            merged[-1] = before._replace(last_offset=batch.last_offset)
            return
    merged.append(batch)
