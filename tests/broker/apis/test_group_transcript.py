"""A long conversation about groups, answered as Apache Kafka 4.4.0 answered it."""

import json
from pathlib import Path
from typing import Any

import trio
import trio.testing

from protocol.schema import Message
from tests.broker.groups.group_broker import as_read, group_broker
from tests.golden.groups.answers import Names
from tests.golden.groups.steps import ANSWERS, STEPS

GOLDEN = Path(__file__).parents[2] / "golden" / "groups" / "transcript.json"


async def test_every_answer_is_kafka_s(mock_clock: trio.testing.MockClock) -> None:
    names = Names()
    differing = {}
    pending: dict[str, tuple[Any, type[Message]]] = {}
    recorded = iter(json.loads(GOLDEN.read_text(encoding="utf-8")))
    async with group_broker() as broker:
        broker.make_offsets_topic()
        names.note_topic("t", broker.broker.create_topic("t", partitions=3))
        for step in STEPS:
            if step.pass_ms:
                await pass_time(mock_clock, step.pass_ms)
                continue
            if step.request is not None:
                request = names.fill_in(step.request)
                answer = broker.begin(request, step.version, f"client-{step.client}")
                pending[step.client] = answer, ANSWERS[type(step.request)]
            if not step.answered:
                assert not pending[step.client][0].is_answered, step.label
                continue
            line = next(recorded)
            assert line["step"] == step.label
            answer = as_read(*pending.pop(step.client), step.version)
            names.note_member(answer, step.name)
            brief = json.loads(json.dumps(names.brief(answer)))
            if brief != line["answer"]:
                differing[step.label] = (brief, line["answer"])
    assert next(recorded, None) is None
    assert differing == {}


async def pass_time(clock: trio.testing.MockClock, milliseconds: int) -> None:
    """In small steps, as in life: what is due has its moment before the next is due."""
    for _ in range(milliseconds // 100):
        clock.jump(0.1)
        await trio.testing.wait_all_tasks_blocked()
