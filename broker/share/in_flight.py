"""Records on their way through a share group: batches as they were fetched, in runs of the same state."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.share.state_batches import DeliveryState, StateBatch

NOBODY: Final = ""
"""Holds what is not acquired."""


class DeadLetter(NamedTuple):
    """Records that were given up and go to the dead letter queue, if the group has one (KIP-1191)."""

    first_offset: int
    last_offset: int
    delivery_count: int
    is_rejected: bool
    """By a member; otherwise they were delivered too often."""


class Run:
    """Offsets of one batch that have the same state.

    A *pending* run is in its new state already, which is not safe in the log yet: ``before`` says what it
    was, in case the log refuses.
    """

    __slots__ = (
        "before",
        "deadline_ms",
        "delivery_count",
        "first_offset",
        "last_offset",
        "member_id",
        "state",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: DeliveryState,
        delivery_count: int,
        member_id: str = NOBODY,
        deadline_ms: int | None = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        """When the lock of whoever holds it ends."""
        self.before: Transition | None = None

    def __repr__(self) -> str:
        pending = " pending" if self.is_pending else ""
        return (
            f"<{self.first_offset}-{self.last_offset} {self.state.name}{pending} "
            f"{self.delivery_count} {self.member_id!r}>"
        )

    @property
    def is_pending(self) -> bool:
        return self.before is not None

    @property
    def is_available(self) -> bool:
        """Whether somebody may acquire it now."""
        return self.state is DeliveryState.AVAILABLE and self.before is None

    @property
    def is_done(self) -> bool:
        """Whether nothing will become of it any more, and that is safe."""
        return self.state.is_terminal and self.before is None

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1

    def acquire(self, member_id: str) -> None:
        self.state = DeliveryState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id

    def archive(self) -> None:
        """Give it up for good, whatever the log will say to what is pending."""
        self.state = DeliveryState.ARCHIVED
        self.member_id = NOBODY
        self.deadline_ms = None
        if self.before is not None:
            self.before.forget(self)

    def as_stored(self) -> StateBatch:
        return StateBatch(self.first_offset, self.last_offset, self.state, self.delivery_count)


class InFlightBatch:
    """What was acquired in one piece, or loaded as one.

    Kafka keeps one state for it until a part has to differ, and one for each record from then on; what
    members are told depends on which of the two it is.  Here it is cut into runs, and ``is_split`` keeps
    in mind that it was.
    """

    __slots__ = ("first_offset", "is_split", "last_offset", "runs")

    def __init__(self, run: Run) -> None:
        self.first_offset = run.first_offset
        self.last_offset = run.last_offset
        self.runs = [run]
        self.is_split = False

    def __repr__(self) -> str:
        return f"<InFlightBatch {'split ' if self.is_split else ''}{self.runs}>"

    @property
    def whole(self) -> Run:
        """The one run of a batch that is not split."""
        return self.runs[0]

    def lies_within(self, first_offset: int, last_offset: int) -> bool:
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def contains_after_first(self, offset: int) -> bool:
        """Whether ``offset`` cuts the batch in two."""
        return self.first_offset < offset <= self.last_offset

    def within(self, first_offset: int, last_offset: int) -> Iterator[Run]:
        """The runs between these offsets, both inclusive; a run that reaches beyond is cut there.

        The runs may be changed, and cut once more from their end, while this goes on.
        """
        if first_offset > self.first_offset:
            self.cut(first_offset)
        if last_offset < self.last_offset:
            self.cut(last_offset + 1)
        index = 0
        while index < len(self.runs):
            run = self.runs[index]
            if run.first_offset > last_offset:
                return
            if run.first_offset >= first_offset:
                yield run
            index += 1

    def cut(self, offset: int) -> None:
        """Let a run begin at ``offset``, if it is inside one."""
        for index, run in enumerate(self.runs):
            if run.first_offset >= offset:
                return
            if offset <= run.last_offset:
                rest = Run(
                    offset, run.last_offset, run.state, run.delivery_count, run.member_id, run.deadline_ms
                )
                run.last_offset = offset - 1
                self.runs.insert(index + 1, rest)
                if run.before is not None:
                    run.before.follow(run, rest)
                return


class _Before(NamedTuple):
    """What a run was before its pending change."""

    state: DeliveryState
    member_id: str


class Transition:
    """Changes of runs that wait for the log."""

    __slots__ = ("_before", "dead_letters", "stored")

    def __init__(self) -> None:
        self.stored: list[StateBatch] = []
        """What is to be kept."""
        self.dead_letters: list[DeadLetter] = []
        self._before: dict[Run, _Before] = {}

    def begin(self, run: Run, state: DeliveryState) -> None:
        """Move ``run`` to its new state, in which nobody holds it."""
        self._before[run] = _Before(run.state, run.member_id)
        run.before = self
        run.state = state
        run.member_id = NOBODY
        self.stored.append(run.as_stored())

    def follow(self, run: Run, rest: Run) -> None:
        """``rest`` was cut off from ``run``."""
        self._before[rest] = self._before[run]
        rest.before = self

    def forget(self, run: Run) -> None:
        """What becomes of ``run`` does not depend on the log any more."""
        del self._before[run]
        run.before = None

    def commit(self) -> list[Run]:
        """The log has it.  Returns the runs that have changed."""
        runs = list(self._before)
        for run in runs:
            run.before = None
            run.deadline_ms = None
        self._before.clear()
        return runs

    def roll_back(self, now_ms: int, delivery_count_limit: int) -> list[Run]:
        """The log has refused.  Returns the runs that change back; locks that are over now have ended."""
        runs = list(self._before)
        for run, before in self._before.items():
            run.before = None
            if run.deadline_ms is not None and run.deadline_ms <= now_ms:
                gives_up = run.delivery_count >= delivery_count_limit
                run.state = DeliveryState.ARCHIVED if gives_up else DeliveryState.AVAILABLE
                run.deadline_ms = None
            else:
                run.state, run.member_id = before
        self._before.clear()
        return runs


class InFlight:
    """The batches in flight, in the order of their offsets."""

    __slots__ = ("_firsts", "batches")

    def __init__(self) -> None:
        self.batches: list[InFlightBatch] = []
        self._firsts: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.batches)

    @property
    def first_offset(self) -> int:
        """Only while there is a batch."""
        return self._firsts[0]

    @property
    def last_offset(self) -> int:
        """Only while there is a batch."""
        return self.batches[-1].last_offset

    def runs(self) -> Iterator[Run]:
        for batch in self.batches:
            yield from batch.runs

    def insert(self, batch: InFlightBatch) -> None:
        """Put the batch in its place, in that of one with the same first offset if there is one."""
        index = bisect_left(self._firsts, batch.first_offset)
        if index < len(self._firsts) and self._firsts[index] == batch.first_offset:
            self.batches[index] = batch
        else:
            self._firsts.insert(index, batch.first_offset)
            self.batches.insert(index, batch)

    def index_of_floor(self, offset: int) -> int:
        """Of the last batch that begins at or before ``offset``; -1 if there is none."""
        return bisect_right(self._firsts, offset) - 1

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before ``offset``."""
        index = bisect_right(self._firsts, offset) - 1
        return None if index < 0 else self.batches[index]

    def beginning_within(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Those that begin between these offsets, both inclusive."""
        begin = bisect_left(self._firsts, first_offset)
        return self.batches[begin : bisect_right(self._firsts, last_offset)]

    def overlapping(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Those that have an offset in common with this range."""
        begin = bisect_right(self._firsts, first_offset) - 1
        if begin < 0 or self.batches[begin].last_offset < first_offset:
            begin += 1
        return self.batches[begin : bisect_right(self._firsts, last_offset)]

    def first_of(self, index: int) -> int:
        return self._firsts[index]

    def drop_before(self, index: int) -> None:
        del self.batches[:index]
        del self._firsts[:index]

    def clear(self) -> None:
        self.batches.clear()
        self._firsts.clear()
