"""The uniform assignor: one way for members that all read the same topics, and one for all others.

Members of a classic group may have been given partitions that do not exist.  When it has become a consumer
group this raises UNKNOWN_SERVER_ERROR where Kafka's assignor cannot go on with them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from broker.groups.assignors import AssignmentProblem, Assignments
from broker.groups.java_order import id_as_java_compares, ids_in_java_order, numbers_in_java_order
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

ROUNDS_MAX: Final = 16
"""How often all topics are balanced: what is gained by more is not worth the time."""

NOBODY: Final = -1


def assign_same(problem: AssignmentProblem) -> Assignments:
    """For members that read the same topics: all get the same number, give or take one."""
    members = problem.members
    topic_ids = next(iter(members.values())).topic_ids
    if not topic_ids:
        return {member_id: {} for member_id in members}
    owned: dict[bytes, set[int]] = {topic_id: set() for topic_id in topic_ids}
    for member in members.values():
        for topic_id, partitions in member.target.items():
            if topic_id in owned:
                owned[topic_id].update(partitions)
    free = []
    total = 0
    for topic_id in ids_in_java_order(topic_ids, are_copied=True):
        count = problem.partition_count(topic_id)
        total += count
        free += [(topic_id, partition) for partition in range(count) if partition not in owned[topic_id]]

    each, extra = divmod(total, len(members))
    assigned: dict[str, dict[bytes, set[int]]] = {}
    unfilled = []
    for place, (member_id, member) in enumerate(members.items()):
        room = each + (extra > 0)
        kept = {topic_id: set(of) for topic_id, of in member.target.items() if topic_id in topic_ids}
        size = sum(map(len, kept.values()))
        if size > room:
            order = [topic_id for topic_id in ids_in_java_order(member.target) if topic_id in kept]
            free += _cut(kept, order, room)
        room = max(room - size, 0)
        has_extra = extra > 0
        if has_extra and room > 0 and len(members) - place > extra:
            # One partition more goes to members that have it already, as long as enough of them are left.
            room -= 1
            has_extra = False
        if room > 0:
            unfilled.append((member_id, room))
        extra -= has_extra
        assigned[member_id] = kept
    following = iter(free)
    for member_id, room in unfilled:
        for topic_id, partition in islice(following, room):
            assigned[member_id].setdefault(topic_id, set()).add(partition)
    if next(following, None) is not None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # members hold partitions that do not exist
    return dict(assigned)


def _cut(kept: dict[bytes, set[int]], order: Sequence[bytes], room: int) -> Iterator[tuple[bytes, int]]:
    """Leave as much as there is room for, topic by topic; what goes."""
    for topic_id in order:
        ordered = numbers_in_java_order(kept[topic_id])
        for partition in ordered[room:]:
            yield topic_id, partition
        if room:
            kept[topic_id] = set(ordered[:room])
        else:
            del kept[topic_id]
        room -= min(room, len(ordered))


def assign_mixed(problem: AssignmentProblem) -> Assignments:
    """For members that read different topics: topic by topic, its readers are brought as near as may be."""
    return _MixedAssignment(problem).solve()


class _MixedAssignment:
    """Members are numbers here; ``owners`` has for each topic who owns which partition."""

    def __init__(self, problem: AssignmentProblem) -> None:
        self.member_ids = list(problem.members)
        self.sizes = [0] * len(self.member_ids)
        self.readers: dict[bytes, list[int]] = {}
        for number, member in enumerate(problem.members.values()):
            for topic_id in member.topic_ids:
                self.readers.setdefault(topic_id, []).append(number)
        self.owners = {topic_id: [NOBODY] * problem.partition_count(topic_id) for topic_id in self.readers}
        for number, member in enumerate(problem.members.values()):
            for topic_id, partitions in member.target.items():
                if topic_id in member.topic_ids:
                    owners = self.owners[topic_id]
                    for partition in partitions:
                        if not 0 <= partition < len(owners):
                            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                        owners[partition] = number
                    self.sizes[number] += len(partitions)

    def solve(self) -> Assignments:
        topic_ids = sorted(self.readers, key=self._urgency)
        for topic_id in topic_ids:
            self._share_out(topic_id)
        self._balance([topic_id for topic_id in topic_ids if len(self.readers[topic_id]) > 1])
        assigned: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in self.member_ids}
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                assigned[self.member_ids[owner]].setdefault(topic_id, set()).add(partition)
        return dict(assigned)

    def _urgency(self, topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
        """Topics with many partitions for few readers come first: they leave the least choice."""
        readers = len(self.readers[topic_id])
        return -len(self.owners[topic_id]) / readers, readers, id_as_java_compares(topic_id)

    def _share_out(self, topic_id: bytes) -> None:
        """Give what nobody owns to whoever has least."""
        free = [partition for partition, owner in enumerate(self.owners[topic_id]) if owner == NOBODY]
        if free:
            scale = _Scale(self.readers[topic_id], self.sizes)
            for partition in free:
                self._give(topic_id, partition, scale.lightest())

    def _balance(self, topic_ids: Sequence[bytes]) -> None:
        """Go round until nothing has moved since the last topic in which something did."""
        last_moved: bytes | None = None
        for _ in range(ROUNDS_MAX):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions of one topic from readers with many to readers with few; whether any moved."""
        readers, sizes = self.readers[topic_id], self.sizes
        if max(sizes[reader] for reader in readers) - min(sizes[reader] for reader in readers) <= 1:
            return False
        scale = _Scale(readers, sizes)
        left: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            left.setdefault(owner, []).append(partition)
        has_moved = False
        while not scale.is_level():
            giver = scale.heaviest()
            while giver is not None and not left.get(giver):
                scale.set_aside_heaviest()
                giver = scale.heaviest()
            if giver is None:
                break
            partition = left[giver].pop()
            taker = scale.lightest()
            if scale.is_level():
                break
            self._give(topic_id, partition, taker)
            has_moved = True
        return has_moved

    def _give(self, topic_id: bytes, partition: int, taker: int) -> None:
        owners = self.owners[topic_id]
        if owners[partition] != NOBODY:
            self.sizes[owners[partition]] -= 1
        owners[partition] = taker
        self.sizes[taker] += 1


class _Scale:
    """The readers of a topic, ordered by size once.

    From the light end one reader after the other is filled up to a level, which then rises; from the heavy
    end they are emptied down to a level that falls.  Whoever asks for the next one moves a partition.
    """

    def __init__(self, readers: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._order = order = sorted(readers, key=lambda reader: (sizes[reader], reader))
        self._low_level = sizes[order[0]] - 1
        self._low_end = 0
        self._low_next = 0
        self._high_level = sizes[order[-1]] + 1
        self._high_start = len(order)
        self._high_end = len(order)
        self._high_next = len(order) - 1

    def is_level(self) -> bool:
        """The two levels have met: nothing is gained by moving more."""
        return self._high_level - self._low_level <= 1

    def lightest(self) -> int:
        order, sizes = self._order, self._sizes
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(order) and sizes[order[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return order[self._low_next - 1]

    def heaviest(self) -> int | None:
        """None if all have been set aside."""
        order, sizes = self._order, self._sizes
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_level = sizes[order[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and sizes[order[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return order[self._high_next + 1]

    def set_aside_heaviest(self) -> None:
        """Whoever was named last has nothing of this topic left to give."""
        order = self._order
        place, end = self._high_next + 1, self._high_end - 1
        order[place], order[end] = order[end], order[place]
        self._high_end = end
