"""Who of a group's members gets which partitions: the broker's own assignors, and what they are told.

They come to the assignments of Kafka's assignors of the same name, so that a group may move between the two
without moving its partitions.  Racks play no part in them, as in Kafka.
"""

from collections.abc import Callable, Mapping, Set
from typing import Final, NamedTuple

from broker.groups.java_order import in_java_order, text_as_java_compares

Assignment = Mapping[bytes, Set[int]]
"""Partitions by topic id.  Topics without partitions are not in it, except in share groups."""

Assignments = dict[str, Assignment]
"""By member id; every member is in it."""


class Subscriber(NamedTuple):
    """A member as an assignor sees it."""

    instance_id: str | None
    topic_ids: Set[bytes]
    """Topics that it reads and that exist."""
    target: Assignment
    """What it should have had so far."""


class AssignmentProblem:
    """A group that needs a new assignment.

    ``members`` come in the order in which Kafka would look at them.  ``is_homogeneous``: all members read
    the same topics.
    """

    def __init__(
        self,
        members: Mapping[str, Subscriber],
        partition_count: Callable[[bytes], int],
        *,
        is_homogeneous: bool,
    ) -> None:
        self.members = {member_id: members[member_id] for member_id in in_java_order(members)}
        self.partition_count = partition_count
        self.is_homogeneous = is_homogeneous


def assign_ranges(problem: AssignmentProblem) -> Assignments:
    """``range``: of every topic, each of its readers gets one run of partitions.

    Static members come first, by their instance ids, then the others by their ids: so the same numbers of
    different topics go to the same member, if all read the same topics.
    """
    ordered = sorted(problem.members, key=lambda member_id: _range_order(problem, member_id))
    readers: dict[bytes, list[str]] = {}
    for member_id in ordered:
        for topic_id in problem.members[member_id].topic_ids:
            readers.setdefault(topic_id, []).append(member_id)
    assigned: dict[str, dict[bytes, Set[int]]] = {member_id: {} for member_id in ordered}
    for topic_id, of_topic in readers.items():
        each, extra = divmod(problem.partition_count(topic_id), len(of_topic))
        start = 0
        for place, member_id in enumerate(of_topic):
            end = start + each + (place < extra)
            if start < end:
                assigned[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assigned)


def _range_order(problem: AssignmentProblem, member_id: str) -> tuple[bool, bytes]:
    instance_id = problem.members[member_id].instance_id
    name = member_id if instance_id is None else instance_id
    return instance_id is None, text_as_java_compares(name)


def assign_uniformly(problem: AssignmentProblem) -> Assignments:
    """``uniform``: everybody gets as many, and keeps as much as possible."""
    from broker.groups.uniform_assignor import assign_mixed, assign_same

    if not problem.members:
        return {}
    return assign_same(problem) if problem.is_homogeneous else assign_mixed(problem)


ASSIGNORS: Final[Mapping[str, Callable[[AssignmentProblem], Assignments]]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}
"""By the names that clients and ``group.consumer.assignors`` use."""
