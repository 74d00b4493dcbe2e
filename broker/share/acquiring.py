"""Which of the records that a fetch has read its member may have, and in what pieces it is told of them."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.share.in_flight import InFlightBatch, Run
from broker.share.state_batches import DeliveryState

if TYPE_CHECKING:
    from broker.share.partition import SharePartition

LAST_ATTEMPT_ALONE_ABOVE: Final = 2
"""With a higher limit of deliveries, a record's last delivery is one of that record alone."""

THROTTLED_DELIVERIES_MIN: Final = 2
"""After so many deliveries, or half of the limit if that is more, a batch is delivered in smaller and smaller
parts, so that the record which nobody can process is found."""


class AcquireMode(IntEnum):
    """Whether a fetch keeps whole batches together or counts records (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class Offsets(NamedTuple):
    """Of a batch in the log, both inclusive."""

    first_offset: int
    last_offset: int


class Acquired(NamedTuple):
    """Records that a member holds from now on."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1


class Acquiring:
    """One fetch of one member from a share partition.

    What is in flight and available comes first, in the order of offsets, and then what nobody has had yet.
    """

    def __init__(
        self,
        partition: "SharePartition",
        member_id: str,
        mode: AcquireMode,
        batch_size: int,
        fetched: Sequence[Offsets],
        deadline_ms: int,
    ) -> None:
        self.found: list[Acquired] = []
        self._partition = partition
        self._member_id = member_id
        self._counts_records = mode is AcquireMode.RECORD_LIMIT
        self._batch_size = batch_size
        self._fetched = fetched
        self._deadline_ms = deadline_ms

    def acquire(self, fetch_offset: int, last_offset: int, left: int) -> None:
        """Acquire up to ``left`` records, the last at ``last_offset``; whole batches may be more."""
        partition = self._partition
        fetched_from = base_offset = self._fetched[0].first_offset
        partition.archive_stale(fetch_offset, base_offset)
        window = partition.open_gap_window
        if window is not None and fetch_offset <= window.gap_start_offset:
            partition.close_gap_to(base_offset)  # the log has nothing before that
        floor = partition.in_flight.floor(base_offset)
        if floor is not None and floor.last_offset >= base_offset:
            base_offset = floor.first_offset
        known = partition.in_flight.beginning_within(base_offset, last_offset)
        new_from = max(base_offset, partition.start_offset)
        if not known:
            self._acquire_new(new_from, last_offset, left)
            return
        for batch in known:
            if left <= 0:
                break
            if partition.open_gap_window is not None and new_from < batch.first_offset:
                left -= self._acquire_new(new_from, batch.first_offset - 1, left)
                if left <= 0:
                    break
            new_from = max(batch.last_offset + 1, new_from)
            is_throttled = self._is_throttled(batch, fetched_from, last_offset)
            if is_throttled and self.found:
                left = 0
                break
            count = self._acquire_known(batch, fetched_from, last_offset, left, is_throttled=is_throttled)
            left -= count
            if is_throttled and count:
                left = 0
                break
        if left > 0 and new_from <= last_offset:
            self._acquire_new(new_from, last_offset, left)
        if self.found:
            partition.close_gap_to(self.found[-1].last_offset + 1)

    # What is in flight

    def _acquire_known(
        self, batch: InFlightBatch, first_offset: int, last_offset: int, left: int, *, is_throttled: bool
    ) -> int:
        """Acquire what is available of a batch; returns how many records."""
        is_whole = (
            batch.lies_within(first_offset, last_offset)
            and not batch.is_split
            and not is_throttled
            and not (self._counts_records and batch.last_offset - batch.first_offset + 1 > left)
        )
        if not batch.is_split and not batch.whole.is_available:
            return 0
        if not is_whole:
            batch.is_split = True
            return self._acquire_parts(batch, first_offset, last_offset, left)
        run = batch.whole
        self._hold(run)
        self.found.append(Acquired(run.first_offset, run.last_offset, run.delivery_count))
        return run.record_count

    def _acquire_parts(self, batch: InFlightBatch, first_offset: int, last_offset: int, left: int) -> int:
        limit = self._partition.settings.delivery_count_limit
        throttled_from = _throttled_from(limit)
        throttled_max: int | None = None
        found: list[Acquired] = []
        count = 0
        for run in batch.within(max(first_offset, batch.first_offset), min(last_offset, batch.last_offset)):
            if not run.is_available:
                continue
            is_last_attempt = limit > LAST_ATTEMPT_ALONE_ABOVE and run.delivery_count == limit - 1
            if is_last_attempt and count:
                break
            if run.delivery_count >= throttled_from and throttled_max is None:
                size = batch.last_offset - batch.first_offset + 1
                throttled_max = max(1, size >> (run.delivery_count - throttled_from + 1))
            wanted = run.record_count
            if is_last_attempt:
                wanted = 1
            if self._counts_records:
                wanted = min(wanted, left - count)
            if throttled_max is not None and count < throttled_max:
                wanted = min(wanted, throttled_max - count)
            if wanted < run.record_count:
                batch.cut(run.first_offset + wanted)
            self._hold(run)
            _join(found, Acquired(run.first_offset, run.last_offset, run.delivery_count))
            count += wanted
            if is_last_attempt or count == throttled_max or (self._counts_records and count == left):
                break
        self.found += found
        return count

    def _is_throttled(self, batch: InFlightBatch, first_offset: int, last_offset: int) -> bool:
        """Whether something available of it was delivered so often that the batch is taken apart."""
        throttled_from = _throttled_from(self._partition.settings.delivery_count_limit)
        return any(
            run.is_available
            and run.delivery_count >= throttled_from
            and (not batch.is_split or (run.last_offset >= first_offset and run.first_offset <= last_offset))
            for run in batch.runs
        )

    def _hold(self, run: Run) -> None:
        run.acquire(self._member_id)
        self._partition.lock(run, self._deadline_ms)

    # What is new

    def _acquire_new(self, first_offset: int, last_offset: int, left: int) -> int:
        """Acquire records that were not in flight; returns how many."""
        partition = self._partition
        if not partition.in_flight and partition.end_offset > first_offset:
            first_offset = partition.end_offset
        if first_offset > last_offset:
            return 0
        if left < last_offset - first_offset + 1:
            asked_last = last_offset
            last_offset = self._end_of_batch_at(first_offset + left - 1)
            if partition.open_gap_window is not None:
                last_offset = min(last_offset, asked_last)
        if self._counts_records and last_offset - first_offset + 1 > left:
            self._insert(first_offset, last_offset, first_offset + left - 1)
            held_last = first_offset + left - 1
        else:
            for begin, end in self._pieces(first_offset, last_offset):
                self._insert(begin, end, end)
            held_last = last_offset
        if partition.in_flight.first_offset == first_offset:
            partition.start_offset = first_offset
        partition.end_offset = max(partition.end_offset, last_offset)
        partition.close_gap_to(held_last + 1)
        return held_last - first_offset + 1

    def _insert(self, first_offset: int, last_offset: int, held_last: int) -> None:
        """One batch more in flight, held up to ``held_last``."""
        run = Run(first_offset, last_offset, DeliveryState.AVAILABLE, 0)
        batch = InFlightBatch(run)
        self._partition.in_flight.insert(batch)
        if held_last < last_offset:
            batch.is_split = True
            batch.cut(held_last + 1)
            self._partition.may_be_available = True
        self._hold(run)
        self.found.append(Acquired(first_offset, held_last, run.delivery_count))

    def _pieces(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int]]:
        """Cut at the ends of fetched batches, so that each piece has the batch size or more."""
        if not self._counts_records and last_offset - first_offset + 1 > self._batch_size:
            for batch in self._fetched:
                if batch.first_offset > last_offset:
                    break
                if batch.first_offset - first_offset >= max(self._batch_size, 1):
                    yield first_offset, batch.first_offset - 1
                    first_offset = batch.first_offset
        yield first_offset, last_offset

    def _end_of_batch_at(self, offset: int) -> int:
        """The last offset of the fetched batch that holds ``offset``; itself if none does."""
        for batch in self._fetched:
            if batch.first_offset <= offset <= batch.last_offset:
                return batch.last_offset
        return offset


def without(found: Sequence[Acquired], batch: Offsets) -> Iterator[Acquired]:
    """What is left of ``found`` outside of ``batch``."""
    for each in found:
        if each.last_offset < batch.first_offset or each.first_offset > batch.last_offset:
            yield each
            continue
        if each.first_offset < batch.first_offset:
            yield each._replace(last_offset=batch.first_offset - 1)
        if each.last_offset > batch.last_offset:
            yield each._replace(first_offset=batch.last_offset + 1)


def _throttled_from(delivery_count_limit: int) -> int:
    return max(THROTTLED_DELIVERIES_MIN, -(-delivery_count_limit // 2))


def _join(found: list[Acquired], more: Acquired) -> None:
    if found:
        before = found[-1]
        if before.last_offset + 1 == more.first_offset and before.delivery_count == more.delivery_count:
            found[-1] = before._replace(last_offset=more.last_offset)
            return
    found.append(more)
