"""Kafka's own image of our metadata, from snapshot and log, is the one that we make of it."""

from pathlib import Path

import pytest

from broker.metadata.image import Endpoint, MetadataImage, PartitionImage
from broker.raft.log import MetadataLog
from compat.broker_process import BrokerProcess
from compat.cluster.image import kafka_image
from compat.oracle.java import run_tool
from protocol.uuids import uuid_to_text
from storage.config import LogConfig
from storage.filesystem import RealFileSystem
from storage.log_directory import LogDirectory
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow


def our_image(data: Path) -> list[str]:
    """What we make of the same files, in the same words."""
    directory = LogDirectory.open(
        str(data), RealFileSystem(), random_below=lambda _: 0, report=lambda _: None, now_ms=0
    )
    try:
        assert directory.properties is not None
        log = MetadataLog(directory.open_metadata_log(LogConfig(), now_ms=0), directory.services)
        return sorted(described(log.load(directory.properties.cluster_id or "", now_ms=0).replay.image))
    finally:
        directory.abandon()


def described(image: MetadataImage) -> list[str]:
    lines = [f"feature {name} {level}" for name, level in image.features.items()]
    for broker in image.brokers.values():
        lines.append(
            f"broker {broker.id} epoch {broker.epoch} {uuid_to_text(broker.incarnation_id)} "
            f"rack {broker.rack or '-'} fenced {str(broker.fenced).lower()} "
            f"shutdown {str(broker.in_controlled_shutdown).lower()} "
            f"directories {uuids(broker.directories)} {endpoints(broker.endpoints)}"
        )
    for controller in image.controllers.values():
        incarnation = uuid_to_text(controller.incarnation_id)
        lines.append(f"controller {controller.id} {incarnation} {endpoints(controller.endpoints)}")
    for topic in image.topics.values():
        lines.append(f"topic {topic.name} {uuid_to_text(topic.id)}")
        lines += [
            f"partition {topic.name} {index} {partition_words(partition)}"
            for index, partition in enumerate(topic.partitions)
        ]
    for (kind, name), settings in image.configs.items():
        lines += [f"config {int(kind)} {name} {key}={value}" for key, value in settings.items()]
    return [*lines, f"producer ids {image.next_producer_id or -1}", f"end {image.offset + 1}"]


def partition_words(partition: PartitionImage) -> str:
    return (
        f"replicas {numbers(partition.replicas)} isr {numbers(partition.isr)} "
        f"removing {numbers(partition.removing_replicas)} adding {numbers(partition.adding_replicas)} "
        f"elr {numbers(partition.eligible_leader_replicas)} last {numbers(partition.last_known_elr)} "
        f"leader {partition.leader} recovery {int(partition.leader_recovery_state)} "
        f"epochs {partition.leader_epoch} {partition.partition_epoch} "
        f"directories {uuids(partition.directories)}"
    )


def endpoints(found: tuple[Endpoint, ...]) -> str:
    return ",".join(sorted(f"{each.name}://{each.host}:{each.port}" for each in found))


def numbers(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def uuids(values: tuple[bytes, ...]) -> str:
    return f"[{','.join(map(uuid_to_text, values))}]"


@pytest.mark.usefixtures("kafka_jars")
def test_one_node(start_broker: StartBroker) -> None:
    broker: BrokerProcess = start_broker(settings={"metadata.log.max.record.bytes.between.snapshots": "3000"})
    for command in (
        ("kafka-topics", "--create", "--topic", "one", "--partitions", "7"),
        ("kafka-topics", "--create", "--topic", "two", "--config", "retention.ms=1000"),
        (
            "kafka-configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-default",
            "--add-config",
            "log.cleaner.threads=2",
        ),
        ("kafka-topics", "--delete", "--topic", "two"),
        ("kafka-topics", "--create", "--topic", "three", "--partitions", "60"),
        ("kafka-topics", "--create", "--topic", "four"),
    ):
        done = run_tool(command[0], "--bootstrap-server", broker.address, *command[1:])
        assert done.exit_code == 0, done
    assert broker.stop() == 0
    metadata = broker.data / "__cluster_metadata-0"
    assert [path for path in metadata.glob("*.checkpoint") if not path.name.startswith("0" * 20)]
    assert kafka_image(metadata) == our_image(broker.data)
