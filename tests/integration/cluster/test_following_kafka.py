"""A node of ours under Apache Kafka's controllers: it has their log, byte for byte, and their image."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from broker.clock import BrokerClock
from broker.config.broker_config import BrokerConfig
from broker.controller.start import Node, start_controller
from broker.identifiers import Identifiers
from broker.logs import Log
from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges
from broker.network.transport import SocketTransport
from broker.node_directories import hold_directories, identify
from broker.raft.discovery import find_cluster_id
from broker.services import Services
from compat.cluster.image import kafka_image
from compat.cluster.quorums import KafkaQuorum, kafka_quorum
from compat.free_ports import free_ports
from compat.oracle.kafka import KafkaNode
from storage.filesystem import RealFileSystem
from tests.integration.cluster.images import described
from tests.support.lines import Lines

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kafka_jars")]

PATIENCE_SECONDS = 60

METADATA = "__cluster_metadata-0"

LOG = "00000000000000000000.log"


@asynccontextmanager
async def following(
    data: Path, controllers: str, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[Services]:
    """The part of a node that follows the metadata, and nothing else of it."""
    services = Services()
    services.clock = BrokerClock()
    services.log = Log(Lines())
    services.identifiers = Identifiers()
    services.transport = SocketTransport()
    services.config = BrokerConfig(
        {
            "node.id": "2",
            "process.roles": "broker",
            "log.dirs": str(data),
            "controller.quorum.bootstrap.servers": controllers,
            **(settings or {}),
        }
    )
    file_system = RealFileSystem()
    with hold_directories(services, file_system, open_files_max=64) as directories:
        identify(services, directories, [], await find_cluster_id(services), file_system)
        start_controller(services, Node(directories.metadata, directories.online, False, [], []))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(services.quorum.run)
            yield services
            nursery.cancel_scope.cancel()
        for directory in directories.held:
            directory.abandon()


async def until_there(services: Services, topic: str) -> None:
    """Wait until the published image has the topic."""
    there = trio.Event()

    def look(image: MetadataImage, _: MetadataChanges) -> None:
        if topic in image.topics:
            there.set()

    look(services.image, MetadataChanges())
    services.metadata.on_publish(look)
    with trio.fail_after(PATIENCE_SECONDS):
        await there.wait()


async def make_topic(quorum: KafkaQuorum, name: str, partitions: int = 1) -> None:
    await trio.to_thread.run_sync(quorum.make_topic, name, partitions)


def assert_copied(data: Path, quorum: KafkaQuorum, leader_id: int) -> None:
    """The copy is a beginning of the leader's log; it may lack the last records of a log that grows."""
    ours = (data / METADATA / LOG).read_bytes()
    theirs = (quorum.nodes[leader_id].data / METADATA / LOG).read_bytes()
    assert len(ours) > 1000
    assert theirs.startswith(ours)


async def test_one_controller(tmp_path: Path) -> None:
    data = tmp_path / "ottla"
    with kafka_quorum(tmp_path, 1) as quorum:
        async with following(data, quorum.controllers) as services:
            await make_topic(quorum, "first", 3)
            await until_there(services, "first")
            assert services.cluster_id == quorum.cluster_id
            assert services.metadata.kraft_version == 1
            assert services.quorum.leader_id == 101
            assert str(services.quorum.controller_address()) == quorum.controllers
            image = services.image
            assert sorted(image.brokers) == [101]
            assert len(image.topics["first"].partitions) == 3
        assert_copied(data, quorum, 101)
        # Started again, it goes on where it was.
        await make_topic(quorum, "second")
        async with following(data, quorum.controllers) as services:
            await until_there(services, "second")
            image = services.image
        assert_copied(data, quorum, 101)
    assert trimmed(kafka_image(data / METADATA), image) == sorted(described(image))


def trimmed(lines: list[str], image: MetadataImage) -> list[str]:
    """Of Kafka's image of the whole copy, which may end in records that change nothing but its end."""
    return sorted([*(line for line in lines if not line.startswith("end ")), f"end {image.offset + 1}"])


async def test_three_controllers_of_which_one_dies(tmp_path: Path) -> None:
    data = tmp_path / "ottla"
    with kafka_quorum(tmp_path, 3) as quorum:
        async with following(data, quorum.controllers) as services:
            await make_topic(quorum, "first")
            await until_there(services, "first")
            for number in range(2):
                dead = services.quorum.leader_id
                epoch = services.quorum.epoch
                await trio.to_thread.run_sync(quorum.nodes[dead].kill)
                await make_topic(quorum, f"after-{number}", 2)
                await until_there(services, f"after-{number}")
                assert services.quorum.leader_id != dead
                assert services.quorum.epoch > epoch
                await trio.to_thread.run_sync(quorum.nodes[dead].start)
            leader_id = services.quorum.leader_id
        assert_copied(data, quorum, leader_id)


async def test_a_log_that_begins_with_a_snapshot(tmp_path: Path) -> None:
    data = tmp_path / "ottla"
    often = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    with kafka_quorum(tmp_path, 1, often) as quorum:
        for number in range(3):
            await make_topic(quorum, f"topic-{number}", 20)
        theirs = quorum.nodes[101].data / METADATA
        assert [path for path in theirs.glob("*.checkpoint") if not path.name.startswith("0" * 20)]
        async with following(data, quorum.controllers) as services:
            await until_there(services, "topic-2")
            image = services.image
        assert list((data / METADATA).glob("*.checkpoint"))
        assert trimmed(kafka_image(data / METADATA), image) == sorted(described(image))
        async with following(data, quorum.controllers) as services:
            await until_there(services, "topic-2")
            assert sorted(services.image.topics) == sorted(image.topics)


async def test_a_static_quorum(tmp_path: Path) -> None:
    """kraft.version 0: the settings of each node name the voters, and the log does not."""
    data = tmp_path / "ottla"
    [controller, broker] = [f"127.0.0.1:{port}" for port in free_ports(2)]
    folder = tmp_path / "kafka"
    folder.mkdir()
    (folder / "addresses").write_text(f"{broker} {controller}")
    voters = {"controller.quorum.voters": f"101@{controller}", "controller.quorum.bootstrap.servers": ""}
    node = KafkaNode(folder, voters, node_id=101)
    node.format()
    node.start()
    try:
        async with following(data, "", voters) as services:
            await services.quorum.wait_caught_up()
            assert services.metadata.kraft_version == 0
            assert services.quorum.leader_id == 101
            assert str(services.quorum.controller_address()) == controller
            assert [voter.id for voter in services.quorum.voters] == [101]
            assert sorted(services.image.brokers) == [101]
        state = json.loads((data / METADATA / "quorum-state").read_text())
        assert (state["data_version"], state["currentVoters"]) == (0, [{"voterId": 101}])
    finally:
        node.kill()
