"""Who of a share group reads which partitions: ``simple``, as evenly as sharing allows (KIP-932).

It comes to the assignments of Kafka's assignor of the same name, so that a group may move between the two
without moving its partitions.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TypeAlias

from broker.groups.assignors import Assignment, Assignments, Subscriber
from broker.groups.java_order import (
    computed_in_java_order,
    ids_in_java_order,
    numbers_in_java_order,
    put_in_java_order,
    uuid_hash,
)

TopicPartition: TypeAlias = tuple[bytes, int]


def assign_simply(
    members: Mapping[str, Subscriber],
    partitions: Mapping[bytes, Set[int]],
    same_topics: Sequence[bytes] | None,
) -> Assignments:
    """What each member should read of ``partitions``; every member is in it.

    With fewer partitions than members, members share them.  Everybody keeps as much as possible.

    Members come in the order in which Kafka would look at them, and so does ``same_topics``, what all of them
    read; None if they read different topics.  As with Kafka, a topic of which a member has lost all may stay
    without partitions, and one that nobody reads any more stays while members read different ones.
    """
    topics = [*same_topics] if same_topics is not None else _topics_of(members)
    if not topics:
        return {member_id: {} for member_id in members}
    found = {
        member_id: {
            topic: set(of_topic)
            for topic, of_topic in member.target.items()
            if same_topics is None or topic in same_topics
        }
        for member_id, member in members.items()
    }
    owned = list(found.values())
    if same_topics is not None:
        pool = [(topic, index) for topic in topics for index in sorted(partitions.get(topic, ()))]
        held = [
            [(topic, index) for topic in ids_in_java_order(of) for index in numbers_in_java_order(of[topic])]
            for of in owned
        ]
        _share_out(owned, held, range(len(owned)), pool, _pair_hash)
    else:
        for topic in topics:
            readers = [number for number, of in enumerate(members.values()) if topic in of.topic_ids]
            pool = [(topic, index) for index in sorted(partitions.get(topic, ()))]
            held = [[(topic, index) for index in numbers_in_java_order(of.get(topic, ()))] for of in owned]
            _share_out(owned, held, readers, pool, _partition_hash)
    return {member_id: _frozen(of) for member_id, of in found.items()}


def _topics_of(members: Mapping[str, Subscriber]) -> list[bytes]:
    return list(dict.fromkeys(topic for member in members.values() for topic in member.topic_ids))


def _share_out(
    owned: Sequence[dict[bytes, set[int]]],
    held: Sequence[Sequence[TopicPartition]],
    readers: Sequence[int],
    pool: Sequence[TopicPartition],
    hash_code: Callable[[TopicPartition], int],
) -> None:
    """Give every partition of ``pool`` to the same number of readers, and every reader as many.

    Members are numbers.  ``held`` is what of these topics is in ``owned``, in Kafka's order.
    """
    readers_each = -(-len(readers) // len(pool)) if pool else 0
    each = readers_each * len(pool) / len(readers)
    wanted = [0] * len(owned)
    for place, number in enumerate(readers):
        wanted[number] = math.ceil(each * (place + 1)) - math.ceil(each * place)
    counts = list(map(len, held))
    readers_of: dict[TopicPartition, list[int]] = {}
    for number, of_member in enumerate(held):
        for partition in of_member:
            readers_of.setdefault(partition, []).append(number)

    def take(number: int, partition: TopicPartition) -> None:
        readers_of[partition].remove(number)
        owned[number][partition[0]].remove(partition[1])
        counts[number] -= 1

    shared_before = {partition: list(of) for partition, of in readers_of.items() if len(of) > readers_each}
    for number, of_member in enumerate(held):
        too_many = counts[number] - wanted[number]
        if too_many > 0:
            for partition in put_in_java_order(of_member, hash_code)[:too_many]:
                take(number, partition)
    for partition, before in shared_before.items():
        too_many = len(readers_of[partition]) - readers_each
        if too_many > 0:
            left = [number for number in put_in_java_order(before, int) if number in readers_of[partition]]
            for number in left[:too_many]:
                take(number, partition)

    for partition in pool:
        readers_of.setdefault(partition, [])
    hungry = [number for number in readers if counts[number] < wanted[number]]
    place, has_given = 0, False
    seen = [partition for of_member in held for partition in of_member]
    capacity = int((len(pool) + 1) / 0.75 + 1)
    for partition in computed_in_java_order([*seen, *pool], capacity, hash_code):
        while hungry and len(readers_of[partition]) < readers_each:
            if place == len(hungry):
                if not has_given:
                    break  # all of them have it
                place, has_given = 0, False
            number = hungry[place]
            place += 1
            if number in readers_of[partition]:
                continue
            readers_of[partition].append(number)
            owned[number].setdefault(partition[0], set()).add(partition[1])
            counts[number] += 1
            has_given = True
            if counts[number] >= wanted[number]:
                place -= 1
                del hungry[place]


def _pair_hash(partition: TopicPartition) -> int:
    """What ``hashCode`` of Kafka's record of the two gives."""
    return 31 * uuid_hash(partition[0]) + partition[1]


def _partition_hash(partition: TopicPartition) -> int:
    return partition[1]


def _frozen(owned: Mapping[bytes, set[int]]) -> Assignment:
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}
