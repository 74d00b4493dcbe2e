"""What happens when: functions that are called at their times, one after the other."""

import heapq
import itertools
from collections.abc import Callable

import trio


class Timeline:
    """Calls functions at their times; those of one time in the order in which they were asked for.

    ``before_each`` is called in front of each of them: whatever followed from the one before has happened
    then, as far as no time had to pass for it.  Who lets others know something in between calls it, too.
    """

    def __init__(self, before_each: Callable[[], None]) -> None:
        self.before_each = before_each
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._scope: trio.CancelScope | None = None
        self.events = 0
        """Functions that have been called."""

    def at(self, seconds: float, function: Callable[[], None]) -> None:
        """Call ``function`` when the clock shows so many seconds, or soon if it is later already."""
        heapq.heappush(self._due, (seconds, next(self._numbers), function))
        if self._scope is not None and seconds < self._scope.deadline:
            self._scope.deadline = seconds

    async def run(self) -> None:
        """Call what is due, for ever."""
        due = self._due
        while True:
            with trio.CancelScope(deadline=due[0][0] if due else float("inf")) as self._scope:
                await trio.sleep_forever()
            self._scope = None
            now = trio.current_time()
            while due and due[0][0] <= now:
                self.before_each()
                self.events += 1
                heapq.heappop(due)[2]()
                await trio.lowlevel.checkpoint()
