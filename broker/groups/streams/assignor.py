"""Who works on which tasks of a streams application: the broker's task assignor, and what it is told.

It comes to the assignments of Kafka's assignor of the same name, so that a group may move between the two
without moving its tasks.  Racks and client tags play no part in it, and nobody gets warm-up tasks, as in
Kafka 4.4.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from broker.groups.java_order import in_java_order, in_java_order_of_computed, text_as_java_compares
from broker.groups.streams.configured import ConfiguredSubtopology
from broker.groups.streams.least_loaded import LeastLoaded
from broker.groups.streams.tasks import Tasks

TaskOffsets = Mapping[str, Mapping[int, int]]
"""By subtopology and partition: how far all the state of a task is on a member's disk."""

TaskId = tuple[str, int]
"""Subtopology and partition."""


class TaskMember(NamedTuple):
    """A member as the assignor sees it: what it has at the time, whatever it should have."""

    process_id: str
    active: Tasks
    standby: Tasks
    task_offsets: TaskOffsets


class MemberTasks(NamedTuple):
    """What one member should work on."""

    active: Tasks
    standby: Tasks


class TaskProblem(NamedTuple):
    """A group that needs a new assignment."""

    members: Mapping[str, TaskMember]
    """In the order in which Kafka would look at them."""
    subtopologies: Mapping[str, ConfiguredSubtopology]
    standby_replicas: int


def assign_sticky(problem: TaskProblem) -> dict[str, MemberTasks]:
    """``sticky``: tasks stay where they or their state have been, and everybody gets as many, if that can be.

    A process, which may have several members, works on each task at most once, either for real or as a
    standby.  Every member is in the answer.
    """
    if not problem.members:
        return {}
    assignment = _Assignment(problem)
    tasks = [
        (subtopology_id, partition)
        for subtopology_id, subtopology in problem.subtopologies.items()
        for partition in range(subtopology.task_count)
    ]
    assignment.assign_active(tasks)
    if problem.standby_replicas:
        has_state = {name for name, subtopology in problem.subtopologies.items() if subtopology.is_stateful}
        assignment.assign_standby([task for task in tasks if task[0] in has_state], problem.standby_replicas)
    return assignment.by_member()


TASK_ASSIGNORS: Final[Mapping[str, Callable[[TaskProblem], dict[str, MemberTasks]]]] = {
    "sticky": assign_sticky,
}
"""By the names that ``group.streams.assignors`` uses."""


