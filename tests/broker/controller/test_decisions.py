"""A long play of brokers that come, go, lead and fail: decided as Apache Kafka 4.4.0 decided it."""

import json
from collections.abc import Sequence
from typing import Any

import trio

from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import MetadataChanges
from broker.quotas.desk import ClientQuotas
from protocol.schema import Message
from tests.broker.controller.node import CLUSTER_ID, CONTROLLER, ControllerNode
from tests.golden.controller.play import Play
from tests.golden.controller.record import SETTINGS, TRANSCRIPT, perform_everything


class OurController:
    """The controller of a node in this process."""

    cluster_id = CLUSTER_ID

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self._records: list[tuple[Message, int]] = []
        self._append = node.raft.append
        node.raft.append = self._noted  # type: ignore[method-assign]

    def _noted(self, records: Sequence[VersionedRecord]) -> tuple[MetadataImage, MetadataChanges]:
        self._records += records
        return self._append(records)

    async def ask(self, request: Message, answer: type[Message], version: int) -> Any:
        return await self._node.ask(request, answer, version, listener=CONTROLLER.name)

    async def new_records(self) -> Sequence[tuple[Message, int]]:
        found, self._records = self._records, []
        return found


async def test_every_decision_is_kafka_s() -> None:
    node = ControllerNode({**SETTINGS, "process.roles": "controller"})
    node.services.quotas = ClientQuotas(node.services.config, node.clock)
    node.start()
    play = Play(OurController(node))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        await perform_everything(play)
        nursery.cancel_scope.cancel()
    ours = json.loads(json.dumps(play.lines))
    recorded = json.loads(TRANSCRIPT.read_text(encoding="utf-8"))
    scene, differing = "", []
    for number, (mine, theirs) in enumerate(zip(ours, recorded, strict=True)):
        scene = theirs.get("scene", scene)
        if mine != theirs:
            differing.append((number, scene, mine, theirs))
    assert differing == []
