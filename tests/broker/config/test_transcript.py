"""A long conversation about settings, answered as Apache Kafka 4.4.0 answered it."""

import json
from pathlib import Path
from typing import Any

import pytest

from compat.oracle.kafka import SMALL_NODE
from tests.broker.config.one_node import OneNode
from tests.golden.configs.answers import ANSWERS, brief_answer, brief_request
from tests.golden.configs.steps import STEPS

GOLDEN = Path(__file__).parents[2] / "golden" / "configs"


def test_it() -> None:
    node = OneNode(SMALL_NODE)
    for index, (request, recorded) in enumerate(
        zip(STEPS, json.loads((GOLDEN / "transcript.json").read_text()), strict=True)
    ):
        asked = brief_request(request)
        assert recorded["ask"] == asked
        got = json.loads(json.dumps(brief_answer(node.ask(request, ANSWERS[type(request)][1]))))
        if got != recorded["answer"]:
            print(index, asked, "\n   W", recorded["answer"], "\n   G", got)