class _Process:
    """One instance of the application: its members, and what they have got so far."""

    def __init__(self) -> None:
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self.counts: dict[str, int] = {}
        """Tasks of both kinds, by member."""
        self.tasks: set[TaskId] = set()
        self.load = 0.0
        self._size = 0
        self._by_load: LeastLoaded[str] | None = None
        """Members with the fewest tasks first; none while a member gets tasks out of turn."""

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0
        self.active[member_id] = set()
        self.standby[member_id] = set()

    def give(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to this member; returns how many it has now."""
        self._by_load = None
        return self._give(member_id, task, is_active)

    def give_somebody(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest; returns how many that has now."""
        if self._by_load is None:
            self._by_load = LeastLoaded()
            for member_id in in_java_order(self.counts):
                self._by_load.add(member_id, self.counts[member_id])
        member_id = self._by_load.take()
        count = self._give(member_id, task, is_active)
        self._by_load.add(member_id, count)
        return count

    def _give(self, member_id: str, task: TaskId, is_active: bool) -> int:
        self.tasks.add(task)
        (self.active if is_active else self.standby)[member_id].add(task)
        self.counts[member_id] += 1
        self._size += 1
        self.load = self._size / len(self.counts)
        return self.counts[member_id]


class _Quota:
    """How many tasks each member may have, so that what is left is shared out evenly.

    Members that have as many leave the reckoning, and take their tasks with them.
    """

    def __init__(self, task_count: int, member_count: int) -> None:
        self._tasks = task_count
        self._members = member_count
        self._reckon()

    def count_member_with(self, task_count: int) -> None:
        if task_count == self.each:
            self._members -= 1
            self._tasks -= task_count
            self._reckon()

    def _reckon(self) -> None:
        self.each = -(-self._tasks // self._members) if self._members else 0


class _Owner(NamedTuple):
    member_id: str
    process: _Process


class _Assignment:
    def __init__(self, problem: TaskProblem) -> None:
        active_count = all_count = 0
        for subtopology in problem.subtopologies.values():
            active_count += subtopology.task_count
            copies = 1 + problem.standby_replicas if subtopology.is_stateful else 1
            all_count += subtopology.task_count * copies
        self._active_quota = _Quota(active_count, len(problem.members))
        self._quota = _Quota(all_count, len(problem.members))
        self._sort_keys = {name: text_as_java_compares(name) for name in problem.subtopologies}
        self._members: dict[str, _Owner] = {}
        self._processes: dict[str, _Process] = {}
        self._was_active: dict[TaskId, _Owner] = {}
        has_state: dict[TaskId, list[tuple[bool, int, _Owner]]] = {}
        for member_id in in_java_order(problem.members):
            member = problem.members[member_id]
            process = self._processes.setdefault(member.process_id, _Process())
            process.add_member(member_id)
            owner = self._members[member_id] = _Owner(member_id, process)
            for subtopology_id, partitions in member.active.items():
                for partition in partitions:
                    self._was_active[subtopology_id, partition] = owner
            for task, is_guess, offset in _tasks_with_state(member):
                has_state.setdefault(task, []).append((is_guess, -offset, owner))
        self._has_state = {
            task: [owner for _, _, owner in sorted(candidates, key=lambda candidate: candidate[:2])]
            for task, candidates in has_state.items()
        }
        """Who could go on with a task soonest."""
        self._process_order = in_java_order_of_computed(
            (problem.members[member_id].process_id for member_id in self._members), len(problem.members)
        )

    def assign_active(self, tasks: list[TaskId]) -> None:
        tasks.sort(key=self._partition_first)
        tasks = [task for task in tasks if not self._stays(task)]
        tasks = [task for task in tasks if not self._goes_to_its_state(task)]
        tasks.sort(key=self._subtopology_first)
        by_load = self._processes_by_load()
        for task in tasks:
            process = by_load.take()
            self._count_active(process.give_somebody(task, is_active=True))
            by_load.add(process, process.load)

    def _stays(self, task: TaskId) -> bool:
        return self._was_active.get(task) is not None and self._give_active(task, self._was_active[task])

    def _goes_to_its_state(self, task: TaskId) -> bool:
        owner = _least_busy(self._has_state.get(task, ()))
        return owner is not None and self._give_active(task, owner)

    def _give_active(self, task: TaskId, owner: _Owner) -> bool:
        if owner.process.counts[owner.member_id] >= self._active_quota.each:
            return False
        self._count_active(owner.process.give(owner.member_id, task, is_active=True))
        return True

    def _count_active(self, task_count: int) -> None:
        self._active_quota.count_member_with(task_count)
        self._quota.count_member_with(task_count)

    def assign_standby(self, tasks: list[TaskId], replicas: int) -> None:
        tasks.sort(key=self._partition_first, reverse=True)
        left: list[tuple[TaskId, int]] = []
        for task in tasks:
            for given in range(replicas):
                if not self._gets_standby_near_its_state(task):
                    left.append((task, replicas - given))
                    break
        left.sort(key=lambda item: self._subtopology_first(item[0]), reverse=True)
        by_load = self._processes_by_load()
        for task, count in left:
            for _ in range(count):
                if not self._gets_standby_anywhere(task, by_load):
                    break

    def _gets_standby_near_its_state(self, task: TaskId) -> bool:
        owner = self._was_active.get(task)
        if owner is not None and task not in owner.process.tasks and self._give_standby(task, owner):
            return True
        owner = _least_busy(
            [owner for owner in self._has_state.get(task, ()) if task not in owner.process.tasks]
        )
        return owner is not None and self._give_standby(task, owner)

    def _give_standby(self, task: TaskId, owner: _Owner) -> bool:
        if owner.process.counts[owner.member_id] >= self._quota.each:
            return False
        self._quota.count_member_with(owner.process.give(owner.member_id, task, is_active=False))
        return True

    def _gets_standby_anywhere(self, task: TaskId, by_load: LeastLoaded[_Process]) -> bool:
        passed = []
        found = None
        while by_load and found is None:
            process = by_load.take()
            if task in process.tasks:
                passed.append(process)
            else:
                found = process
        if found is not None:
            self._quota.count_member_with(found.give_somebody(task, is_active=False))
            by_load.add(found, found.load)
        for process in reversed(passed):
            by_load.add(process, process.load)
        return found is not None

    def _processes_by_load(self) -> LeastLoaded[_Process]:
        by_load: LeastLoaded[_Process] = LeastLoaded()
        for process_id in self._process_order:
            process = self._processes[process_id]
            by_load.add(process, process.load)
        return by_load

    def _partition_first(self, task: TaskId) -> tuple[int, bytes]:
        return task[1], self._sort_keys[task[0]]

    def _subtopology_first(self, task: TaskId) -> tuple[bytes, int]:
        return self._sort_keys[task[0]], task[1]

    def by_member(self) -> dict[str, MemberTasks]:
        return {
            member_id: MemberTasks(
                _by_subtopology(owner.process.active[member_id]),
                _by_subtopology(owner.process.standby[member_id]),
            )
            for member_id, owner in self._members.items()
        }


def _tasks_with_state(member: TaskMember) -> list[tuple[TaskId, bool, int]]:
    """Each with whether only the member's report says so, and how much of the state is there."""
    offsets = member.task_offsets
    found = [
        ((subtopology_id, partition), False, offsets.get(subtopology_id, {}).get(partition, 0))
        for subtopology_id, partitions in member.standby.items()
        for partition in partitions
    ]
    found += [
        ((subtopology_id, partition), True, offset)
        for subtopology_id, reported in offsets.items()
        for partition, offset in reported.items()
        if partition not in member.standby.get(subtopology_id, ())
    ]
    return found


def _least_busy(owners: Sequence[_Owner]) -> _Owner | None:
    """The first, unless a later one is less busy itself and so is its process."""
    best: _Owner | None = None
    for owner in owners:
        if best is None or (
            owner.process.load < best.process.load
            and owner.process.counts[owner.member_id] < best.process.counts[best.member_id]
        ):
            best = owner
    return best


def _by_subtopology(tasks: set[TaskId]) -> Tasks:
    found: dict[str, set[int]] = {}
    for subtopology_id, partition in tasks:
        found.setdefault(subtopology_id, set()).add(partition)
    return found
