"""A share partition: which records of a partition a share group has in flight, and who holds them."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from broker.share.acquiring import Acquired, AcquireMode, Acquiring, Offsets, without
from broker.share.in_flight import NOBODY, DeadLetter, InFlight, InFlightBatch, Run, Transition
from broker.share.state_batches import DeliveryState, StateBatch
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError


class AcknowledgeType(IntEnum):
    """What a member says of a record; the numbers are those of the wire."""

    GAP = 0
    """There is no record for the client at this offset."""
    ACCEPT = 1
    RELEASE = 2
    """Somebody may try again."""
    REJECT = 3
    RENEW = 4
    """Go on holding it (KIP-1222)."""


_STATE_AFTER: Final = {
    AcknowledgeType.GAP: DeliveryState.ARCHIVED,
    AcknowledgeType.ACCEPT: DeliveryState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: DeliveryState.AVAILABLE,
    AcknowledgeType.REJECT: DeliveryState.ARCHIVED,
}


class ShareSettings(NamedTuple):
    """What a share group goes by; times in ms."""

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    record_locks_max: int = 2_000
    renew_is_enabled: bool = True
    has_dead_letter_queue: bool = False


class Acknowledgement(NamedTuple):
    """One type for all offsets of the range, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class GapWindow:
    """Offsets between stored batches of which the log said nothing, since nobody had acquired them.

    It closes when the end offset moves: from then on whatever is not in flight is behind the end.
    """

    __slots__ = ("end_offset", "gap_start_offset")

    def __init__(self, end_offset: int, gap_start_offset: int) -> None:
        self.end_offset = end_offset
        self.gap_start_offset = gap_start_offset


