"""Our assignor and our topologies beside Kafka's own classes, with questions that are new every time."""

import random

import pytest

from compat.oracle.jars import KafkaMissing
from tests.broker.groups.streams.asking import ask_kafka
from tests.broker.groups.streams.questions import (
    answer_group,
    answer_topology,
    random_group,
    random_topology,
)

pytestmark = pytest.mark.slow

QUESTIONS_MAX = 1000


def test_both_say_the_same(chance: random.Random) -> None:
    groups = [random_group(chance) for _ in range(QUESTIONS_MAX)]
    topologies = [random_topology(chance) for _ in range(QUESTIONS_MAX)]
    try:
        answers = ask_kafka([*groups, *topologies])
    except KafkaMissing as missing:
        pytest.skip(f"Kafka's classes are not to be had: {missing}")
    for question, answer in zip(groups, answers[:QUESTIONS_MAX], strict=True):
        assert answer_group(question) == answer, question
    for question, answer in zip(topologies, answers[QUESTIONS_MAX:], strict=True):
        assert answer_topology(question) == answer, question
