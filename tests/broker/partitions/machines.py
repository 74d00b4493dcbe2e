"""Brokers in memory that replicate: a controller of a few lines, metadata that comes late, links that break.

What leads and follows is the real thing, with logs on disks that can crash; the controller is not.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import trio

from broker.metadata import replay
from broker.metadata.image import NO_LEADER, MetadataImage, empty_image
from broker.network.node_client import NodeUnreachable, response_class
from broker.network.waiting import NotYet, Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerEndpoint,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from storage.memory_filesystem import MemoryFileSystem
from storage.partition_log import PartitionLog
from tests.broker.metadata import records
from tests.broker.partitions.one_broker import (
    START_MS,
    OneBroker,
    one_broker,
    produce_request,
    setting_records,
)

NO_LEADER_CHANGE = -2
"""In a PartitionChangeRecord."""


PRODUCE_SECONDS = 5.0


class VirtualClock:
    """Wall time goes with Trio's."""

    def now_ms(self) -> int:
        return START_MS + int(trio.current_time() * 1000)


@dataclass
class Machine:
    """What outlives a broker's process."""

    broker_id: int
    file_system: MemoryFileSystem = field(default_factory=MemoryFileSystem)
    broker: OneBroker | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    applied: int = 0
    """How many of the controller's batches of records the running broker has."""
    ended: trio.Event = field(default_factory=trio.Event)


