"""Controller nodes that ask each other without a network, on the virtual clock of a test."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio

from broker.network.call import Address
from broker.network.node_client import NodeUnreachable, response_class
from broker.raft.quorum import Quorum
from protocol.messages.fetch import FetchRequest
from protocol.schema import Message
from tests.broker.controller.node import CONTROLLER, ControllerNode

LEADER = Address(CONTROLLER.host, CONTROLLER.port)

BOOTSTRAP = {"controller.quorum.bootstrap.servers": str(LEADER)}


class Wires:
    """Who can be asked at which address, and what was asked: (Trio's time, address, request)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: dict[Address, ControllerNode] = {}
        self.asked: list[tuple[float, Address, Message]] = []
        self.on_answer: Callable[[Message, Any], None] = lambda request, answer: None
        """May look at each answer, and change it, before it arrives."""
        self.cut: set[Address] = set()
        """Who cannot be reached just now."""
        for module in ("observer", "campaign", "duties", "registration"):
            monkeypatch.setattr(f"broker.raft.{module}.NodeClient", self._client)

    @property
    def fetches(self) -> list[FetchRequest]:
        return [request for _, _, request in self.asked if isinstance(request, FetchRequest)]

    def _client(self, transport: object, resolve: Callable[[], Address | None], *, client_id: str) -> "_Wire":
        return _Wire(self, resolve)


class _Wire:
    """Stands in for NodeClient."""

    def __init__(self, wires: Wires, resolve: Callable[[], Address | None]) -> None:
        self._wires = wires
        self._resolve = resolve

    async def ask(self, request: Message, *, timeout_seconds: float) -> Any:
        address = self._resolve()
        if address is None:
            raise NodeUnreachable("nobody knows its address")
        self._wires.asked.append((trio.current_time(), address, request))
        node = self._wires.nodes.get(address)
        if node is None or address in self._wires.cut:
            await trio.lowlevel.checkpoint()
            raise NodeUnreachable("nobody is there")
        response = response_class(type(request))
        with trio.move_on_after(timeout_seconds):
            await trio.sleep(0.001)
            answer = await node.ask(request, response, request.versions.stop - 1, listener=CONTROLLER.name)
            self._wires.on_answer(request, answer)
            return answer
        raise NodeUnreachable("no answer")

    def close(self) -> None:
        """Nothing is open."""


class FollowingNode(ControllerNode):
    """A node of its own disk whose controller is elsewhere; it follows while ``run`` does."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, node_id: int = 2) -> None:
        super().__init__({"process.roles": "broker", **BOOTSTRAP, **(settings or {})}, node_id=node_id)
        self.controller_endpoints = []

    @property
    def quorum(self) -> Quorum:
        return self.services.quorum
