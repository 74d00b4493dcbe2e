"""Which brokers hold a new partition: spread over racks, and over the brokers of each rack.

Every partition's replicas go to different racks where there are enough of them, neighbouring
partitions start at neighbouring racks and brokers, and a fenced broker never comes first, since the
first replica is the one that should lead.
"""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError


class UsableBroker(NamedTuple):
    """A broker that may take new replicas."""

    id: int
    rack: str | None = None
    fenced: bool = False


def place(
    brokers: Iterable[UsableBroker], *, partition_count: int, replication_factor: int, chance: random.Random
) -> list[tuple[int, ...]]:
    """Replicas for each of ``partition_count`` partitions, the preferred leader first.

    Raises INVALID_REPLICATION_FACTOR when there are too few brokers, or none of them is unfenced.
    """
    usable = sorted(brokers)
    unfenced_count = sum(not broker.fenced for broker in usable)
    if replication_factor <= 0:
        raise _refused(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if unfenced_count == 0:
        raise _refused("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(usable):
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(usable)} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    racks = _racks(usable, chance)
    first_rack = chance.randrange(len(racks))
    placed = []
    for turn in range(partition_count):
        # Once every broker has led, start over in another order, so that not the same brokers
        # meet in the same partitions again and again.
        if unfenced_count > 1 and turn and turn % unfenced_count == 0:
            chance.shuffle(racks)
            for rack in racks:
                rack.shuffle(chance)
        for rack in racks:
            rack.begin_partition()
        placed.append(_place_one(racks, first_rack + turn, replication_factor))
    return placed


class _Rack:
    """Brokers that share their fate; hands them out in turn, unfenced ones first."""

    def __init__(self, brokers: Sequence[UsableBroker], chance: random.Random) -> None:
        self._unfenced = _Circle([broker.id for broker in brokers if not broker.fenced], chance)
        self._fenced = _Circle([broker.id for broker in brokers if broker.fenced], chance)

    def begin_partition(self) -> None:
        self._unfenced.begin_partition()
        self._fenced.begin_partition()

    def shuffle(self, chance: random.Random) -> None:
        chance.shuffle(self._unfenced.ids)
        chance.shuffle(self._fenced.ids)

    def next_leader(self) -> int | None:
        return self._unfenced.next_leader()

    def next_follower(self) -> int | None:
        found = self._unfenced.next_follower()
        return self._fenced.next_follower() if found is None else found


class _Circle:
    """Broker ids around a circle, with two hands: leaderships are dealt evenly, and so is all the rest.

    Where one leads, the others of the same partition are those that stand next to it: so each has as many
    replicas as any other when all have led.
    """

    def __init__(self, ids: list[int], chance: random.Random) -> None:
        self.ids = ids
        self.taken: set[int] = set()
        """Brokers that have their replica of the present partition."""
        self._leader = self._follower = chance.randrange(len(ids)) if ids else 0
        self._next: int | None = None
        """Behind the one taken last in the present partition, if one of these leads it."""

    def begin_partition(self) -> None:
        self.taken.clear()
        self._next = None

    def next_leader(self) -> int | None:
        if not self.ids:
            return None
        found = self.ids[self._leader % len(self.ids)]
        self._leader += 1
        self._next = self._leader
        self.taken.add(found)
        return found

    def next_follower(self) -> int | None:
        for _ in self.ids:
            if self._next is None:
                found = self.ids[self._follower % len(self.ids)]
                self._follower += 1
            else:
                found = self.ids[self._next % len(self.ids)]
                self._next += 1
            if found not in self.taken:
                self.taken.add(found)
                return found
        return None


def _racks(brokers: Sequence[UsableBroker], chance: random.Random) -> list[_Rack]:
    by_name: dict[str, list[UsableBroker]] = {}
    for broker in brokers:
        by_name.setdefault(broker.rack or "", []).append(broker)
    return [_Rack(by_name[name], chance) for name in sorted(by_name)]


def _place_one(racks: Sequence[_Rack], first: int, replication_factor: int) -> tuple[int, ...]:
    count = len(racks)
    replicas: list[int] = []
    leading = first
    while not replicas:
        leader = racks[leading % count].next_leader()
        if leader is not None:
            replicas.append(leader)
        else:
            leading += 1
    # The other replicas go round the racks from where the partition started; the leader's rack,
    # which may lie further on, has had its turn.
    passed = (leading - first) % count
    turn = 0
    while len(replicas) < replication_factor:
        if turn != passed:
            found = racks[(first + turn) % count].next_follower()
            if found is not None:
                replicas.append(found)
        turn += 1
    return tuple(replicas)


def _refused(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
