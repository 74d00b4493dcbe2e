"""A whole broker in this process: real sockets on the loopback interface, a disk in memory."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from io import StringIO
from types import MappingProxyType
from typing import TypeVar

import pytest
import trio

from broker.app import Ready, serve
from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.errors import StartupError
from broker.identifiers import Identifiers
from broker.logs import Log
from broker.network.binding import ListenError
from broker.network.transport import SocketTransport
from broker.services import Services
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.batch import read_batches
from protocol.records.builder import build_batch
from storage.errors import CorruptFile, DirectoryLocked, DiskFailure
from storage.memory_filesystem import MemoryFileSystem
from tests.support.raw_client import RawClient

Result = TypeVar("Result")

DATA = "/data"
NOTHING: Mapping[str, str] = MappingProxyType({})


class Broker:
    """A broker that serves, and how to talk to it."""

    def __init__(self, services: Services, ready: Ready, stop: trio.Event, log: StringIO) -> None:
        self.services = services
        self.ready = ready
        self.stop = stop
        self.log = log

    async def ask(self, conversation: Callable[[RawClient], Result]) -> Result:
        """Hold a blocking conversation in a thread, while the broker answers in this one."""
        _, address = self.ready.brokers[0]

        def talk() -> Result:
            with RawClient(("127.0.0.1", address.port)) as client:
                return conversation(client)

        return await trio.to_thread.run_sync(talk)


@asynccontextmanager
async def running(
    file_system: MemoryFileSystem,
    settings: Mapping[str, str] = NOTHING,
    *,
    cluster_id: str | None = None,
    crash: bool = False,
    seed: int = 1,
) -> AsyncGenerator[Broker]:
    """A broker that serves inside the block, and is stopped, or has crashed, behind it.

    Nodes of one cluster have seeds of their own: what they call themselves comes from there.
    """
    services = Services()
    services.clock = BrokerClock()
    lines = StringIO()
    services.log = Log(lines)
    services.identifiers = Identifiers(seed)
    services.transport = SocketTransport()
    config = BrokerConfig(
        {
            "log.dirs": DATA,
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            **settings,
        }
    )
    stop = trio.Event()
    found: list[Ready] = []
    is_ready = trio.Event()

    def on_ready(ready: Ready) -> None:
        found.append(ready)
        is_ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            partial(
                serve,
                services,
                config,
                stop,
                cluster_id=cluster_id,
                on_ready=on_ready,
                file_system=file_system,
            )
        )
        await is_ready.wait()
        yield Broker(services, found[0], stop, lines)
        if crash:
            nursery.cancel_scope.cancel()
        stop.set()


def create_topic(client: RawClient) -> int:
    answer = client.ask(
        CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]),
        CreateTopicsResponse,
        7,
    )
    return answer.topics[0].error_code


def produce(client: RawClient, value: bytes) -> tuple[int, int]:
    batch = build_batch([(1_700_000_000_000, None, value, ())])
    answer = client.ask(
        ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
            ],
        ),
        ProduceResponse,
        9,
    )
    partition = answer.responses[0].partition_responses[0]
    return partition.error_code, partition.base_offset


def fetch(client: RawClient) -> list[bytes | None]:
    answer = client.ask(
        FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            topics=[
                FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
            ],
        ),
        FetchResponse,
        12,
    )
    records = answer.responses[0].partitions[0].records
    return [record.value for batch in read_batches(records) for record in batch.records()]


async def test_a_topic_can_be_used_as_soon_as_it_is_made_and_outlives_a_restart() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system) as broker:
        cluster_id = broker.services.cluster_id
        assert await broker.ask(create_topic) == 0
        assert await broker.ask(partial(produce, value=b"first")) == (0, 0)
    assert file_system.exists(f"{DATA}/.kafka_cleanshutdown")
    async with running(file_system) as broker:
        assert broker.services.cluster_id == cluster_id
        assert not file_system.exists(f"{DATA}/.kafka_cleanshutdown")
        assert await broker.ask(partial(produce, value=b"second")) == (0, 1)
        assert await broker.ask(fetch) == [b"first", b"second"]


async def test_a_broker_that_was_cancelled_is_recovered_and_lost_nothing_acknowledged() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system, crash=True) as broker:
        assert await broker.ask(create_topic) == 0
        assert await broker.ask(partial(produce, value=b"acknowledged")) == (0, 0)
    assert not file_system.exists(f"{DATA}/.kafka_cleanshutdown")
    file_system.kill()
    async with running(file_system) as broker:
        assert "recovering 1 partition" in broker.log.getvalue()
        assert await broker.ask(fetch) == [b"acknowledged"]


async def test_the_address_that_reached_us_is_advertised_when_none_is_given() -> None:
    def first_broker(client: RawClient) -> tuple[str, int]:
        answer = client.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
        return answer.brokers[0].host, answer.brokers[0].port

    settings = {"listeners": "PLAINTEXT://:0,CONTROLLER://127.0.0.1:0"}
    async with running(MemoryFileSystem(), settings) as broker:
        _, address = broker.ready.brokers[0]
        assert await broker.ask(first_broker) == ("127.0.0.1", address.port)


async def test_a_directory_of_another_node_or_cluster_is_refused() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system, {"node.id": "3"}):
        pass
    async with running(file_system) as broker:
        assert broker.services.node_id == 3, "a node without node.id is what its directory says"
    with pytest.raises(BaseExceptionGroup) as refused:
        async with running(file_system, {"node.id": "4"}):
            raise AssertionError("it started")
    assert refused.group_contains(StartupError, match="belongs to node 3, but node.id is 4")
    with pytest.raises(BaseExceptionGroup) as refused:
        async with running(file_system, cluster_id="AAAAAAAAAAAAAAAAAAAABQ"):
            raise AssertionError("it started")
    assert refused.group_contains(StartupError, match="belongs to cluster .* not to AAAAAAAAAAAAAAAAAAAABQ")


async def test_two_brokers_share_neither_directory_nor_port() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system) as broker:
        with pytest.raises(BaseExceptionGroup) as refused:
            async with running(file_system):
                raise AssertionError("it started")
        assert refused.group_contains(DirectoryLocked)
        _, address = broker.ready.brokers[0]
        taken = {"listeners": f"PLAINTEXT://127.0.0.1:{address.port},CONTROLLER://127.0.0.1:0"}
        with pytest.raises(BaseExceptionGroup) as refused:
            async with running(MemoryFileSystem(), taken):
                raise AssertionError("it started")
        assert refused.group_contains(ListenError, match=f"port {address.port} is in use")


async def test_partitions_without_meta_properties_are_nobody_s() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system) as broker:
        assert await broker.ask(create_topic) == 0
        assert await broker.ask(partial(produce, value=b"kept")) == (0, 0)
    file_system.remove(f"{DATA}/meta.properties")
    with pytest.raises(BaseExceptionGroup) as refused:
        async with running(file_system):
            raise AssertionError("it started")
    assert refused.group_contains(StartupError, match="no meta.properties")


@pytest.mark.parametrize(
    "name",
    [
        "__cluster_metadata-0/quorum-state",
        "__cluster_metadata-0/00000000000000000077-0000000001.checkpoint",
        "__cluster_metadata-0/00000000000000000077-0000000001-1.checkpoint.part",
    ],
)
async def test_a_directory_in_the_place_of_a_file_is_named_and_ends_the_start(name: str) -> None:
    file_system = MemoryFileSystem()
    async with running(file_system):
        pass
    if file_system.exists(f"{DATA}/{name}"):
        file_system.remove(f"{DATA}/{name}")
    file_system.make_directory(f"{DATA}/{name}")
    with pytest.raises(BaseExceptionGroup) as refused:
        async with running(file_system):
            raise AssertionError("it started")
    assert refused.group_contains(DiskFailure, match=f"{name}: Is a directory")


METADATA = f"{DATA}/__cluster_metadata-0/00000000000000000000.log"


@pytest.mark.parametrize("was_clean", [True, False])
async def test_a_flipped_bit_in_the_metadata_does_not_empty_the_cluster(was_clean: bool) -> None:
    file_system = MemoryFileSystem()
    async with running(file_system) as broker:
        assert await broker.ask(create_topic) == 0
    if not was_clean:
        file_system.remove(f"{DATA}/.kafka_cleanshutdown")
    file = file_system.open(METADATA)
    damaged = bytearray(file.pread(file.size(), 0))
    damaged[100] ^= 1
    file.pwrite(damaged, 0)
    for _ in range(2):
        with pytest.raises(BaseExceptionGroup) as refused:
            async with running(file_system):
                raise AssertionError("it started")
        assert refused.group_contains(CorruptFile, match=f"{METADATA}: at byte 0: .*nothing was cut off")
    assert file_system.read_file(METADATA) == damaged
    assert not any("stray" in name for name in file_system.list_names(DATA))
    damaged[100] ^= 1
    file.pwrite(damaged, 0)
    async with running(file_system) as broker:
        assert await broker.ask(partial(produce, value=b"kept")) == (0, 0)


async def test_without_its_metadata_a_cluster_is_not_begun_anew() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system) as broker:
        assert await broker.ask(create_topic) == 0
        assert await broker.ask(partial(produce, value=b"kept")) == (0, 0)
    folder = f"{DATA}/__cluster_metadata-0"
    kept = {name: file_system.read_file(f"{folder}/{name}") for name in file_system.list_names(folder)}
    file_system.remove_tree(folder)
    for _ in range(2):
        with pytest.raises(BaseExceptionGroup) as refused:
            async with running(file_system):
                raise AssertionError("it started")
        told = f"{folder} is missing or empty, but there are partitions in {DATA}"
        assert refused.group_contains(StartupError, match=told)
    assert not any("stray" in name for name in file_system.list_names(DATA))
    file_system.remove_tree(folder)
    file_system.make_directory(folder)
    for name, content in kept.items():
        file_system.write_durably(f"{folder}/{name}", content)
    async with running(file_system) as broker:
        assert await broker.ask(partial(produce, value=b"more")) == (0, 1)


async def test_a_torn_tail_of_the_metadata_is_cut() -> None:
    file_system = MemoryFileSystem()
    async with running(file_system) as broker:
        assert await broker.ask(create_topic) == 0
    file_system.remove(f"{DATA}/.kafka_cleanshutdown")
    file = file_system.open(METADATA)
    file.truncate(file.size() - 3)
    async with running(file_system) as broker:
        assert await broker.ask(partial(produce, value=b"kept")) == (0, 0)


async def test_with_too_few_descriptors_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.app.current_limit", lambda: 64)
    with pytest.RaisesGroup(pytest.RaisesExc(StartupError, match="64 files, and a broker needs 128 or more")):
        async with running(MemoryFileSystem()):
            pass


async def test_with_few_descriptors_few_connections_are_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.app.current_limit", lambda: 1024)
    async with running(MemoryFileSystem()) as broker:
        assert "enough for 640 connections at once" in broker.log.getvalue()
        assert await broker.ask(create_topic) == 0
    async with running(MemoryFileSystem(), {"max.connections": "500"}) as broker:
        assert broker.log.getvalue() == ""