class SharePartition:
    """The records in flight of one share partition, and the rules by which they move.

    Neither clock nor log inside.  ``acknowledge`` and ``release`` begin a ``Transition``: whoever keeps the
    partition stores it and calls ``finish``.  A record is held by at most one member at a time, until its
    lock ends; it leaves when everything before it is acknowledged or archived, which is how
    ``start_offset``, which never goes back, moves on.

    ``end_offset`` is the last offset that was acquired so far, or the next one if nothing is in flight.
    """

    def __init__(self, settings: ShareSettings) -> None:
        self.settings = settings
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        """Records at or behind the start offset that are acknowledged or archived."""
        self.in_flight = InFlight()
        self.may_be_available = False
        """Whether something in flight may be available; otherwise new records come next."""
        self._gap_window: GapWindow | None = None
        self._locks: list[tuple[int, int, InFlightBatch]] = []
        self._pushed = 0

    def load(self, start_offset: int, state_epoch: int, stored: Sequence[StateBatch]) -> list[DeadLetter]:
        """Begin with what is stored; ValueError if that cannot be.

        Returns what was on its way to the dead letter queue, and has to be sent there again.
        """
        self.start_offset = self.end_offset = start_offset
        self.state_epoch = state_epoch
        dead_letters = []
        gap_start_offset: int | None = None
        next_offset = start_offset
        for batch in stored:
            if batch.first_offset < start_offset or batch.last_offset < batch.first_offset:
                raise ValueError(f"the stored batch {batch} cannot follow the start offset {start_offset}")
            if gap_start_offset is None and batch.first_offset > next_offset:
                gap_start_offset = next_offset
            next_offset = batch.last_offset + 1
            state = DeliveryState(batch.delivery_state)
            run = Run(batch.first_offset, batch.last_offset, state, batch.delivery_count)
            self.in_flight.insert(InFlightBatch(run))
            if state.is_terminal:
                self.delivery_complete_count += run.record_count
            elif state is DeliveryState.ARCHIVING:
                is_rejected = batch.delivery_count < self.settings.delivery_count_limit
                dead_letters.append(
                    DeadLetter(batch.first_offset, batch.last_offset, batch.delivery_count, is_rejected)
                )
        if self.in_flight:
            self.may_be_available = True
            self.end_offset = self.in_flight.last_offset
            if gap_start_offset is not None:
                self._gap_window = GapWindow(self.end_offset, gap_start_offset)
            self._move_start_offset()
        return dead_letters

    # What can be had

    @property
    def in_flight_count(self) -> int:
        """How many offsets lie between the first that is not done and the last that was acquired."""
        return self.end_offset - self.start_offset + 1 if self.in_flight else 0

    @property
    def next_fetch_offset(self) -> int:
        """Where the next record to be acquired is looked for."""
        if not self.in_flight or self.start_offset > self.in_flight.last_offset:
            self.may_be_available = False
            return self.end_offset
        if self.may_be_available:
            found = self._first_available()
            if found is not None:
                return found
            self.may_be_available = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        window = self.open_gap_window
        # What lies below the start offset has been given up, whether anybody looked at it or not.
        gap_start_offset = -1 if window is None else max(window.gap_start_offset, self.start_offset)
        for batch in self.in_flight.batches:
            if window is not None:
                if batch.first_offset > gap_start_offset:
                    return gap_start_offset
                gap_start_offset = max(batch.last_offset + 1, gap_start_offset)
            for run in batch.runs:
                if run.is_available:
                    return run.first_offset
        return None

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch may find something: new records only while few enough are in flight."""
        return (
            self.next_fetch_offset != self.end_offset + 1
            or self.in_flight_count < self.settings.record_locks_max
        )

    # Acquiring

    def acquire(
        self,
        member_id: str,
        mode: AcquireMode,
        batch_size: int,
        records_max: int,
        fetch_offset: int,
        fetched: Sequence[Offsets],
        aborted: Iterable[Offsets],
        now_ms: int,
    ) -> list[Acquired]:
        """Let a member hold what it may have of the batches that were read from ``fetch_offset`` on.

        ``batch_size`` is how many new records are handed out as one; ``aborted`` are the batches of aborted
        transactions among those that were fetched, if the group does not want them: they are archived.
        """
        if records_max <= 0 or not fetched or fetched[-1].last_offset < self.start_offset:
            return []
        last_offset = fetched[-1].last_offset
        left = min(records_max, self.settings.record_locks_max - self.in_flight_count)
        if left <= 0:
            if fetch_offset > self.end_offset:
                return []
            left = min(records_max, self.end_offset - fetch_offset + 1)
            last_offset = min(last_offset, self.end_offset)
        acquiring = Acquiring(
            self, member_id, mode, batch_size, fetched, now_ms + self.settings.record_lock_duration_ms
        )
        acquiring.acquire(fetch_offset, last_offset, left)
        found = acquiring.found
        for batch in aborted:
            self._archive(batch.first_offset, batch.last_offset, DeliveryState.ACQUIRED, counts=True)
            found = list(without(found, batch))
        return found

    # Letting go

    def acknowledge(
        self, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int
    ) -> Transition:
        """What a member says of records that it holds; all of it counts, or KafkaError and nothing does.

        Locks that are renewed stay so in any case.
        """
        transition = Transition()
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last_offset >= self.start_offset:
                    self._acknowledge(member_id, acknowledgement, transition, now_ms)
        except KafkaError:
            self._roll_back(transition, now_ms)
            raise
        return transition

    def _acknowledge(
        self, member_id: str, asked: Acknowledgement, transition: Transition, now_ms: int
    ) -> None:
        for batch in self._acknowledged_batches(asked):
            if batch.last_offset < self.start_offset:
                continue
            if not batch.is_split:
                _check_holder(batch.whole, member_id)
            is_simple = (
                batch.lies_within(asked.first_offset, asked.last_offset)
                and len(asked.types) == 1
                and not batch.contains_after_first(self.start_offset)
            )
            if batch.is_split or not is_simple:
                if not batch.is_split:
                    if batch.whole.state is not DeliveryState.ACQUIRED:
                        raise _wrong_state(
                            "The batch cannot be acknowledged. The subset batch is not in the acquired state."
                        )
                    batch.is_split = True
                self._acknowledge_parts(batch, member_id, asked, transition, now_ms)
            else:
                if batch.whole.state is not DeliveryState.ACQUIRED:
                    raise _wrong_state(
                        "The batch cannot be acknowledged. The batch is not in the acquired state."
                    )
                self._let_go(batch.whole, asked.types[0], transition, now_ms)

    def _acknowledged_batches(self, asked: Acknowledgement) -> list[InFlightBatch]:
        floor = self.in_flight.floor(asked.first_offset)
        if floor is None and asked.first_offset < self.start_offset <= asked.last_offset:
            floor = self.in_flight.floor(self.start_offset)
        if floor is None:
            raise _wrong_state(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        batches = self.in_flight.beginning_within(floor.first_offset, asked.last_offset)
        if batches[-1].last_offset < asked.first_offset:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Batch record not found. The first offset in request is past acquired records.",
            )
        if asked.last_offset > batches[-1].last_offset:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Batch record not found. The last offset in request is past acquired records.",
            )
        return batches

    def _acknowledge_parts(
        self,
        batch: InFlightBatch,
        member_id: str,
        asked: Acknowledgement,
        transition: Transition,
        now_ms: int,
    ) -> None:
        for first_offset, last_offset, kind in _parts(asked):
            low, high = max(first_offset, self.start_offset), min(last_offset, batch.last_offset)
            if high < max(low, batch.first_offset):
                continue
            for run in batch.within(low, high):
                if run.state is not DeliveryState.ACQUIRED:
                    raise _wrong_state("The offset cannot be acknowledged. The offset is not acquired.")
                if run.member_id != member_id:
                    raise _wrong_state("Member is not the owner of offset")
                self._let_go(run, kind, transition, now_ms)

    def _let_go(self, run: Run, kind: int, transition: Transition, now_ms: int) -> None:
        if kind == AcknowledgeType.RENEW:
            if not self.settings.renew_is_enabled:
                raise _wrong_state("Renewing acquisition locks is not enabled for the group.")
            self.lock(run, now_ms + self.settings.record_lock_duration_ms)
            return
        is_rejected = kind == AcknowledgeType.REJECT and self.settings.has_dead_letter_queue
        state = DeliveryState.ARCHIVING if is_rejected else _STATE_AFTER[AcknowledgeType(kind)]
        self._begin(run, state, transition, is_rejected=is_rejected)

    def release(self, member_id: str) -> Transition:
        """A member's session has ended: others may have what it holds."""
        transition = Transition()
        for batch in self.in_flight.batches:
            if batch.is_split or (
                batch.whole.member_id == member_id and batch.contains_after_first(self.start_offset)
            ):
                batch.is_split = True
                batch.cut(self.start_offset)
            for run in batch.runs:
                if run.state is DeliveryState.ACQUIRED and run.member_id == member_id:
                    self._begin(run, self._state_of_released(run), transition, is_rejected=False)
        return transition

    def _begin(self, run: Run, state: DeliveryState, transition: Transition, *, is_rejected: bool) -> None:
        state = self._state_after(run, state)
        if state is DeliveryState.ARCHIVING:
            transition.dead_letters.append(
                DeadLetter(run.first_offset, run.last_offset, run.delivery_count, is_rejected)
            )
        transition.begin(run, state)
        if state.is_terminal:
            self.delivery_complete_count += self._count_from_start(run.first_offset, run.last_offset)

    def _state_of_released(self, run: Run) -> DeliveryState:
        """Nobody can have records that lie below the start offset."""
        return DeliveryState.ARCHIVED if run.last_offset < self.start_offset else DeliveryState.AVAILABLE

    def _state_after(self, run: Run, state: DeliveryState) -> DeliveryState:
        """What was delivered often enough does not become available again."""
        if state is DeliveryState.AVAILABLE and run.delivery_count >= self.settings.delivery_count_limit:
            if self.settings.has_dead_letter_queue:
                return DeliveryState.ARCHIVING
            return DeliveryState.ARCHIVED
        return state

    def finish(self, transition: Transition, now_ms: int, *, is_stored: bool) -> list[DeadLetter]:
        """The log has taken a transition, or refused it.  Returns what has to go to the dead letter queue."""
        if not is_stored:
            self._roll_back(transition, now_ms)
            return []
        for run in transition.commit():
            if run.state is DeliveryState.AVAILABLE:
                self.may_be_available = True
        self._move_start_offset()
        return transition.dead_letters

    def _roll_back(self, transition: Transition, now_ms: int) -> None:
        for run in transition.roll_back(now_ms, self.settings.delivery_count_limit):
            if run.state is DeliveryState.AVAILABLE:
                self.may_be_available = True
            elif run.state is DeliveryState.ACQUIRED and run.deadline_ms is not None:
                self.lock(run, run.deadline_ms)
        # The log may have lost them meanwhile: Kafka's would ask for them again and again.
        self._archive(0, self.start_offset - 1, DeliveryState.AVAILABLE, counts=False)
        self._count_complete()

    def _count_complete(self) -> None:
        self.delivery_complete_count = sum(
            self._count_from_start(run.first_offset, run.last_offset)
            for run in self.in_flight.runs()
            if run.state.is_terminal
        )

    def _count_from_start(self, first_offset: int, last_offset: int) -> int:
        return max(last_offset - max(first_offset, self.start_offset) + 1, 0)

    # Time

    def lock(self, run: Run, deadline_ms: int) -> None:
        """Let whoever holds ``run`` hold it until then."""
        run.deadline_ms = deadline_ms
        batch = self.in_flight.floor(run.first_offset)
        assert batch is not None, "what is locked is in flight"
        self._pushed += 1  # breaks ties, so that batches are never compared
        # The batch, not the run: what is cut off from a run has the same lock.
        heapq.heappush(self._locks, (deadline_ms, self._pushed, batch))

    def deadline_ms(self) -> int | None:
        """When the next lock ends."""
        locks = self._locks
        while locks:
            deadline_ms, _, batch = locks[0]
            if any(_is_held_until(run, deadline_ms) for run in batch.runs):
                return deadline_ms
            heapq.heappop(locks)
        return None

    def expire(self, now_ms: int) -> tuple[list[StateBatch], list[DeadLetter]]:
        """End the locks that are over at ``now_ms``: what is to be stored, and what goes to the dead letters.

        The records are free at once, whatever becomes of the writing; then ``settle``.
        """
        stored: list[StateBatch] = []
        dead_letters: list[DeadLetter] = []
        while (deadline_ms := self.deadline_ms()) is not None and deadline_ms <= now_ms:
            batch = heapq.heappop(self._locks)[2]
            if batch.contains_after_first(self.start_offset):
                batch.is_split = True
                batch.cut(self.start_offset)
            for run in batch.runs:
                if _is_held_until(run, deadline_ms):
                    self._expire(run, stored, dead_letters)
        return stored, dead_letters

    def _expire(self, run: Run, stored: list[StateBatch], dead_letters: list[DeadLetter]) -> None:
        run.state = self._state_after(run, self._state_of_released(run))
        run.member_id = NOBODY
        run.deadline_ms = None
        stored.append(run.as_stored())
        if run.state is DeliveryState.ARCHIVING:
            dead_letters.append(DeadLetter(run.first_offset, run.last_offset, run.delivery_count, False))
        elif run.state is DeliveryState.AVAILABLE:
            self.may_be_available = True
        else:
            self.delivery_complete_count += self._count_from_start(run.first_offset, run.last_offset)

    def settle(self) -> None:
        """What ``expire`` has let go is stored: the start offset may move."""
        self._move_start_offset()

    # Giving up

    def archive_dead(self, dead: DeadLetter) -> StateBatch:
        """The dead letter queue has taken these, or will not: what is to be stored; then ``settle``."""
        self._archive(dead.first_offset, dead.last_offset, DeliveryState.ARCHIVING, counts=True)
        return StateBatch(dead.first_offset, dead.last_offset, DeliveryState.ARCHIVED, dead.delivery_count)

    def move_to(self, log_start_offset: int) -> None:
        """The log begins behind the start offset: whatever was available before is archived.

        Members keep what they hold, until they let go of it.
        """
        if log_start_offset <= self.start_offset:
            return
        if not self.in_flight:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        if self._archive(self.start_offset, log_start_offset - 1, DeliveryState.AVAILABLE, counts=False):
            self.may_be_available = True
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        self._count_complete()

    def archive_stale(self, fetch_offset: int, base_offset: int) -> None:
        """The log has nothing from ``fetch_offset`` to ``base_offset``, where compaction has been."""
        if fetch_offset < base_offset and self._archive(
            fetch_offset, base_offset - 1, DeliveryState.AVAILABLE, counts=True
        ):
            self.may_be_available = True

    def _archive(self, first_offset: int, last_offset: int, state: DeliveryState, *, counts: bool) -> bool:
        """Archive what is in ``state`` between these offsets; whether there was anything."""
        found = False
        for batch in self.in_flight.overlapping(first_offset, last_offset):
            if not batch.is_split and batch.whole.state is not state:
                continue
            if not batch.lies_within(first_offset, last_offset):
                batch.is_split = True
            for run in batch.within(first_offset, last_offset):
                if run.state is state:
                    run.archive()
                    found = True
                    if counts:
                        self.delivery_complete_count += self._count_from_start(
                            run.first_offset, run.last_offset
                        )
        return found

    # The beginning

    @property
    def open_gap_window(self) -> GapWindow | None:
        window = self._gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    def close_gap_to(self, offset: int) -> None:
        """Everything before ``offset`` has been looked at."""
        window = self.open_gap_window
        if window is not None:
            while (batch := self.in_flight.floor(offset)) is not None and batch.last_offset >= offset:
                offset = batch.last_offset + 1
            window.gap_start_offset = max(offset, window.gap_start_offset)
        if window is None or window.gap_start_offset > window.end_offset:
            self._gap_window = None

    def _move_start_offset(self) -> bool:
        """Drop what is done at the beginning; whether there was anything."""
        last_done = self._last_done_offset()
        if last_done is None:
            return False
        index = self.in_flight.index_of_floor(last_done)
        batch = self.in_flight.batches[index]
        if last_done == self.in_flight.last_offset:
            self.start_offset = self.end_offset = max(last_done + 1, self.start_offset)
            self.in_flight.clear()
            self._locks.clear()
            self.delivery_complete_count = 0
            return True
        if batch.last_offset == last_done:
            index += 1
            start_offset = max(self.in_flight.first_of(index), self.start_offset)
            window = self.open_gap_window
            if window is not None:
                start_offset = max(min(window.gap_start_offset, start_offset), self.start_offset)
        else:
            start_offset = max(last_done + 1, self.start_offset)
        self.delivery_complete_count -= sum(
            self._count_from_start(run.first_offset, min(run.last_offset, last_done))
            for each in self.in_flight.batches[: index + 1]
            for run in each.runs
            if run.first_offset <= last_done
        )
        self.start_offset = start_offset
        self.in_flight.drop_before(index)
        return True

    def _last_done_offset(self) -> int | None:
        """The last offset of the part at the beginning in which everything is done."""
        last_done: int | None = None
        window = self.open_gap_window
        for batch in self.in_flight.batches:
            if window is not None and batch.last_offset >= window.gap_start_offset:
                return last_done
            for run in batch.runs:
                if not run.is_done:
                    return last_done
                last_done = run.last_offset
        return last_done


def _is_held_until(run: Run, deadline_ms: int) -> bool:
    return run.deadline_ms == deadline_ms and run.state is DeliveryState.ACQUIRED


def _wrong_state(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, text)


def _check_holder(run: Run, member_id: str) -> None:
    """Refuse who does not hold a whole batch."""
    if run.member_id == NOBODY:
        raise _wrong_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
    if run.member_id != member_id:
        raise _wrong_state("Member is not the owner of batch record")


def _parts(asked: Acknowledgement) -> Iterator[tuple[int, int, int]]:
    """First offset, last offset and type of neighbours that are told the same."""
    if len(asked.types) == 1:
        yield asked.first_offset, asked.last_offset, asked.types[0]
        return
    first = 0
    for index in range(1, len(asked.types) + 1):
        if index == len(asked.types) or asked.types[index] != asked.types[first]:
            yield asked.first_offset + first, asked.first_offset + index - 1, asked.types[first]
            first = index
