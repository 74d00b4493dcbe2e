"""Several brokers that coordinate: they share an image and reach each other, each with a disk in memory.

Every partition has one replica.  ``move`` gives it to another broker, with all that is in its log.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import trio

from broker.metadata import replay
from broker.metadata.image import MetadataImage, empty_image
from broker.metadata.topic_names import GROUP_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from broker.network.node_client import NodeUnreachable, response_class
from broker.network.waiting import Waiting
from broker.share.coordinator import open_share_coordinator
from broker.share.host import open_share_host
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerEndpoint,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.broker.groups.group_broker import GroupBroker, group_broker
from tests.broker.metadata.records import new_partition, topic
from tests.broker.partitions.one_broker import settle

NOBODY = -1


class Cluster:
    """``brokers`` by their ids.  Who is in ``unreachable`` gets no request."""

    def __init__(self) -> None:
        self.image: MetadataImage = empty_image("cluster")
        self.brokers: dict[int, GroupBroker] = {}
        self.unreachable: set[int] = set()
        self.asked: list[tuple[int, Message]] = []
        """What brokers have asked each other: whom, and what."""
        self.held: trio.Event | None = None
        """While there is one, requests between brokers wait for it."""
        self.held_kind: type[Message] = Message
        """The kind of request that does."""
        self._topics_made = 0

    def apply(self, *records: Message) -> None:
        self.image, changes = replay.apply(
            self.image, records, offset=self.image.offset + len(records), epoch=1
        )
        for broker in self.brokers.values():
            broker.broker.image = self.image
        for broker in self.brokers.values():
            for listener in broker.broker.listeners:
                listener(self.image, changes)
            broker.broker.make_missing()

    def register(self, broker_id: int) -> None:
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"broker{broker_id}.example", port=9092)
        self.apply(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=self.image.offset + 1,
                fenced=False,
                rack=None,
                end_points=[endpoint],
            )
        )

    def create_topic(self, name: str, leaders: Sequence[int | Sequence[int]]) -> bytes:
        """A topic with a partition for each of ``leaders``, or of lists of replicas that begin with one."""
        self._topics_made += 1
        topic_id = self._topics_made.to_bytes(16, "big")
        partitions = (new_partition([each] if isinstance(each, int) else each) for each in leaders)
        self.apply(*topic(name, topic_id, *partitions))
        return topic_id

    def move(self, topic: str, index: int, to: int) -> None:
        """Let another broker lead the partition; it finds what the one before has written."""
        content = self.take_away(topic, index, to)
        log = self.brokers[to].broker.partitions.local_log(topic, index)
        log.append_as_follower(content, now_ms=self.brokers[to].broker.clock.now_ms())
        self.give_leadership(topic, index, to)

    def take_away(self, topic: str, index: int, to: int) -> bytes:
        """End a leadership, without a successor yet; return what is in the log."""
        partition = self.image.topics[topic].partitions[index]
        log = self.brokers[partition.leader].broker.partitions.local_log(topic, index)
        found = log.read(0, 1 << 20)
        content = b"" if found is None else found.read()
        self._change(topic, index, leader=NOBODY, replicas=[to], isr=[to])
        return content

    def give_leadership(self, topic: str, index: int, to: int) -> None:
        self._change(topic, index, leader=to)

    def _change(self, topic: str, index: int, **changes: Any) -> None:
        topic_id = self.image.topics[topic].id
        if "replicas" in changes:
            changes["directories"] = [bytes(16)] * len(changes["replicas"])
        self.apply(PartitionChangeRecord(partition_id=index, topic_id=topic_id, **changes))

    def asked_of(self, kind: type[Message]) -> list[tuple[int, Any]]:
        """The requests of one kind that brokers have sent to each other."""
        return [(broker_id, request) for broker_id, request in self.asked if isinstance(request, kind)]


class ClusterNodes:
    """Stands in for ``Nodes``: requests and answers travel as bytes, and arrive at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def new_client(self, broker_id: int, purpose: str) -> "ClusterClient":
        return ClusterClient(self._cluster, broker_id, purpose)

    new_fetcher_client = new_client

    async def ask(
        self, broker_id: int, request: Message, *, version: int | None = None, timeout_seconds: float
    ) -> Any:
        client = self.new_client(broker_id, "general")
        return await client.ask(request, version=version, timeout_seconds=timeout_seconds)


class ClusterClient:
    """A connection between two brokers."""

    def __init__(self, cluster: Cluster, broker_id: int, purpose: str) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._purpose = purpose

    async def ask(self, request: Message, *, version: int | None = None, timeout_seconds: float) -> Any:
        await trio.lowlevel.checkpoint()
        cluster = self._cluster
        cluster.asked.append((self._broker_id, request))
        while cluster.held is not None and isinstance(request, cluster.held_kind):
            await cluster.held.wait()
        if self._broker_id in cluster.unreachable:
            raise NodeUnreachable("there is no way to it")
        version = request.versions.stop - 1 if version is None else version
        answer = cluster.brokers[self._broker_id].begin(request, version, self._purpose)
        if isinstance(answer, Waiting):
            with trio.move_on_after(timeout_seconds):
                answer = await answer.wait()
            if isinstance(answer, Waiting):
                raise NodeUnreachable("no answer")
        response = response_class(type(request))
        assert isinstance(answer, response)
        return response.decode(answer.encode(version), version)

    def close(self) -> None:
        pass


@asynccontextmanager
async def several_brokers(
    count: int = 2, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[Cluster]:
    """Brokers 1 to ``count``, who have no topics yet."""
    cluster = Cluster()
    async with AsyncExitStack() as stack:
        for broker_id in range(1, count + 1):
            opened = await stack.enter_async_context(
                group_broker(settings, image=cluster.image, node_id=broker_id)
            )
            one: Any = opened.broker
            one.apply = cluster.apply
            one.nodes = ClusterNodes(cluster)
            one.share_coordinator = await stack.enter_async_context(open_share_coordinator(one.services))
            one.share = await stack.enter_async_context(open_share_host(one.services))
            cluster.brokers[broker_id] = opened
        for broker_id in cluster.brokers:
            cluster.register(broker_id)
        yield cluster


__all__ = ["GROUP_OFFSETS", "SHARE_GROUP_STATE", "TRANSACTION_STATE", "Cluster", "settle", "several_brokers"]
