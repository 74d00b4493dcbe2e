"""Whole nodes of one role in this process: a broker whose controller is elsewhere, a controller alone."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from io import StringIO

import pytest
import trio
import trio.testing

from broker.app import Ready, serve
from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.errors import StartupError
from broker.identifiers import Identifiers
from broker.logs import Log
from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges
from broker.network.transport import SocketTransport
from broker.services import Services
from compat.free_ports import free_ports
from storage.memory_filesystem import MemoryFileSystem
from storage.node_files import read_clean_shutdown, read_meta_properties
from tests.broker.test_app import DATA, Broker, create_topic, running

PATIENCE_SECONDS = 30


def joining(
    controller: str, file_system: MemoryFileSystem, node_id: int = 2
) -> AbstractAsyncContextManager[Broker]:
    """A node that is a broker and nothing else."""
    settings = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.quorum.bootstrap.servers": controller,
    }
    return running(file_system, settings, seed=node_id)


def controller_of(broker: Broker) -> str:
    _, address = broker.ready.controllers[0]
    return str(address)


async def until_same(broker: Broker, other: Broker) -> None:
    """Wait until the first has published what the other has."""
    reached = trio.Event()

    def look(image: MetadataImage, _: MetadataChanges) -> None:
        if image.offset >= other.services.image.offset:
            reached.set()

    look(broker.services.image, MetadataChanges())
    broker.services.metadata.on_publish(look)
    with trio.fail_after(PATIENCE_SECONDS):
        await reached.wait()


async def test_a_broker_joins_the_cluster_whose_controller_it_is_told() -> None:
    disk = MemoryFileSystem()
    async with running(MemoryFileSystem(), {"node.id": "1"}) as first:
        async with joining(controller_of(first), disk) as second:
            services = second.services
            assert services.cluster_id == first.services.cluster_id
            assert not services.controller.is_active
            assert services.quorum.leader_id == 1
            await until_same(first, second)
            assert sorted(first.services.image.brokers) == [1, 2]
            assert not first.services.image.brokers[2].fenced
            # Whoever is asked, the controller does it.
            assert await second.ask(create_topic) == 0
            await until_same(second, first)
            assert "t" in services.image.topics
            properties = read_meta_properties(disk, DATA)
            assert properties is not None
            assert (properties.cluster_id, properties.node_id) == (first.services.cluster_id, 2)
            assert not disk.exists(f"{DATA}/__cluster_metadata-0/{'0' * 20}-{'0' * 10}.checkpoint")
            epoch = services.image.brokers[2].epoch
        assert read_clean_shutdown(disk, DATA) == epoch
        # It is known by its directory from now on.
        async with joining(controller_of(first), disk) as second:
            assert second.services.image.brokers[2].epoch > epoch
            assert "t" in second.services.image.topics


async def test_one_without_an_address_says_so_when_it_is_not_alone_any_more() -> None:
    settings = {"node.id": "1", "listeners": "PLAINTEXT://:0,CONTROLLER://127.0.0.1:0"}
    async with running(MemoryFileSystem(), settings) as first:
        assert "not the only broker" not in first.log.getvalue()
        async with joining(controller_of(first), MemoryFileSystem()) as second:
            await until_same(first, second)
            assert first.log.getvalue().count("not the only broker any more: ") == 1
            assert "not the only broker" not in second.log.getvalue()


async def test_a_controller_alone_has_brokers_elsewhere() -> None:
    settings = {"process.roles": "controller", "node.id": "1", "listeners": "CONTROLLER://127.0.0.1:0"}
    disks = [MemoryFileSystem() for _ in range(3)]
    async with running(disks[0], settings) as controller:
        address = controller_of(controller)
        assert controller.ready.brokers == []
        async with joining(address, disks[1], 2) as second, joining(address, disks[2], 3) as third:
            assert await third.ask(create_topic) == 0
            await until_same(second, controller)
            assert sorted(second.services.image.brokers) == [2, 3]
            assert list(second.services.image.topics) == ["t"]


async def test_a_broker_knows_what_it_knew_only_when_the_controller_says_so() -> None:
    """Its own log may hold what was never committed."""
    disk, other = MemoryFileSystem(), MemoryFileSystem()
    port = free_ports(1)[0]
    settings = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
    }
    async with running(disk, settings) as first, joining(controller_of(first), other):
        pass
    services, stop = Services(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(begun, services, f"127.0.0.1:{port}", other, stop))
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert services.quorum.log.end_offset > 10
        assert services.image.offset == -1
        async with running(disk, settings) as first:
            with trio.fail_after(PATIENCE_SECONDS):
                await services.quorum.wait_caught_up()
            assert services.image.offset > 10
            stop.set()


async def begun(services: Services, controller: str, disk: MemoryFileSystem, stop: trio.Event) -> StringIO:
    """A broker that need not get to serve; returns when it has stopped."""
    lines = StringIO()
    services.clock = BrokerClock()
    services.log = Log(lines)
    services.identifiers = Identifiers(seed=2)
    services.transport = SocketTransport()
    config = BrokerConfig(
        {
            "process.roles": "broker",
            "node.id": "2",
            "log.dirs": DATA,
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "controller.quorum.bootstrap.servers": controller,
        }
    )

    def on_ready(_: Ready) -> None:
        """Nobody waits for it."""

    await serve(services, config, stop, on_ready=on_ready, file_system=disk)
    return lines


@pytest.mark.parametrize("is_formatted", [False, True])
async def test_one_that_waits_for_a_controller_can_be_stopped(is_formatted: bool) -> None:
    disk = MemoryFileSystem()
    if is_formatted:
        async with (
            running(MemoryFileSystem(), {"node.id": "1"}) as first,
            joining(controller_of(first), disk),
        ):
            pass
    stop = trio.Event()
    services = Services()
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(begun, services, f"127.0.0.1:{free_ports(1)[0]}", disk, stop)
            await trio.testing.wait_all_tasks_blocked(0.1)
            stop.set()
    assert (read_meta_properties(disk, DATA) is not None) == is_formatted
    if is_formatted:
        assert (read_clean_shutdown(disk, DATA) or -1) > 0, "nothing has changed since it stopped"


async def test_a_new_broker_is_told_its_id() -> None:
    async with running(MemoryFileSystem(), {"node.id": "1"}) as first:
        settings = {
            "process.roles": "broker",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "controller.quorum.bootstrap.servers": controller_of(first),
        }
        refused = pytest.RaisesExc(StartupError, match=r"node\.id must be set")
        with pytest.RaisesGroup(refused, flatten_subgroups=True):
            async with running(MemoryFileSystem(), settings, seed=2):
                pytest.fail("it has the first one's id")
