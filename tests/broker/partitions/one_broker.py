"""A broker's partitions on a disk in memory, following an image that tests write records for."""

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import trio
import trio.testing

from broker.apis.table import APIS
from broker.config.broker_config import BrokerConfig
from broker.controller.decision import Command
from broker.controller.sessions import BrokerSessions
from broker.identifiers import Identifiers
from broker.life.channel import ControllerChannel
from broker.logs import Log
from broker.metadata import replay
from broker.metadata.endpoints import Advertised
from broker.metadata.image import MetadataImage, empty_image
from broker.network.binding import Binding, Door
from broker.network.call import Address, Call, ConnectionState, Listener
from broker.network.nodes import Nodes
from broker.network.peer import Peer
from broker.network.settings import NetworkSettings
from broker.network.waiting import NotYet, Waiting
from broker.node_directories import NodeDirectories
from broker.partitions.manager import PartitionManager, open_partitions
from protocol.errors import KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from protocol.records.builder import build_batch
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
)
from protocol.uuids import ZERO_UUID
from storage.errors import DiskFailure, StorageError
from storage.log_directory import LogDirectory
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import MetaProperties
from tests.broker.metadata.records import new_partition, topic

if TYPE_CHECKING:
    from broker.services import Services
    from broker.share.coordinator import ShareCoordinator
    from broker.share.host import ShareHost

Result = TypeVar("Result")

NODE_ID = 1
PATH = "/data"
START_MS = 1_700_000_000_000


class ManualClock:
    """Wall time stands still unless a test moves it."""

    def __init__(self) -> None:
        self.wall_ms = START_MS

    def now_ms(self) -> int:
        return self.wall_ms


class ProducerIdSource:
    """Stands in for the blocks of producer ids."""

    def __init__(self) -> None:
        self.at_hand = 5
        self.next_id = 0
        self.waiting: list[Callable[[int | KafkaError], None]] = []

    def take(self) -> int | None:
        if not self.at_hand:
            return None
        self.at_hand -= 1
        self.next_id += 1
        return self.next_id - 1

    def request(self, give: Callable[[int | KafkaError], None]) -> None:
        self.waiting.append(give)

    def when_at_hand(self, ready: Callable[[KafkaError | None], None]) -> None:
        if self.at_hand:
            ready(None)
        else:
            self.waiting.append(lambda given: ready(given if isinstance(given, KafkaError) else None))


class NoTransport:
    """There is nobody else."""

    async def connect(self, address: Address, *, receive_buffer_bytes: int | None = None) -> Peer:
        raise OSError(f"nobody is at {address}")

    def listen(self, bindings: Sequence[Binding], settings: NetworkSettings) -> Sequence[Door]:
        raise AssertionError("ports are taken")


