"""The assignors come to Kafka's assignments, and keep what they promise for groups that nobody has seen."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from broker.groups.assignors import ASSIGNORS, AssignmentProblem, Assignments, Subscriber
from protocol.uuids import uuid_from_text
from tests import golden

CASES = json.loads((Path(golden.__file__).parent / "assignors" / "assignments.json").read_text("utf-8"))

Targets = Mapping[str, Mapping[bytes, frozenset[int]]]


def topic_id(number: int) -> bytes:
    return (number * 0x9E3779B97F4A7C15 % (1 << 128)).to_bytes(16, "big")


def assign(
    name: str,
    members: Mapping[str, Subscriber],
    counts: Mapping[bytes, int],
    *,
    is_homogeneous: bool = True,
) -> Assignments:
    problem = AssignmentProblem(members, lambda topic: counts.get(topic, 0), is_homogeneous=is_homogeneous)
    return ASSIGNORS[name](problem)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['assignor']} {len(case['members'])}")
def test_kafka_assigns_the_same(case: dict[str, Any]) -> None:
    members = {
        member_id: Subscriber(
            said["instance"],
            frozenset(map(uuid_from_text, said["topics"])),
            {uuid_from_text(topic): frozenset(of) for topic, of in said["target"].items()},
        )
        for member_id, said in case["members"].items()
    }
    counts = {uuid_from_text(topic): count for topic, count in case["topics"].items()}
    assigned = assign(case["assignor"], members, counts, is_homogeneous=case["homogeneous"])
    found = {
        member_id: {topic: sorted(of) for topic, of in got.items()} for member_id, got in assigned.items()
    }
    assert found == {
        member_id: {uuid_from_text(topic): of for topic, of in got.items()}
        for member_id, got in case["assigned"].items()
    }


def test_kafka_was_asked_about_every_assignor_and_every_kind_of_group() -> None:
    assert {(case["assignor"], case["homogeneous"]) for case in CASES} == {
        (name, is_homogeneous) for name in ASSIGNORS for is_homogeneous in (True, False)
    }


@pytest.mark.parametrize("turn", range(20))
@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_every_partition_has_one_owner_that_reads_it(name: str, seed: int, turn: int) -> None:
    chance = random.Random(seed * 100 + turn)
    counts = {topic_id(number): chance.randrange(1, 12) for number in range(1, chance.randrange(2, 6))}
    same = frozenset(chance.sample(sorted(counts), chance.randrange(1, len(counts) + 1)))
    is_homogeneous = chance.random() < 0.5
    members: dict[str, Subscriber] = {}
    targets: Targets = {}
    for step in range(8):
        if members and chance.random() < 0.3:
            del members[chance.choice(sorted(members))]
        else:
            few = frozenset(chance.sample(sorted(counts), chance.randrange(len(counts) + 1)))
            members[f"member-{step}"] = Subscriber(None, same if is_homogeneous else few, {})
        if not members:
            continue
        known = {
            member_id: member._replace(target=targets.get(member_id, {}))
            for member_id, member in members.items()
        }
        assigned = assign(name, known, counts, is_homogeneous=is_homogeneous)
        check(assigned, members, counts)
        sizes = [sum(map(len, assigned[member_id].values())) for member_id in members]
        if name == "uniform" and is_homogeneous:
            assert max(sizes) - min(sizes) <= 1
        targets = {
            member_id: {topic: frozenset(of) for topic, of in got.items()}
            for member_id, got in assigned.items()
        }
        if name == "uniform":
            settled = {
                member_id: member._replace(target=targets[member_id]) for member_id, member in members.items()
            }
            again = assign(name, settled, counts, is_homogeneous=is_homogeneous)
            assert again == targets, "what is balanced stays as it is"


def check(assigned: Assignments, members: Mapping[str, Subscriber], counts: Mapping[bytes, int]) -> None:
    owners: dict[tuple[bytes, int], str] = {}
    for member_id, got in assigned.items():
        for topic, partitions in got.items():
            assert topic in members[member_id].topic_ids
            for partition in partitions:
                assert owners.setdefault((topic, partition), member_id) == member_id
    read = frozenset().union(*(member.topic_ids for member in members.values()))
    assert set(owners) == {(topic, number) for topic in read for number in range(counts[topic])}
    assert assigned.keys() == members.keys()


def test_ranges_put_static_members_first_and_the_same_numbers_together() -> None:
    counts = {topic_id(1): 3, topic_id(2): 3}
    both = frozenset(counts)
    members = {
        "a": Subscriber(None, both, {}),
        "b": Subscriber("z", both, {}),
        "c": Subscriber("y", both, {}),
    }
    assigned = assign("range", members, counts)
    assert {member_id: {min(of) for of in got.values()} for member_id, got in assigned.items()} == {
        "c": {0},
        "b": {1},
        "a": {2},
    }


def test_a_member_more_takes_only_its_share() -> None:
    counts = {topic_id(1): 9}
    read = frozenset(counts)
    before = {
        "a": {topic_id(1): frozenset(range(5))},
        "b": {topic_id(1): frozenset(range(5, 9))},
    }
    members = {member_id: Subscriber(None, read, target) for member_id, target in before.items()}
    assigned = assign("uniform", {**members, "c": Subscriber(None, read, {})}, counts)
    moved = set(assigned["c"][topic_id(1)])
    assert len(moved) == 3
    for member_id in before:
        assert set(assigned[member_id][topic_id(1)]) < before[member_id][topic_id(1)]


def test_a_large_group_is_assigned_step_by_step_in_linear_work() -> None:
    """Three hundred members that join one after the other: few partitions move each time."""
    counts = {topic_id(number): 100 for number in range(1, 11)}
    read = frozenset(counts)
    targets: dict[str, Mapping[bytes, frozenset[int]]] = {}
    moves = 0
    for number in range(300):
        members = {member_id: Subscriber(None, read, target) for member_id, target in targets.items()}
        members[f"member-{number}"] = Subscriber(None, read, {})
        assigned = assign("uniform", members, counts)
        moves += sum(map(len, assigned[f"member-{number}"].values()))
        targets = {
            member_id: {topic: frozenset(of) for topic, of in got.items()}
            for member_id, got in assigned.items()
        }
    # 1000/1 + 1000/2 + ... : a harmonic sum, and not 300 times 1000.
    assert moves < 1000 * 8
