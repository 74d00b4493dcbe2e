"""Asking other brokers about many things: what comes while a request is under way goes into the next one."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from broker.network.node_client import NodeClient
    from broker.services import Services

Item = TypeVar("Item")


class NodeBatches(Generic[Item]):
    """One queue, and while there is something in it one task and one request under way, for each broker.

    ``exchange`` takes from the queue's beginning what goes into one request, asks, and tells whoever waits;
    it lets no ``NodeUnreachable`` escape.  Each purpose has connections of its own, so that slow answers hold
    back nothing else.
    """

    def __init__(
        self,
        services: "Services",
        nursery: Callable[[], trio.Nursery | None],
        purpose: str,
        exchange: "Callable[[int, NodeClient, deque[Item]], Awaitable[None]]",
    ) -> None:
        """``nursery`` is that of the service which asks, None when it serves no longer.

        ``exchange`` is given the broker's id, the connection and the queue.
        """
        self._services = services
        self._nursery = nursery
        self._purpose = purpose
        self._exchange = exchange
        self._queues: dict[int, deque[Item]] = {}
        self._clients: dict[int, NodeClient] = {}

    def add(self, broker_id: int, item: Item) -> None:
        """Ask soon."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.append(item)
            return
        nursery = self._nursery()
        if nursery is not None:  # otherwise the broker stops, and nobody waits any more
            queue = self._queues[broker_id] = deque((item,))
            nursery.start_soon(self._serve, broker_id, self._client(broker_id, nursery), queue)

    async def _serve(self, broker_id: int, client: "NodeClient", queue: "deque[Item]") -> None:
        try:
            while queue:
                await self._exchange(broker_id, client, queue)
        finally:
            del self._queues[broker_id]

    def _client(self, broker_id: int, nursery: trio.Nursery) -> "NodeClient":
        client = self._clients.get(broker_id)
        if client is None:
            client = self._clients[broker_id] = self._services.nodes.new_client(broker_id, self._purpose)
            nursery.start_soon(self._close_in_the_end, broker_id, client)
        return client

    async def _close_in_the_end(self, broker_id: int, client: "NodeClient") -> None:
        try:
            await trio.sleep_forever()
        finally:
            client.close()
            del self._clients[broker_id]
