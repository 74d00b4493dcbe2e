"""Histories, and what Kafka was seen to make of them, in a file that can be read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.storage.cleaning.comparing import LOOKED_AT, forgets_producers
from tests.storage.cleaning.histories import History, Step, make_history
from tests.storage.cleaning.kafka import KafkaLogs
from tests.storage.cleaning.outcomes import Outcome

FILE: Final = Path(__file__).with_name("recorded.jsonl")
HISTORIES: Final = 24
SEED: Final = "recorded"


def record(kafka: KafkaLogs) -> None:
    """Make the file anew: a line for each history, one for each of its steps, and one for each outcome."""
    lines: list[Any] = []
    for number in range(HISTORIES):
        history = make_history(f"{SEED} {number}")
        lines.append(["history", history.name, history.keys_max])
        log = kafka.play(history)
        for step in history.steps:
            is_done = log.perform(step)
            lines.append([step.name, step.facts] if is_done else [step.name, step.facts, "refused"])
            if step.name in LOOKED_AT:
                outcome = log.outcome()
                lines.append(["left", outcome.facts, {str(b): s for b, s in outcome.segments.items()}])
                if step.name == "restart" and forgets_producers(outcome):
                    break
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


class RecordedLog:
    """What Kafka did at each step of one history."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._answers: list[bool] = []
        self._outcomes: list[Outcome] = []
        self._performed = 0

    def add(self, line: list[Any]) -> None:
        if line[0] == "left":
            _, facts, segments = line
            self._outcomes.append(Outcome(facts, {int(base): left for base, left in segments.items()}, {}))
        else:
            self.steps.append(Step(line[0], line[1]))
            self._answers.append(len(line) == 2)

    def perform(self, step: Step) -> bool:
        """Steps are asked for in their order."""
        assert step == self.steps[self._performed]
        self._performed += 1
        return self._answers[self._performed - 1]

    def outcome(self) -> Outcome:
        looked_at = sum(step.name in LOOKED_AT for step in self.steps[: self._performed])
        return self._outcomes[looked_at - 1]


def read() -> Iterator[tuple[History, RecordedLog]]:
    """Every history, with what Kafka did."""
    name, keys_max, log = "", 0, RecordedLog()
    with FILE.open(encoding="utf-8") as lines:
        for text in lines:
            line = json.loads(text)
            if line[0] == "history":
                if name:
                    yield History(name, keys_max, log.steps), log
                _, name, keys_max = line
                log = RecordedLog()
            else:
                log.add(line)
    yield History(name, keys_max, log.steps), log
