"""A Kafka broker with two log directories under a controller of Ottla, one of which fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OTTLA_ID, OttlaNode, kafka_in
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

KAFKA_ID = 2
PARTITIONS = 10


@pytest.fixture
def nodes(kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[OttlaNode, KafkaNode]]:
    ottla = OttlaNode(tmp_path / "ottla")
    ottla.start()
    try:
        first, second = tmp_path / "kafka" / "data", tmp_path / "kafka" / "more"
        settings = {"log.dirs": f"{first},{second}", "metadata.log.dir": str(first)}
        kafka = kafka_in(ottla, tmp_path / "kafka", node_id=KAFKA_ID, roles="broker", settings=settings)
        kafka.start()
        try:
            yield ottla, kafka
        finally:
            kafka.kill()
    finally:
        ottla.kill()


@pytest.mark.slow
def test_what_lies_in_a_failed_directory_is_led_by_others(nodes: tuple[OttlaNode, KafkaNode]) -> None:
    ottla, kafka = nodes
    admin = AdminClient({"bootstrap.servers": ottla.bootstrap})
    wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 2, "both brokers are unfenced")

    def make(topic: str) -> None:
        assignment = [[KAFKA_ID, OTTLA_ID]] * PARTITIONS
        admin.create_topics([NewTopic(topic, PARTITIONS, replica_assignment=assignment)])[topic].result(30)

    def in_sync(topic: str, broker_id: int) -> set[int]:
        partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
        return {index for index, partition in partitions.items() if broker_id in partition.isrs}

    def led(topic: str) -> set[int]:
        partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
        return {index for index, partition in partitions.items() if partition.leader >= 0}

    def lying_in(folder: Path, topic: str) -> set[int]:
        names = (path.name.rpartition("-") for path in folder.iterdir())
        return {int(index) for name, _, index in names if name == topic}

    make("placed")
    more = kafka.folder / "more"
    wait_until(
        lambda: len(lying_in(kafka.data, "placed") | lying_in(more, "placed")) == PARTITIONS, "all are made"
    )
    lost = lying_in(more, "placed")
    assert 0 < len(lost) < PARTITIONS
    more.rename(kafka.folder / "gone")
    more.write_text("no directory")
    make("finds-out")
    kept = set(range(PARTITIONS)) - lost
    wait_until(lambda: in_sync("placed", KAFKA_ID) == kept, f"Kafka has nothing but {sorted(kept)}")
    assert led("placed") == kept | lost
