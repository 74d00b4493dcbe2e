"""A queue whose least loaded item comes first, and whose ties come as from Java's ``PriorityQueue``.

Python's ``heapq`` sifts in another way, so it would break ties differently.
"""

from typing import Generic, TypeVar

Item = TypeVar("Item")


class LeastLoaded(Generic[Item]):
    """Items with the load that they had when they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Item]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: Item, load: float) -> None:
        heap = self._heap
        place = len(heap)
        heap.append((load, item))
        while place > 0:
            parent = (place - 1) // 2
            if load >= heap[parent][0]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = (load, item)

    def take(self) -> Item:
        """The least loaded one, which is not in the queue any more.  There must be one."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last[1]
        first, load, place = heap[0], last[0], 0
        while (child := 2 * place + 1) < len(heap):
            if child + 1 < len(heap) and heap[child][0] > heap[child + 1][0]:
                child += 1
            if load <= heap[child][0]:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = last
        return first[1]
