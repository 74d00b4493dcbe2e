"""A long conversation about settings, answered word for word as Apache Kafka 4.4.0 answered it."""

import json
from pathlib import Path

from compat.oracle.kafka import SMALL_NODE
from tests.broker.config.one_node import OneNode
from tests.golden.configs.answers import ANSWERS, brief_answer, brief_request
from tests.golden.configs.steps import STEPS

TRANSCRIPT = Path(__file__).parents[2] / "golden" / "configs" / "transcript.json"


def test_every_answer_is_kafkas() -> None:
    node = OneNode(SMALL_NODE)
    recorded = json.loads(TRANSCRIPT.read_text(encoding="utf-8"))
    assert [step["ask"] for step in recorded] == json.loads(
        json.dumps([brief_request(step) for step in STEPS])
    )
    for request, step in zip(STEPS, recorded, strict=True):
        answer = node.ask(request, ANSWERS[type(request)][1])
        assert json.loads(json.dumps(brief_answer(answer))) == step["answer"], step["ask"]
