"""Who of a share group reads which partitions: ``simple``, as evenly as sharing allows (KIP-932)."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeAlias

from broker.groups.assignors import Assignment, Assignments, Subscriber

TopicPartition: TypeAlias = tuple[bytes, int]


def assign_simply(
    members: Mapping[str, Subscriber], partitions: Mapping[bytes, Set[int]], *, is_homogeneous: bool
) -> Assignments:
    """What each member should read of ``partitions``; every member is in it.

    With fewer partitions than members, members share them.  Everybody keeps as much as possible.
    """
    found: dict[str, set[TopicPartition]] = {member_id: set() for member_id in members}
    if is_homogeneous:
        topics = next(iter(members.values())).topic_ids if members else frozenset[bytes]()
        pool = [(topic, index) for topic in topics for index in sorted(partitions.get(topic, ()))]
        found.update(_share_out(list(members), pool, members))
    else:
        for topic in dict.fromkeys(topic for member in members.values() for topic in member.topic_ids):
            readers = [member_id for member_id, member in members.items() if topic in member.topic_ids]
            pool = [(topic, index) for index in sorted(partitions.get(topic, ()))]
            for member_id, part in _share_out(readers, pool, members).items():
                found[member_id] |= part
    return {member_id: _by_topic(pairs) for member_id, pairs in found.items()}


def _share_out(
    member_ids: Sequence[str], pool: Sequence[TopicPartition], members: Mapping[str, Subscriber]
) -> dict[str, set[TopicPartition]]:
    """Give every partition of ``pool`` to the same number of these members, and everybody as many."""
    if not pool or not member_ids:
        return {}
    readers_each = -(-len(member_ids) // len(pool))
    total = readers_each * len(pool)
    wanted = {
        member_id: -(-total * (place + 1) // len(member_ids)) - -(-total * place // len(member_ids))
        for place, member_id in enumerate(member_ids)
    }
    readers: dict[TopicPartition, list[str]] = {partition: [] for partition in pool}
    given: dict[str, set[TopicPartition]] = {}
    for member_id in member_ids:
        kept: set[TopicPartition] = set()
        given[member_id] = kept
        target = members[member_id].target
        for partition in pool:
            has_it = partition[1] in target.get(partition[0], ())
            if has_it and len(kept) < wanted[member_id] and len(readers[partition]) < readers_each:
                kept.add(partition)
                readers[partition].append(member_id)
    hungry = [member_id for member_id in member_ids if len(given[member_id]) < wanted[member_id]]
    for partition in pool:
        while len(readers[partition]) < readers_each:
            taker = next((each for each in hungry if partition not in given[each]), None)
            if taker is None:
                break
            hungry.remove(taker)
            given[taker].add(partition)
            readers[partition].append(taker)
            if len(given[taker]) < wanted[taker]:
                hungry.append(taker)  # behind the others
    return given


def _by_topic(pairs: Iterable[TopicPartition]) -> Assignment:
    found: dict[bytes, set[int]] = {}
    for topic_id, partition in pairs:
        found.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items()}