class OneBroker:
    """Stands in for ``Services`` and for the controller.

    What would run in a thread runs at once, unless ``hold_threads`` is called: then it waits for
    ``release_threads``.
    """

    cluster_id = "cluster"

    def __init__(
        self,
        settings: Mapping[str, str],
        file_system: MemoryFileSystem,
        paths: Sequence[str] = (PATH,),
        node_id: int = NODE_ID,
    ) -> None:
        self.node_id = node_id
        self.config = BrokerConfig({"node.id": str(node_id), "log.dirs": ",".join(paths), **settings})
        self.clock = ManualClock()
        self.identifiers = Identifiers(seed=node_id)
        self.lines = StringIO()
        self.log = Log(self.lines)
        self.image = empty_image("cluster")
        self.advertised = Advertised(node_id)
        self.transport = NoTransport()
        self.nodes: Any = Nodes(self.services)
        self.producer_ids = ProducerIdSource()
        self.file_system = file_system
        self.controller = self.metadata = self
        self.quorum = SimpleNamespace(is_leader=True)
        self.is_active = True
        self.sessions = BrokerSessions(9000, NODE_ID)
        self.channel = ControllerChannel(self.services, self._start_soon)
        self.partitions: PartitionManager
        self.share_coordinator: ShareCoordinator
        self.share: ShareHost
        self.directory: LogDirectory
        self.directories: list[LogDirectory]
        self.listeners: list[Callable[..., None]] = []
        self.threads_run = 0
        self._held: trio.Event | None = None
        self._topics_made = 0
        self._submitted: list[tuple[Command[Any], Callable[[Any], None]]] | None = None

    @property
    def services(self) -> "Services":
        return cast("Services", self)

    async def run_blocking(self, function: Callable[..., Result], *arguments: object) -> Result:
        self.threads_run += 1
        await trio.lowlevel.checkpoint()
        while self._held is not None:
            await self._held.wait()
        return function(*arguments)

    def _start_soon(self, *_: object) -> None:
        raise AssertionError("another node's controller is asked")

    def hold_threads(self) -> None:
        self._held = trio.Event()

    def release_threads(self) -> None:
        assert self._held is not None
        held, self._held = self._held, None
        held.set()

    def make_missing(self) -> None:
        """Do at once what the manager's thread would do: make the replicas that are on no disk yet."""
        for replica in list(self.partitions.missing):
            self.partitions._make_missing_one(replica)

    # The controller

    def on_publish(self, listener: Callable[..., None]) -> None:
        self.listeners.append(listener)

    def apply(self, *records: Message) -> None:
        self.image, changes = replay.apply(
            self.image, records, offset=self.image.offset + len(records), epoch=1
        )
        for listener in self.listeners:
            listener(self.image, changes)

    def submit(self, command: Command[Any], done: Callable[[Any], None]) -> None:
        """Carried out at once, unless ``hold_commands`` is called."""
        if self._submitted is not None:
            self._submitted.append((command, done))
            return
        try:
            decision = command(self.image)
        except KafkaError as error:
            done(error)
            return
        if decision.records:
            self.apply(*[record for record, _ in decision.records])
        done(decision.reply)

    def answer(self, command: Command[Any], build: Callable[[Any], Any], *, timeout_ms: int) -> Waiting[Any]:
        waiting: Waiting[Any] = Waiting()
        self.submit(command, lambda outcome: waiting.answer_with(lambda: build(outcome)))
        return waiting

    def hold_commands(self) -> None:
        self._submitted = []

    def release_commands(self) -> None:
        assert self._submitted is not None
        submitted, self._submitted = self._submitted, None
        for command, done in submitted:
            self.submit(command, done)

    def register(self, broker_id: int, directory_ids: Sequence[bytes] = ()) -> None:
        endpoint = BrokerEndpoint(name="PLAINTEXT", host=f"broker{broker_id}.example", port=9092)
        self.apply(
            RegisterBrokerRecord(
                broker_id=broker_id,
                broker_epoch=self.image.offset + 1,
                fenced=False,
                end_points=[endpoint],
                log_dirs=list(directory_ids),
            )
        )

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        leader: int = NODE_ID,
        leader_epoch: int = 0,
        directory: bytes = ZERO_UUID,
        settings: Mapping[str, str] | None = None,
        replicas: Sequence[int] = (NODE_ID,),
        isr: Sequence[int] | None = None,
    ) -> bytes:
        """``isr``: all replicas if nothing is said."""
        self._topics_made += 1
        topic_id = self._topics_made.to_bytes(16, "big")
        self.apply(
            *topic(
                name,
                topic_id,
                *(
                    new_partition(
                        replicas, isr, leader=leader, leader_epoch=leader_epoch, in_directory=directory
                    )
                    for _ in range(partitions)
                ),
            ),
            *setting_records(name, settings or {}),
        )
        return topic_id

    def change_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        self.apply(*setting_records(topic, settings))

    def change_leader(self, topic_id: bytes, leader: int, partition: int = 0) -> None:
        """Each change begins another leader epoch."""
        self.apply(PartitionChangeRecord(partition_id=partition, topic_id=topic_id, leader=leader))

    def move_replicas(self, topic_id: bytes, replicas: list[int], partition: int = 0) -> None:
        """The first of them leads."""
        change = PartitionChangeRecord(
            partition_id=partition, topic_id=topic_id, replicas=replicas, isr=replicas, leader=replicas[0]
        )
        self.apply(change)

    def delete_topic(self, topic_id: bytes) -> None:
        self.apply(RemoveTopicRecord(topic_id=topic_id))

    # Requests

    def ask(self, request: Message, version: int) -> Any:
        """What the handler returns for ``request`` as it comes over the wire."""
        return self.hand_over(request, version, bytearray(request.encode(version)))

    def hand_over(self, request: Message, version: int, frame: bytearray) -> Any:
        """The same with the request's bytes at hand."""
        try:
            answer = self.handle(request, version, frame)
        except NotYet:
            self.make_missing()
            answer = self.handle(request, version, frame)
        if isinstance(answer, Waiting) and answer.is_answered:
            return answer.result()
        return answer

    def handle(self, request: Message, version: int, frame: bytearray | None = None) -> Any:
        """What the handler itself does."""
        handler = import_module(f"broker.apis.{APIS[request.api_key].module}")
        connection = ConnectionState(
            1, Listener("PLAINTEXT"), Address("127.0.0.1", 1), Address("127.0.0.1", 9092)
        )
        call = Call(self.services, connection, request.api_key, version, 1, "test", self.clock.now_ms())
        data = bytearray(request.encode(version)) if frame is None else frame
        return handler.handle(type(request).decode(memoryview(data), version), call)

    def produce(
        self, topic: str, batch: bytes | bytearray | None = None, *, partition: int = 0, acks: int = -1
    ) -> PartitionProduceResponse:
        """Produce one batch, and expect the answer at once."""
        answer = self.ask(produce_request(topic, batch, partition=partition, acks=acks), 9)
        (topic_response,) = answer.responses
        (reply,) = topic_response.partition_responses
        assert isinstance(reply, PartitionProduceResponse)
        return reply

    def fetch(self, topic: str, offset: int = 0, *, partition: int = 0) -> PartitionData:
        """Fetch from one partition without waiting."""
        answer = self.ask(fetch_request(topic, offset, partition=partition), 12)
        assert isinstance(answer, FetchResponse)
        return answer.responses[0].partitions[0]


