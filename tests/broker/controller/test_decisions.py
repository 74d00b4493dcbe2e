"""A long play of brokers that come, go, lead and fail: decided as Apache Kafka 4.4.0 decided it."""

import json

from tests.golden.controller.ours import play_ours
from tests.golden.controller.record import TRANSCRIPT, perform_everything


async def test_every_decision_is_kafka_s() -> None:
    play = await play_ours(perform_everything)
    ours = json.loads(json.dumps(play.lines))
    recorded = json.loads(TRANSCRIPT.read_text(encoding="utf-8"))
    scene, differing = "", []
    for number, (mine, theirs) in enumerate(zip(ours, recorded, strict=True)):
        scene = theirs.get("scene", scene)
        if mine != theirs:
            differing.append((number, scene, mine, theirs))
    assert differing == []
