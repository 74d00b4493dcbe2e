"""Plays lives of quotas to Kafka's own classes; as a command, records some of what they say."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import golden
from tests.broker.quotas.histories import JsonObject, random_history
from tests.support.judges import ask_judge

JUDGE = Path(__file__).with_name("judge")
RECORDED = Path(golden.__file__).parent / "quotas.jsonl"

RECORDED_MAX = 40


def ask_kafka(histories: Iterable[JsonObject]) -> list[list[Any]]:
    """What Kafka says to each step.  Raises KafkaMissing where Java or Kafka's jars are not to be had."""
    return ask_judge(JUDGE, "QuotaJudge", histories)


if __name__ == "__main__":
    chance = random.Random("quotas")
    drawn = [random_history(chance) for _ in range(RECORDED_MAX)]
    pairs = zip(drawn, ask_kafka(drawn), strict=True)
    RECORDED.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), "utf-8")
