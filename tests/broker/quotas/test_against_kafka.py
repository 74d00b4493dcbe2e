"""Our ledgers beside Kafka's own quota managers: as recorded, and with histories that are new every time."""

import json
import random

import pytest

from compat.oracle.jars import KafkaMissing
from tests.broker.quotas.asking import RECORDED, RECORDED_MAX, ask_kafka
from tests.broker.quotas.histories import play, random_history

HISTORIES_MAX = 300


def test_what_kafka_said() -> None:
    lines = RECORDED.read_text("utf-8").splitlines()
    assert len(lines) == RECORDED_MAX
    for line in lines:
        history, answers = json.loads(line)
        assert play(history) == answers, history


@pytest.mark.slow
def test_both_say_the_same(chance: random.Random) -> None:
    histories = [random_history(chance) for _ in range(HISTORIES_MAX)]
    try:
        answers = ask_kafka(histories)
    except KafkaMissing as missing:
        pytest.skip(f"Kafka's classes are not to be had: {missing}")
    for history, said in zip(histories, answers, strict=True):
        assert play(history) == said, history
