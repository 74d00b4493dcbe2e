"""Asks Kafka's own classes what ours are asked; as a command, records some of what they say."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import compat.streams
from tests import golden
from tests.broker.groups.streams.questions import JsonObject, random_group, random_topology
from tests.broker.groups.streams.steps import random_step
from tests.support.judges import ask_judge

JUDGE = Path(compat.streams.__file__).with_name("judge")
RECORDED = Path(golden.__file__).parent / "streams"

RECORDED_MAX = 30


def ask_kafka(questions: Iterable[JsonObject]) -> list[JsonObject]:
    """Kafka's answers.  Raises KafkaMissing where Java or Kafka's jars are not to be had."""
    return ask_judge(JUDGE, "Judge", questions)


def recorded(name: str) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Questions and what Kafka answered."""
    for line in (RECORDED / f"{name}.jsonl").read_text("utf-8").splitlines():
        question, answer = json.loads(line)
        yield question, answer


def record(name: str, draw: Callable[[random.Random], JsonObject]) -> None:
    """Keep some questions and what Kafka answers."""
    chance = random.Random(name)
    questions = [draw(chance) for _ in range(RECORDED_MAX)]
    lines = [json.dumps(pair) + "\n" for pair in zip(questions, ask_kafka(questions), strict=True)]
    (RECORDED / f"{name}.jsonl").write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    record("groups", random_group)
    record("topologies", random_topology)
    record("steps", random_step)
