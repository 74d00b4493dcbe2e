"""Our controller plays the part, in this process and in memory."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import trio

from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import MetadataChanges
from broker.quotas.desk import ClientQuotas
from protocol.schema import Message
from tests.broker.controller.node import CLUSTER_ID, CONTROLLER, ControllerNode
from tests.golden.controller.play import Play
from tests.golden.controller.record import SETTINGS


class OurController:
    """The controller of a node, whose log is heard as it is written."""

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


async def play_ours(act: Callable[[Play], Awaitable[None]], **formatted: Any) -> Play:
    """What a new controller of ours, formatted so, makes of it."""
    node = ControllerNode({**SETTINGS, "process.roles": "controller"}, **formatted)
    node.services.quotas = ClientQuotas(node.services.config, node.clock)
    node.start()
    play = Play(OurController(node))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.controller.run)
        await act(play)
        nursery.cancel_scope.cancel()
    return play
