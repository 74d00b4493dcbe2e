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
from tests.broker.groups.streams.steps import answer_step, random_step

pytestmark = pytest.mark.slow

QUESTIONS_MAX = 1000


def test_both_say_the_same(chance: random.Random) -> None:
    kinds = (random_group, answer_group), (random_topology, answer_topology), (random_step, answer_step)
    asked = [(draw(chance), ours) for draw, ours in kinds for _ in range(QUESTIONS_MAX)]
    try:
        answers = ask_kafka(question for question, _ in asked)
    except KafkaMissing as missing:
        pytest.skip(f"Kafka's classes are not to be had: {missing}")
    for (question, ours), answer in zip(asked, answers, strict=True):
        assert ours(question) == answer, question
