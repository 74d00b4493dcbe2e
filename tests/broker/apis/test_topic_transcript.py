"""A long conversation about topics and brokers, answered as Apache Kafka 4.4.0 answered it."""

import json
from pathlib import Path

import trio
import trio.testing

from compat.oracle.kafka import SMALL_NODE
from tests.broker.controller.node import ControllerNode
from tests.golden.metadata.answers import brief_answer, note_ids
from tests.golden.metadata.steps import ANSWERS, STEPS

GOLDEN = Path(__file__).parents[2] / "golden" / "metadata" / "transcript.json"


async def test_every_answer_is_kafka_s() -> None:
    node = ControllerNode(SMALL_NODE)
    node.start()
    ids: dict[str, bytes] = {}
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    differing = {}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        for step, line in zip(STEPS, recorded, strict=True):
            assert line["step"] == step.label
            request = step.ask(ids)
            answer = await node.ask(request, ANSWERS[type(request)], step.version)
            note_ids(answer, ids)
            brief = json.loads(json.dumps(brief_answer(answer)))
            if brief != line["answer"]:
                differing[step.label] = (brief, line["answer"])
            await trio.testing.wait_all_tasks_blocked()  # topics created in passing
        nursery.cancel_scope.cancel()
    assert differing == {}
