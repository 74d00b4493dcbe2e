"""A Kafka broker with two log directories under a controller of Ottla, one of which fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OTTLA_ID, OttlaNode, ottla_and_kafka
from compat.cluster.views import ClusterView
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import PartitionChangeRecord, decode_metadata_record

KAFKA_ID = 2
PARTITIONS = 10


@pytest.fixture
def nodes(kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[OttlaNode, KafkaNode]]:
    first, second = tmp_path / "kafka" / "data", tmp_path / "kafka" / "more"
    settings = {"log.dirs": f"{first},{second}", "metadata.log.dir": str(first)}
    with ottla_and_kafka(tmp_path, kafka_id=KAFKA_ID, settings=settings) as nodes:
        yield nodes


@pytest.mark.slow
def test_what_lies_in_a_failed_directory_is_led_by_others(nodes: tuple[OttlaNode, KafkaNode]) -> None:
    ottla, kafka = nodes
    view = ClusterView(ottla.bootstrap)
    view.wait_for_brokers({OTTLA_ID, KAFKA_ID})

    def make(topic: str) -> None:
        assignment = [[KAFKA_ID, OTTLA_ID]] * PARTITIONS
        made = view.admin.create_topics([NewTopic(topic, PARTITIONS, replica_assignment=assignment)])
        made[topic].result(30)

    def in_sync(topic: str) -> set[int]:
        return {index for index, found in enumerate(view.in_sync(topic)) if KAFKA_ID in found}

    def lying_in(folder: Path, topic: str) -> set[int]:
        names = (path.name.rpartition("-") for path in folder.iterdir())
        return {int(index) for name, _, index in names if name == topic}

    make("placed")
    more = kafka.folder / "more"
    # Kafka tells it when all of them are made.  One whose folder is there, but no log yet, would fail with
    # the directory, and then Kafka tells of none, not even later.
    wait_until(lambda: told(ottla) == set(range(PARTITIONS)), "the controller knows where each lies")
    lost = lying_in(more, "placed")
    assert 0 < len(lost) < PARTITIONS
    more.rename(kafka.folder / "gone")
    more.write_text("no directory")
    make("finds-out")
    kept = set(range(PARTITIONS)) - lost
    wait_until(lambda: in_sync("placed") == kept, f"Kafka has nothing but {sorted(kept)}")
    assert -1 not in view.leaders("placed")


def told(ottla: OttlaNode) -> set[int]:
    """Partitions, all of one topic, of which brokers have told the controller where they lie."""
    log = (ottla.data / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes()
    records = (
        decode_metadata_record(record.value)[0]
        for batch in read_batches(log)
        if not batch.is_control
        for record in batch.records()
        if record.value is not None
    )
    return {
        record.partition_id
        for record in records
        if isinstance(record, PartitionChangeRecord) and record.directories
    }
