"""Many deadlines in one heap: an idle group costs no task, and moving a deadline later costs nothing."""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """Keys that want to be woken, each with the earliest moment that was asked for it.

    A key is woken once; whoever is woken too early looks at its own deadlines and asks again.  That is
    what makes a heartbeat free: it only moves a deadline later, so nothing has to be told to the heap.
    """

    def __init__(self) -> None:
        self._wake_ms: dict[Key, int] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return len(self._wake_ms)

    def wake_by(self, key: Key, wake_ms: int) -> None:
        """See that ``key`` is due at ``wake_ms`` at the latest."""
        known = self._wake_ms.get(key)
        if known is not None and known <= wake_ms:
            return
        self._wake_ms[key] = wake_ms
        self._pushed += 1  # breaks ties, so that keys are never compared
        heapq.heappush(self._heap, (wake_ms, self._pushed, key))

    def forget(self, key: Key) -> None:
        """``key`` is gone, and must not be woken."""
        self._wake_ms.pop(key, None)

    def earliest_ms(self) -> int | None:
        """When the next key is due; None if none waits."""
        heap = self._heap
        while heap:
            wake_ms, _, key = heap[0]
            if self._wake_ms.get(key) == wake_ms:
                return wake_ms
            heapq.heappop(heap)
        return None

    def take_due(self, now_ms: int) -> Key | None:
        """Take out the key that is due first, if one is due at or before ``now_ms``."""
        earliest_ms = self.earliest_ms()
        if earliest_ms is None or earliest_ms > now_ms:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._wake_ms[key]
        return key
