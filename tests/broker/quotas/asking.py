"""Plays lives of quotas to Kafka's own classes; as a command, records some of what they say."""

import json
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat.java_programs import program_command
from tests import golden
from tests.broker.quotas.histories import JsonObject, random_history

JUDGE = Path(__file__).with_name("judge")
RECORDED = Path(golden.__file__).parent / "quotas.jsonl"

RECORDED_MAX = 40


def ask_kafka(histories: Iterable[JsonObject]) -> list[list[Any]]:
    """What Kafka says to each step.  Raises KafkaMissing where Java or Kafka's jars are not to be had."""
    asked = "".join(json.dumps(history) + "\n" for history in histories)
    done = subprocess.run(
        program_command(JUDGE, "QuotaJudge"),
        input=asked,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=300,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    chance = random.Random("quotas")
    drawn = [random_history(chance) for _ in range(RECORDED_MAX)]
    pairs = zip(drawn, ask_kafka(drawn), strict=True)
    RECORDED.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), "utf-8")
