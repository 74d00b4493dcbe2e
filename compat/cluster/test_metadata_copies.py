"""A Kafka broker copies the metadata of an Ottla controller: by snapshot, by fetches, and without haste."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OTTLA_ID, OttlaNode, kafka_in, stamp
from compat.cluster.quorum import ask, describe
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

pytestmark = pytest.mark.slow

KAFKA_ID = 2

SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "1",
}

TOPICS = 150


def snapshots(data: Path) -> list[str]:
    names = sorted(path.name for path in (data / "__cluster_metadata-0").glob("*.checkpoint"))
    return [name for name in names if not name.startswith("00000000000000000000-")]


@pytest.fixture(scope="module")
def nodes(
    kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[OttlaNode, KafkaNode]]:
    """An Ottla whose log begins with a snapshot, and a Kafka broker that came later."""
    folder = tmp_path_factory.mktemp("copies")
    ottla = OttlaNode(folder / "ottla", SMALL)
    ottla.start()
    try:
        admin = AdminClient({"bootstrap.servers": ottla.bootstrap})
        made = admin.create_topics([NewTopic(f"t{number}", 2, 1) for number in range(TOPICS)])
        for future in made.values():
            future.result(30)
        admin.create_topics([NewTopic("last", 1, 1)])["last"].result(30)
        wait_until(lambda: snapshots(ottla.data), "a snapshot is there")
        kafka = kafka_in(ottla, folder / "kafka", node_id=KAFKA_ID, roles="broker")
        kafka.start()
        try:
            yield ottla, kafka
        finally:
            kafka.kill()
    finally:
        ottla.kill()


def lag(ottla: OttlaNode, kafka: KafkaNode) -> int:
    """How many records the broker has not fetched; -1 if it does not."""
    told = describe(ottla.controller)
    assert told is not None
    directory = stamp(kafka.data, "directory.id")
    assert directory
    for observer in told.observers:
        if observer.replica_id == KAFKA_ID:
            return told.high_watermark - observer.log_end_offset
    return -1


def test_a_new_broker_begins_with_the_snapshot(nodes: tuple[OttlaNode, KafkaNode]) -> None:
    ottla, kafka = nodes
    wait_until(lambda: lag(ottla, kafka) == 0, "the broker has everything")
    assert snapshots(kafka.data)[0] in snapshots(ottla.data)
    found = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10)
    assert set(found.brokers) == {OTTLA_ID, KAFKA_ID}
    assert {f"t{number}" for number in range(TOPICS)} | {"last"} == set(found.topics)


def test_what_is_new_comes_at_once(nodes: tuple[OttlaNode, KafkaNode]) -> None:
    _, kafka = nodes
    through = AdminClient({"bootstrap.servers": kafka.bootstrap})
    through.create_topics([NewTopic("new", 1, 1)])["new"].result(30)
    # The controller answers without waiting for Kafka's copy, as Kafka's does.
    wait_until(lambda: "new" in through.list_topics(timeout=10).topics, "Kafka knows it")


def test_nobody_asks_in_a_tight_loop(nodes: tuple[OttlaNode, KafkaNode]) -> None:
    """A fetch waits half a second for news, and these come twice a second: an empty record each time."""
    ottla, _ = nodes
    loud = AlterableConfig(name="kafka.request.logger", config_operation=0, value="DEBUG")
    resource = AlterConfigsResource(resource_type=8, resource_name=str(OTTLA_ID), configs=[loud])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = ask(ottla.bootstrap, request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == 0

    def fetches() -> list[datetime]:
        lines = [line for line in ottla.log().splitlines() if "Fetch version" in line]
        return [datetime.fromisoformat(line[:23]) for line in lines]

    wait_until(lambda: len(fetches()) > 12, "the broker asks for metadata")
    first, *_, last = fetches()[:13]
    assert (last - first).total_seconds() > 2


def test_the_broker_has_nothing_to_complain_of(nodes: tuple[OttlaNode, KafkaNode]) -> None:
    _, kafka = nodes
    lines = kafka.log.read_text().splitlines()
    assert [line for line in lines if " ERROR " in line or " WARN " in line] == []
