"""Sets of tasks: a task is a partition of a subtopology, to work on, or to keep a copy of its state of."""

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from broker.groups.java_order import text_as_java_compares

Tasks = Mapping[str, Set[int]]
"""Partitions by subtopology.  Subtopologies without partitions are not in it."""

ActiveTasks = Mapping[str, Mapping[int, int]]
"""The same, with the epoch in which each task was given to its member."""

NO_TASKS: Final[Mapping[str, Any]] = MappingProxyType({})


class TaskSets(NamedTuple):
    """Tasks of each role: what a member should have, or what it says that it has."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    def share_any(self, owned: "OwnedTasks") -> bool:
        """Whether one of ``owned`` is among these, in the same role."""
        return (
            _share(self.active, owned.active)
            or _share(self.standby, owned.standby)
            or _share(self.warmup, owned.warmup)
        )

    def are_within(self, owned: "OwnedTasks") -> bool:
        """Whether all of these are among ``owned``, in the same role."""
        return (
            _is_within(self.active, owned.active)
            and _is_within(self.standby, owned.standby)
            and _is_within(self.warmup, owned.warmup)
        )


class OwnedTasks(NamedTuple):
    """What a member has, or has to give up."""

    active: ActiveTasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


NOTHING: Final = TaskSets()
NOTHING_OWNED: Final = OwnedTasks()


def _share(some: Tasks, others: Mapping[str, Iterable[int]]) -> bool:
    return any(
        subtopology in others and not partitions.isdisjoint(others[subtopology])
        for subtopology, partitions in some.items()
    )


def _is_within(some: Tasks, others: Mapping[str, Set[int] | Mapping[int, int]]) -> bool:
    return all(
        subtopology in others and all(partition in others[subtopology] for partition in partitions)
        for subtopology, partitions in some.items()
    )


def told_tasks(told: Iterable[Any]) -> Tasks:
    """Tasks as a message or a record lists them."""
    return {each.subtopology_id: frozenset(each.partitions) for each in told}


def in_order(tasks: Mapping[str, Iterable[int]]) -> list[tuple[str, list[int]]]:
    """By subtopology and partition, as records and answers list them."""
    names = sorted(tasks, key=text_as_java_compares)
    return [(subtopology, sorted(tasks[subtopology])) for subtopology in names]