class Replicated:
    """Machines with a broker each, and who is in charge of them."""

    def __init__(self, chance: Random, nursery: trio.Nursery, settings: Mapping[str, str]) -> None:
        self.chance = chance
        self.settings = settings
        self.machines: dict[int, Machine] = {}
        self.image: MetadataImage = empty_image("cluster")
        self.cut: set[tuple[int, int]] = set()
        """Pairs of brokers (from, to) between which nothing gets through."""
        self.delay_max = 0.02
        """Of news from the controller, in seconds."""
        self._nursery = nursery
        self._batches: list[Sequence[Message]] = []
        self._topics_made = 0

    # The controller

    def commit(self, *records: Message) -> None:
        """Decide, and let the brokers hear of it sooner or later, in order."""
        self.image, _ = replay.apply(self.image, records, offset=self.image.offset + len(records), epoch=1)
        self._batches.append(records)
        for machine in self.machines.values():
            if machine.broker is not None:
                self._nursery.start_soon(self._tell_later, machine, machine.broker)

    async def _tell_later(self, machine: Machine, broker: OneBroker) -> None:
        await trio.sleep(self.chance.random() * self.delay_max)
        if machine.broker is broker and machine.applied < len(self._batches):
            records = self._batches[machine.applied]
            machine.applied += 1
            broker.apply(*records)

    def create_topic(self, name: str, replicas: Sequence[int], partitions: int = 1, **settings: str) -> bytes:
        self._topics_made += 1
        topic_id = self._topics_made.to_bytes(16, "big")
        self.commit(
            *records.topic(
                name,
                topic_id,
                *(
                    records.new_partition(replicas, leader=replicas[index % len(replicas)])
                    for index in range(partitions)
                ),
            ),
            *setting_records(name, {key.replace("_", "."): value for key, value in settings.items()}),
        )
        return topic_id

    def change(self, topic: str, index: int, *, leader: int = NO_LEADER_CHANGE, **changes: Any) -> None:
        self.commit(
            PartitionChangeRecord(
                partition_id=index, topic_id=self.image.topics[topic].id, leader=leader, **changes
            )
        )

    def elect(self, topic: str, index: int, leader: int) -> None:
        """Give the leadership to a member of the in-sync set."""
        assert leader in self.image.topics[topic].partitions[index].isr
        self.change(topic, index, leader=leader)

    def is_alive(self, broker_id: int) -> bool:
        return self.machines[broker_id].broker is not None

    def _broker_died(self, broker_id: int) -> None:
        for topic in self.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                changes: dict[str, Any] = {}
                isr = [member for member in partition.isr if member != broker_id]
                if isr and len(isr) < len(partition.isr):
                    changes["isr"] = isr
                if partition.leader == broker_id:
                    alive = [member for member in isr if self.is_alive(member)]
                    changes["leader"] = self.chance.choice(alive) if alive else NO_LEADER
                if changes:
                    self.change(topic.name, index, **changes)

    def _broker_registered(self, broker_id: int) -> None:
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"broker{broker_id}.example", port=9092)
        self.commit(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=self.image.offset + 1,
                fenced=False,
                end_points=[endpoint],
            )
        )
        for topic in self.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                if partition.leader == NO_LEADER and broker_id in partition.isr:
                    self.change(topic.name, index, leader=broker_id)

    def judge(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Accept an in-sync set, unless its leader knows too little."""
        answer = AlterPartitionResponse()
        for asked_topic in request.topics:
            answers = []
            topic = self.image.topics_by_id[asked_topic.topic_id]
            for asked in asked_topic.partitions:
                partition = topic.partitions[asked.partition_index]
                isr = [member.broker_id for member in asked.new_isr_with_epochs]
                code = 0
                if asked.leader_epoch != partition.leader_epoch or partition.leader != request.broker_id:
                    code = ErrorCode.FENCED_LEADER_EPOCH
                elif asked.partition_epoch != partition.partition_epoch:
                    code = ErrorCode.INVALID_UPDATE_VERSION
                elif any(
                    not self.is_alive(member.broker_id)
                    or member.broker_epoch not in (-1, self.image.brokers[member.broker_id].epoch)
                    for member in asked.new_isr_with_epochs
                ):
                    code = ErrorCode.INELIGIBLE_REPLICA
                else:
                    self.change(topic.name, asked.partition_index, isr=isr)
                    partition = self.image.topics[topic.name].partitions[asked.partition_index]
                answers.append(
                    AlterPartitionResponsePartitionData(
                        partition_index=asked.partition_index,
                        error_code=code,
                        leader_id=partition.leader,
                        leader_epoch=partition.leader_epoch,
                        isr=list(partition.isr),
                        partition_epoch=partition.partition_epoch,
                    )
                )
            answer.topics.append(
                AlterPartitionResponseTopicData(topic_id=asked_topic.topic_id, partitions=answers)
            )
        return answer

    # Machines

    async def start(self, broker_id: int) -> None:
        """Start a broker, which registers; return when it serves."""
        machine = self.machines.setdefault(broker_id, Machine(broker_id))
        assert machine.broker is None
        await self._nursery.start(self._run, machine)

    async def _run(self, machine: Machine, task_status: trio.TaskStatus[None]) -> None:
        machine.scope = trio.CancelScope()
        machine.ended = trio.Event()
        machine.applied = len(self._batches)
        try:
            with machine.scope:
                async with one_broker(
                    self.settings,
                    file_system=machine.file_system,
                    image=self.image,
                    node_id=machine.broker_id,
                    prepare=lambda broker: self._prepare(machine, broker),
                ) as broker:
                    while machine.applied < len(self._batches):  # what was decided meanwhile
                        machine.applied += 1
                        broker.apply(*self._batches[machine.applied - 1])
                    machine.broker = broker
                    self._broker_registered(machine.broker_id)
                    task_status.started()
                    await trio.sleep_forever()
        finally:
            machine.broker = None
            machine.ended.set()

    def _prepare(self, machine: Machine, broker: OneBroker) -> None:
        broker.clock = VirtualClock()  # type: ignore[assignment]
        broker.nodes = Links(self, machine.broker_id)
        broker.channel = Channel(self)  # type: ignore[assignment]

    async def kill(self, broker_id: int, *, loses_power: bool = False) -> None:
        """End the process; the controller hears of it at once."""
        machine = self.machines[broker_id]
        machine.scope.cancel()
        with trio.CancelScope(shield=True):
            await machine.ended.wait()
        if loses_power:
            machine.file_system.lose_power(self.chance)
        self._broker_died(broker_id)

    # Clients

    async def produce(
        self, topic: str, index: int, batch: bytearray, *, timeout_seconds: float = 5.0
    ) -> int | None:
        """The offset of what is committed; None if nobody knows whether it is."""
        leader = self.image.topics[topic].partitions[index].leader
        machine = self.machines.get(leader)
        if machine is None or machine.broker is None:
            await trio.sleep(0.01)
            return None
        answer = await self.ask(
            machine.broker, produce_request(topic, batch, partition=index), 9, timeout_seconds
        )
        if answer is None:
            return None
        reply = answer.responses[0].partition_responses[0]
        return None if reply.error_code else reply.base_offset

    async def ask(self, broker: OneBroker, request: Message, version: int, timeout_seconds: float) -> Any:
        """What a handler answers, however long that takes; None if that is too long."""
        frame = bytearray(request.encode(version))
        with trio.move_on_after(timeout_seconds):
            while True:
                try:
                    answer = broker.handle(request, version, frame)
                    break
                except NotYet as not_yet:
                    await not_yet.waiting.wait()
                except KafkaError:
                    return None
            return await _wait(answer) if isinstance(answer, Waiting) else answer
        return None

    def log(self, broker_id: int, topic: str, index: int) -> PartitionLog:
        broker = self.machines[broker_id].broker
        assert broker is not None
        return broker.partitions.local_log(topic, index)


class Channel:
    """Asks the controller of tests."""

    def __init__(self, cluster: Replicated) -> None:
        self._cluster = cluster

    async def ask(self, request: Message, *, timeout_seconds: float = 1.0) -> Any:
        cluster = self._cluster
        await trio.sleep(cluster.chance.random() * cluster.delay_max)
        if not isinstance(request, AlterPartitionRequest):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        answer = cluster.judge(request)
        await trio.sleep(cluster.chance.random() * cluster.delay_max)
        return answer

    def submit(self, request: Message, done: Any, **_: Any) -> None:
        """Places of replicas do not matter where each broker has one directory."""


class Links:
    """Stands in for ``Nodes`` of one broker."""

    def __init__(self, cluster: Replicated, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id

    def new_fetcher_client(self, broker_id: int, purpose: str) -> "Link":
        return Link(self._cluster, self._broker_id, broker_id)


class Link:
    """A connection: requests and answers travel as bytes, take a while, and may be lost."""

    def __init__(self, cluster: Replicated, source: int, target: int) -> None:
        self._cluster = cluster
        self._source = source
        self._target = target

    async def ask(self, request: Message, *, version: int | None = None, timeout_seconds: float) -> Any:
        assert version is not None
        await self._travel()
        broker = self._cluster.machines[self._target].broker
        if broker is None:
            raise NodeUnreachable("it is not there")
        answer = await self._cluster.ask(broker, request, version, timeout_seconds)
        if answer is None or self._cluster.machines[self._target].broker is not broker:
            raise NodeUnreachable("it has gone")
        content = (
            bytearray(answer.encode(version))
            if not hasattr(answer, "responses")
            else _encoded(answer, version)
        )
        await self._travel()
        return response_class(type(request)).decode(memoryview(content), version)

    async def _travel(self) -> None:
        await trio.sleep(self._cluster.chance.random() * 0.005)
        if (self._source, self._target) in self._cluster.cut:
            raise NodeUnreachable("the line is cut")

    def close(self) -> None:
        pass


async def _wait(waiting: Waiting[Any]) -> Any:
    """What a connection does for a request."""
    try:
        with trio.move_on_at(float("inf") if waiting.deadline is None else waiting.deadline):
            return await waiting.wait()
        waiting.expire()
        return await waiting.wait()
    finally:
        waiting.abandon()


def _encoded(answer: Any, version: int) -> bytearray:
    """A fetched range is read now, as it would be sent."""
    for topic in answer.responses:
        for partition in topic.partitions:
            if partition.records is not None and hasattr(partition.records, "read"):
                partition.records = partition.records.read()
    return bytearray(answer.encode(version))


@asynccontextmanager
async def replicated(
    chance: Random, brokers: int = 3, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[Replicated]:
    """Brokers 1 to ``brokers``, who have no topics yet."""
    async with trio.open_nursery() as nursery:
        cluster = Replicated(chance, nursery, {"min.insync.replicas": "2", **(settings or {})})
        for broker_id in range(1, brokers + 1):
            await cluster.start(broker_id)
        yield cluster
        nursery.cancel_scope.cancel()
