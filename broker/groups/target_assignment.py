"""What the members of a group should own in the end, as records tell it."""

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final

from broker.groups.assignors import Assignment, Assignments
from protocol.stored.group_records import TopicPartition

NOTHING: Final[Assignment] = MappingProxyType({})

INITIAL_EPOCH: Final = 1
"""Of a group that nobody has assigned anything to yet: its own first epoch."""


class TargetAssignment:
    """Changed by a group's ``apply`` alone.

    ``computed_ms`` is the wall time at which it was made: the next one may have to wait for a while.  0 if
    it need not.
    """

    __slots__ = ("by_member", "computed_ms", "epoch")

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        self.computed_ms = 0
        self.by_member: dict[str, Assignment] = {}

    def of(self, member_id: str) -> Assignment:
        return self.by_member.get(member_id, NOTHING)

    def may_be_replaced(self, interval_ms: int, now_ms: int) -> bool:
        """Whether enough time has passed since it was made (KIP-1263)."""
        return not self.computed_ms or not interval_ms or now_ms >= self.computed_ms + interval_ms

    def changed(self, new: Assignments) -> Iterator[tuple[str, Assignment]]:
        """Members whose target is another in ``new``, with the new one."""
        for member_id, assignment in new.items():
            if self.by_member.get(member_id) != assignment:
                yield member_id, assignment


def stored_partitions(assignment: Assignment) -> list[TopicPartition]:
    """As records list them."""
    return [
        TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
    ]


def read_partitions(stored: Iterable[TopicPartition]) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in stored}