def setting_records(topic: str, settings: Mapping[str, str]) -> list[Message]:
    return [
        ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value)
        for name, value in settings.items()
    ]


def some_batch(count: int = 1, *, size: int = 10, **options: Any) -> bytearray:
    """A batch of ``count`` records with values of ``size`` bytes, and the present time of tests."""
    records = [(START_MS, b"k", bytes([index % 256]) * size, ()) for index in range(count)]
    return build_batch(records, **options)


def produce_request(
    topic: str, batch: bytes | bytearray | None = None, *, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    records = some_batch() if batch is None else batch
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=partition, records=records)]
            )
        ],
    )


def fetch_request(topic: str, offset: int = 0, *, partition: int = 0, **options: Any) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[wanted])], **options)


@asynccontextmanager
async def one_broker(
    settings: Mapping[str, str] | None = None,
    *,
    file_system: MemoryFileSystem | None = None,
    image: MetadataImage | None = None,
    paths: Sequence[str] = (PATH,),
    offline: Sequence[str] = (),
    node_id: int = NODE_ID,
    prepare: Callable[[OneBroker], None] = lambda _: None,
) -> AsyncGenerator[OneBroker]:
    """A broker with an empty disk and cluster, or with what is given.

    Where it has several directories they have ids: see ``directory_id``.  Those in ``offline`` could not be
    opened.  ``prepare`` may put other services in place.  Leaving the block is a crash: nothing is closed.
    """
    if file_system is None:
        file_system = MemoryFileSystem(now_ms=lambda: START_MS)
    broker = OneBroker(settings or {}, file_system, paths, node_id)
    prepare(broker)
    if image is not None:
        broker.image = image
        broker._topics_made = image.offset  # so that new ones get other ids
    broker.directories = [
        LogDirectory.open(
            path,
            file_system,
            random_below=random.Random(number).randrange,
            report=broker.log.warn,
            now_ms=broker.clock.now_ms(),
            producer_expiration_ms=broker.config.get("producer.id.expiration.ms"),
        )
        for number, path in enumerate(paths, start=1)
        if path not in offline
    ]
    broker.directory = broker.directories[0]
    if len(paths) > 1:
        for directory in broker.directories:
            if directory.properties is None:
                directory.write_properties(MetaProperties("cluster", node_id, directory_id(directory.path)))
        broker.register(node_id, [directory_id(directory.path) for directory in broker.directories])
    elif image is None:
        broker.register(node_id)
    failures: dict[str, StorageError] = {
        path: DiskFailure(path, "use log directory", OSError("gone")) for path in offline
    }
    node_directories = NodeDirectories(broker.directory, broker.directories, failures)
    try:
        async with open_partitions(broker.services, node_directories) as broker.partitions:
            yield broker
    finally:
        file_system.kill()


def directory_id(path: str) -> bytes:
    """The id of a log directory in tests of several."""
    return path.encode().rjust(16, b"d")


async def answer_of(answer: Any) -> Any:
    """What a handler returned, or what became of it when nothing moves any longer."""
    if isinstance(answer, Waiting):
        await settle()
        return answer.result()
    return answer


async def settle() -> None:
    """Let every task go on until all of them wait for something."""
    await trio.testing.wait_all_tasks_blocked()
