"""Deadlines of unanswered requests, all in one heap with one task, so that a long poll costs no task."""

import heapq
import math

import trio

from broker.logs import Log
from broker.network.waiting import Waiting

_PRUNE_AT_LEAST = 64


class Timers:
    """Calls ``expire`` on waitings whose deadline has passed.

    Most are answered long before.  They stay in the heap until it has doubled since it was last cleaned, so
    adding and forgetting cost a constant time each, and memory at most twice that of the open ones.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._heap: list[tuple[float, int, Waiting[object]]] = []
        self._added = 0
        self._prune_at = _PRUNE_AT_LEAST
        self._scope: trio.CancelScope | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, waiting: Waiting[object]) -> None:
        """Watch the deadline of ``waiting``, if it has one."""
        deadline = waiting.deadline
        if deadline is None or deadline == math.inf:
            return
        if len(self._heap) >= self._prune_at:
            self._prune()
        self._added += 1
        heapq.heappush(self._heap, (deadline, self._added, waiting))
        if self._scope is not None and deadline < self._scope.deadline:
            self._scope.deadline = deadline

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self._forget_first()
            with trio.CancelScope(deadline=self._heap[0][0] if self._heap else math.inf) as self._scope:
                await trio.sleep_forever()
            self._scope = None
            now = trio.current_time()
            while self._heap and self._heap[0][0] <= now:
                waiting = heapq.heappop(self._heap)[2]
                try:
                    waiting.expire()
                except Exception as error:
                    self._log.failure("the deadline of a request was met with an error", error)
                    waiting.fail(error)

    def _forget_first(self) -> None:
        """Do not wake for those that were answered long before: each fetch of a follower would."""
        heap = self._heap
        while heap and (heap[0][2].is_answered or heap[0][2].is_abandoned):
            heapq.heappop(heap)

    def _prune(self) -> None:
        self._heap = [entry for entry in self._heap if not (entry[2].is_answered or entry[2].is_abandoned)]
        heapq.heapify(self._heap)
        self._prune_at = max(_PRUNE_AT_LEAST, 2 * len(self._heap))
