"""Our assignor of share groups beside Kafka's: as recorded, and with groups that are new every time."""

import json
import random

import pytest

from compat.oracle.jars import KafkaMissing
from tests.broker.share.asking import RECORDED, RECORDED_MAX, answer, ask_kafka, random_group

QUESTIONS_MAX = 1000


def test_what_kafka_said() -> None:
    lines = RECORDED.read_text("utf-8").splitlines()
    assert len(lines) == RECORDED_MAX
    for line in lines:
        question, said = json.loads(line)
        assert answer(question) == said, question


@pytest.mark.slow
def test_both_say_the_same(chance: random.Random) -> None:
    questions = [random_group(chance) for _ in range(QUESTIONS_MAX)]
    try:
        answers = ask_kafka(questions)
    except KafkaMissing as missing:
        pytest.skip(f"Kafka's classes are not to be had: {missing}")
    for question, said in zip(questions, answers, strict=True):
        assert answer(question) == said, question
