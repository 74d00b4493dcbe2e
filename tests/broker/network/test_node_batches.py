"""Questions for other brokers go together, one request at a time for each broker."""

from collections import deque
from typing import Any, cast

import trio
from trio.testing import wait_all_tasks_blocked

from broker.network.node_batches import NodeBatches
from broker.network.node_client import NodeClient
from broker.services import Services


class Client:
    """A connection that only notes its end."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Bench:
    """Stands in for ``services.nodes`` and for whoever exchanges requests and answers."""

    def __init__(self, nursery: trio.Nursery | None) -> None:
        self.clients: dict[int, Client] = {}
        self.requests: list[tuple[int, list[str]]] = []
        self.answers: dict[int, trio.Event] = {}
        services = cast("Services", type("Stand-in", (), {"nodes": self}))
        self.batches: NodeBatches[str] = NodeBatches(services, lambda: nursery, "test", self.exchange)

    def new_client(self, broker_id: int, purpose: str) -> Any:
        assert purpose == "test"
        assert broker_id not in self.clients, "connections are kept"
        self.clients[broker_id] = Client()
        return self.clients[broker_id]

    async def exchange(self, broker_id: int, client: NodeClient, queue: deque[str]) -> None:
        assert cast("Any", client) is self.clients[broker_id]
        self.requests.append((broker_id, [queue.popleft() for _ in range(min(len(queue), 3))]))
        self.answers[broker_id] = trio.Event()
        await self.answers[broker_id].wait()


async def test_what_comes_meanwhile_goes_together() -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        for item in "abcdef":
            bench.batches.add(2, item)
            await wait_all_tasks_blocked()
        bench.batches.add(3, "x")
        await wait_all_tasks_blocked()
        assert bench.requests == [(2, ["a"]), (3, ["x"])], "brokers do not wait for each other"
        bench.answers[2].set()
        await wait_all_tasks_blocked()
        bench.answers[2].set()
        await wait_all_tasks_blocked()
        assert bench.requests[2:] == [(2, ["b", "c", "d"]), (2, ["e", "f"])]
        bench.answers[2].set()
        await wait_all_tasks_blocked()
        bench.batches.add(2, "g")
        await wait_all_tasks_blocked()
        assert bench.requests[-1] == (2, ["g"])
        assert not any(client.is_closed for client in bench.clients.values())
        nursery.cancel_scope.cancel()
    assert all(client.is_closed for client in bench.clients.values())


async def test_nobody_is_asked_when_the_service_has_ended() -> None:
    bench = Bench(None)
    bench.batches.add(2, "a")
    await wait_all_tasks_blocked()
    assert not bench.requests


async def test_what_is_asked_just_before_the_end_does_not_disturb_it() -> None:
    async with trio.open_nursery() as nursery:
        services = [nursery]
        bench = Bench(None)
        bench.batches = NodeBatches(
            cast("Services", type("Stand-in", (), {"nodes": bench})),
            lambda: services[0] if services else None,
            "test",
            bench.exchange,
        )
        bench.batches.add(2, "a")
        services.clear()
        nursery.cancel_scope.cancel()
    assert bench.clients[2].is_closed
