"""Share groups that need an assignment, drawn at random, and what Kafka's own assignor gives their members.

As a command, records some of what it says.
"""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from broker.groups.assignors import Subscriber
from broker.groups.java_order import in_java_order
from broker.share.simple_assignor import assign_simply
from protocol.uuids import uuid_from_text, uuid_to_text
from tests import golden
from tests.support.judges import ask_judge

JsonObject = dict[str, Any]

JUDGE = Path(__file__).with_name("judge")
RECORDED = Path(golden.__file__).parent / "share_assignments.jsonl"

RECORDED_MAX = 40

PARTITIONS_MAX = 12


def ask_kafka(questions: Iterable[JsonObject]) -> list[JsonObject]:
    """Kafka's answers.  Raises KafkaMissing where Java or Kafka's jars are not to be had."""
    return ask_judge(JUDGE, "ShareJudge", questions)


def answer(question: JsonObject) -> JsonObject:
    """Ours."""
    topics_of = {member_id: of["topics"] for member_id, of in question["members"].items()}
    members = {
        member_id: Subscriber(
            None,
            set(map(uuid_from_text, topics_of[member_id])),
            _partitions(question["members"][member_id]["target"]),
        )
        for member_id in in_java_order(topics_of)
    }
    first = topics_of[next(iter(members))]
    is_homogeneous = all(set(topics) == set(first) for topics in topics_of.values())
    assigned = assign_simply(
        members,
        _partitions(question["partitions"]),
        list(map(uuid_from_text, first)) if is_homogeneous else None,
    )
    return {
        member_id: {uuid_to_text(topic): sorted(partitions) for topic, partitions in of.items()}
        for member_id, of in assigned.items()
    }


def _partitions(told: JsonObject) -> dict[bytes, frozenset[int]]:
    return {uuid_from_text(topic): frozenset(partitions) for topic, partitions in told.items()}


def random_group(chance: random.Random) -> JsonObject:
    """A group that was assigned to some times already, and has changed a little each time."""
    topics = [uuid_to_text(chance.randbytes(16)) for _ in range(chance.randint(1, 5))]
    question: JsonObject = {
        "members": {},
        "partitions": {topic: list(range(chance.randint(0, PARTITIONS_MAX))) for topic in topics},
        "count": PARTITIONS_MAX,
    }
    members: JsonObject = question["members"]
    read_the_same = chance.random() < 0.5
    for _ in range(chance.randint(1, 20 if chance.random() < 0.2 else 6)):
        _join(chance, members, topics, read_the_same)
    for _ in range(chance.randint(0, 4)):
        for member_id, target in answer(question).items():
            members[member_id]["target"] = target
        _change(chance, question, topics, read_the_same)
    return question


def _join(chance: random.Random, members: JsonObject, topics: list[str], read_the_same: bool) -> None:
    read = list(topics) if read_the_same else chance.sample(topics, chance.randint(0, len(topics)))
    members[uuid_to_text(chance.randbytes(16))] = {"topics": read, "target": {}}


def _change(chance: random.Random, question: JsonObject, topics: list[str], read_the_same: bool) -> None:
    members: JsonObject = question["members"]
    for _ in range(chance.randint(1, 3)):
        kind = chance.randrange(5)
        if kind < 2:
            _join(chance, members, topics, read_the_same)
        elif kind == 2 and len(members) > 1:
            del members[chance.choice(list(members))]
        elif kind == 3:
            # State of partitions that somebody reads is not deleted.
            topic = chance.choice(topics)
            known = len(question["partitions"][topic])
            question["partitions"][topic] = list(range(chance.randint(known, PARTITIONS_MAX)))
        elif not read_the_same:
            member = members[chance.choice(list(members))]
            member["topics"] = chance.sample(topics, chance.randint(0, len(topics)))


if __name__ == "__main__":
    drawing = random.Random("share assignments")
    drawn = [random_group(drawing) for _ in range(RECORDED_MAX)]
    pairs = zip(drawn, ask_kafka(drawn), strict=True)
    RECORDED.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), "utf-8")
