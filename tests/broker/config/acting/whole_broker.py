"""A whole broker in this process whose time tests move: real sockets, a disk in memory."""

import struct
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from types import MappingProxyType
from typing import TypeVar

import trio
import trio.testing

from broker.app import Ready, serve
from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.identifiers import Identifiers
from broker.logs import Log
from broker.network.transport import SocketTransport
from broker.partitions.leader import Leader
from broker.services import Services
from protocol.headers import RequestHeader, ResponseHeader
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.batch import RecordBatch, read_batches
from protocol.records.builder import build_batch
from protocol.schema import Message
from storage.memory_filesystem import MemoryFileSystem

Response = TypeVar("Response", bound=Message)

DATA = "/data"
NOTHING: Mapping[str, str] = MappingProxyType({})
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
_SIZE = struct.Struct(">i")
_API_VERSIONS = 18


class Closed(Exception):
    """The broker has closed the connection."""


class Client:
    """One connection, on which answers come in the order of the requests."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.client_id: str | None = "acting"
        self._received = bytearray()

    async def send(self, request: Message, version: int | None = None) -> None:
        version = max(request.versions) if version is None else version
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=1,
            client_id=self.client_id,
        ).encode(2 if version in request.flexible else 1)
        frame = header + request.encode(version)
        await self.stream.send_all(_SIZE.pack(len(frame)) + frame)

    async def receive(self, kind: type[Response], version: int | None = None) -> Response:
        version = max(kind.versions) if version is None else version
        (size,) = _SIZE.unpack(await self._take(_SIZE.size))
        frame = await self._take(size)
        flexible = version in kind.flexible and kind.api_key != _API_VERSIONS
        _, position = ResponseHeader.decode_from(frame, 0, 1 if flexible else 0)
        return kind.decode_from(frame, position, version)[0]

    async def ask(self, request: Message, kind: type[Response], version: int | None = None) -> Response:
        await self.send(request, version)
        return await self.receive(kind, version)

    async def has_been_closed(self) -> bool:
        """Whether the broker has closed the connection, once everything has come to rest."""
        with trio.move_on_after(5):
            try:
                return not await self.stream.receive_some()
            except trio.BrokenResourceError:
                return True
        return False

    async def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            try:
                part = await self.stream.receive_some()
            except trio.BrokenResourceError as error:
                raise Closed from error
            if not part:
                raise Closed
            self._received += part
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken


class WholeBroker:
    """A broker that serves; ``client`` is the first of its connections."""

    def __init__(self, services: Services, ready: Ready, file_system: MemoryFileSystem) -> None:
        self.services = services
        self.ready = ready
        self.file_system = file_system
        self.clients: list[Client] = []

    @property
    def lines(self) -> str:
        """What the broker has logged."""
        stream = self.services.log._stream
        assert isinstance(stream, StringIO)
        return stream.getvalue()

    @property
    def port(self) -> int:
        return self.ready.brokers[0][1].port

    @property
    def client(self) -> Client:
        return self.clients[0]

    async def connect(self) -> Client:
        """One more connection, which ends with the broker at the latest."""
        client = Client(await trio.open_tcp_stream("127.0.0.1", self.port))
        self.clients.append(client)
        return client

    async def ask(self, request: Message, kind: type[Response], version: int | None = None) -> Response:
        return await self.client.ask(request, kind, version)

    async def pass_time(self, milliseconds: int) -> None:
        """Let time go by at once, and what is due happen."""
        self.services.clock.advance(milliseconds)
        await trio.testing.wait_all_tasks_blocked(0.001)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for what a thread has a part in."""
        with trio.fail_after(60):
            while not condition():  # noqa: ASYNC110  (nobody tells)
                await trio.sleep(0.001)

    async def pass_time_until(self, condition: Callable[[], object]) -> None:
        """Let as many seconds go by as it takes."""
        with trio.fail_after(600):
            while not condition():
                await self.pass_time(1000)

    async def create(
        self, topic: str = "t", *, partitions: int = 1, settings: Mapping[str, str] = NOTHING
    ) -> bytes:
        """Make a topic; returns its id.  ``partitions=-1`` leaves their number to the broker."""
        answer = await self.ask(
            CreateTopicsRequest(
                timeout_ms=10_000,
                topics=[
                    CreatableTopic(
                        name=topic,
                        num_partitions=partitions,
                        replication_factor=-1,
                        configs=[
                            CreatableTopicConfig(name=name, value=text) for name, text in settings.items()
                        ],
                    )
                ],
            ),
            CreateTopicsResponse,
        )
        created = answer.topics[0]
        assert created.error_code == 0, created.error_message
        return created.topic_id

    async def alter(self, kind: int, resource: str, settings: Mapping[str, str | None]) -> None:
        """Set settings of a resource, or delete those that are None."""
        answer = await self.ask(
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=kind,
                        resource_name=resource,
                        configs=[
                            AlterableConfig(name=name, config_operation=int(text is None), value=text)
                            for name, text in settings.items()
                        ],
                    )
                ]
            ),
            IncrementalAlterConfigsResponse,
        )
        assert answer.responses[0].error_code == 0, answer.responses[0].error_message

    async def produce(
        self, batch: bytes | bytearray | None = None, *, topic: str = "t", acks: int = -1
    ) -> PartitionProduceResponse:
        answer = await self.ask(produce_request(batch or one_record(), topic, acks), ProduceResponse, 9)
        return answer.responses[0].partition_responses[0]

    async def batches(self, topic: str = "t", *, max_bytes: int = 1 << 20) -> list[RecordBatch]:
        """What one fetch from the beginning of the first partition gets."""
        answer = await self.ask(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=max_bytes,
                topics=[
                    FetchTopic(
                        topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=max_bytes)]
                    )
                ],
            ),
            FetchResponse,
            12,
        )
        return list(read_batches(answer.responses[0].partitions[0].records or b""))

    def leader(self, topic: str = "t") -> Leader:
        return self.services.partitions.leader(topic, 0)


def produce_request(batch: bytes | bytearray, topic: str = "t", acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        ],
    )


def one_record(value: bytes = b"value", *, key: bytes | None = b"key", timestamp: int = 1) -> bytearray:
    return build_batch([(timestamp, key, value, ())])


@asynccontextmanager
async def whole_broker(
    clock: BrokerClock, settings: Mapping[str, str] = NOTHING, *, file_system: MemoryFileSystem | None = None
) -> AsyncGenerator[WholeBroker]:
    """A broker that serves inside the block and stops behind it."""
    services = Services()
    services.clock = clock
    services.log = Log(StringIO(), now_ms=clock.now_ms)
    services.identifiers = Identifiers(seed=1)
    services.transport = SocketTransport()
    file_system = file_system or MemoryFileSystem()
    given = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", **settings}
    if "log.dir" not in given:
        given.setdefault("log.dirs", DATA)
    config = BrokerConfig(given)
    stop = trio.Event()
    found: list[Ready] = []
    is_ready = trio.Event()

    def on_ready(ready: Ready) -> None:
        found.append(ready)
        is_ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, services, config, stop, on_ready=on_ready, file_system=file_system))
        await is_ready.wait()
        broker = WholeBroker(services, found[0], file_system)
        if broker.ready.brokers:
            await broker.connect()
        try:
            yield broker
        finally:
            for client in broker.clients:
                await trio.aclose_forcefully(client.stream)
        stop.set()
