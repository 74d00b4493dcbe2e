"""A broker of Apache Kafka under a controller of Ottla: it joins, serves, stops, dies and is back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OTTLA_ID, OttlaNode, kafka_in
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

KAFKA_ID = 2
BOTH = {OTTLA_ID, KAFKA_ID}


class Cluster:
    """One node of each kind; Ottla's is the controller."""

    def __init__(self, ottla: OttlaNode, kafka: KafkaNode) -> None:
        self.ottla = ottla
        self.kafka = kafka
        self.admin = AdminClient({"bootstrap.servers": ottla.bootstrap})
        """Asks Ottla, which is there all the time."""

    def brokers(self) -> set[int]:
        """Those that clients are told of."""
        return set(self.admin.list_topics(timeout=10).brokers)

    def leaders(self, topic: str) -> list[int]:
        found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [found[index].leader for index in sorted(found)]

    def in_sync(self, topic: str) -> list[set[int]]:
        found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [set(found[index].isrs) for index in sorted(found)]

    def create(self, topic: str, partitions: int, *, through: str | None = None) -> None:
        """With a replica on each node."""
        admin = AdminClient({"bootstrap.servers": through}) if through else self.admin
        admin.create_topics([NewTopic(topic, partitions, 2)])[topic].result(30)

    def wait_until_in_sync(self, topic: str) -> None:
        wait_until(
            lambda: all(found == BOTH for found in self.in_sync(topic)), f"both are in sync in {topic}"
        )


@pytest.fixture(scope="module")
def cluster(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    ottla = OttlaNode(folder / "ottla")
    ottla.start()
    try:
        kafka = kafka_in(ottla, folder / "kafka", node_id=KAFKA_ID, roles="broker")
        kafka.start()
        try:
            made = Cluster(ottla, kafka)
            wait_until(lambda: made.brokers() == BOTH, "Kafka's broker is unfenced")
            yield made
        finally:
            kafka.kill()
    finally:
        ottla.stop()


def produced(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Write values into a topic, one after the other, with acks=all and a producer id."""
    failures = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert [error for error in failures if error is not None] == []


def consumed(bootstrap: str, topic: str, count: int) -> set[bytes]:
    """The first values of a topic."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def is_complete() -> bool:
        for message in consumer.consume(100, timeout=1):
            assert message.error() is None
            found.add(message.value() or b"")
        return len(found) >= count

    try:
        wait_until(is_complete, f"{count} records of {topic}")
    finally:
        consumer.close()
    return found


@pytest.mark.slow
class TestKafkaBrokerUnderOttla:
    def test_each_leads_its_share_and_copies_the_other_s(self, cluster: Cluster) -> None:
        cluster.create("shared", 6)
        assert sorted(cluster.leaders("shared")) == [OTTLA_ID] * 3 + [KAFKA_ID] * 3
        values = [b"%d" % number for number in range(300)]
        produced(cluster.ottla.bootstrap, "shared", values)
        cluster.wait_until_in_sync("shared")
        assert consumed(cluster.kafka.bootstrap, "shared", 300) == set(values)

    def test_what_its_clients_ask_the_controller_reaches_it(self, cluster: Cluster) -> None:
        cluster.create("asked-for", 2, through=cluster.kafka.bootstrap)
        assert len(cluster.leaders("asked-for")) == 2
        produced(cluster.kafka.bootstrap, "asked-for", [b"an id from the controller's block"])

    def test_it_stops_when_others_lead_and_is_back_at_once(self, cluster: Cluster) -> None:
        cluster.create("moved", 4)
        cluster.kafka.stop()
        assert cluster.brokers() == {OTTLA_ID}
        assert cluster.leaders("moved") == [OTTLA_ID] * 4
        assert cluster.in_sync("moved") == [{OTTLA_ID}] * 4
        produced(cluster.ottla.bootstrap, "moved", [b"alone"] * 20)
        cluster.kafka.start()
        cluster.wait_until_in_sync("moved")
        assert "may not register" not in cluster.ottla.log()

    def test_it_dies_and_is_missed_when_its_session_is_over(self, cluster: Cluster) -> None:
        cluster.create("inherited", 4)
        cluster.wait_until_in_sync("inherited")
        cluster.kafka.kill()
        wait_until(lambda: cluster.leaders("inherited") == [OTTLA_ID] * 4, "Ottla leads everything")
        assert cluster.brokers() == {OTTLA_ID}
        assert "broker 2 is fenced" in cluster.ottla.log()
        produced(cluster.ottla.bootstrap, "inherited", [b"alone"] * 20)
        cluster.kafka.start()
        cluster.wait_until_in_sync("inherited")

    def test_the_controller_s_own_end_stops_nobody_but_itself(self, cluster: Cluster) -> None:
        cluster.create("kept", 2)
        cluster.wait_until_in_sync("kept")
        cluster.ottla.kill()
        cluster.ottla.start()
        wait_until(lambda: cluster.brokers() == BOTH, "both are there")
        cluster.wait_until_in_sync("kept")
        produced(cluster.ottla.bootstrap, "kept", [b"after"] * 20)
