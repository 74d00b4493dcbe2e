"""An Ottla broker leads under Apache Kafka: a follower that stands still is let go, and comes back."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.lengthy import LENGTHY
from compat.cluster.nodes import SMALL_CLUSTER, OttlaBroker, kafka_controller, stamp
from compat.librdkafka import IDEMPOTENT
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

OTTLA_ID = 3
KAFKA_ID = 2

pytestmark = [pytest.mark.slow, LENGTHY]


class Cluster:
    def __init__(self, ottla: OttlaBroker, kafka: KafkaNode) -> None:
        self.ottla = ottla
        self.kafka = kafka
        self.admin = AdminClient({"bootstrap.servers": ottla.bootstrap})

    def in_sync(self, topic: str) -> set[int]:
        # A new client asks Ottla's broker; one that knows both may ask the one that stands still.
        asked = AdminClient({"bootstrap.servers": self.ottla.bootstrap})
        return set(asked.list_topics(topic, timeout=10).topics[topic].partitions[0].isrs)


@pytest.fixture
def cluster(kafka_jars: Path, tmp_path: Path) -> Iterator[Cluster]:
    controller = kafka_controller(tmp_path / "controller", 100)
    patient = {**SMALL_CLUSTER, "broker.session.timeout.ms": "60000"}
    ottla = OttlaBroker(
        tmp_path / "ottla",
        controller.controller,
        node_id=OTTLA_ID,
        settings={**patient, "replica.lag.time.max.ms": "2000"},
    )
    kafka = KafkaNode(
        tmp_path / "kafka",
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", **patient},
        node_id=KAFKA_ID,
        roles="broker",
        controllers=controller.controller,
    )
    try:
        controller.start()
        ottla.start()
        kafka.format(cluster_id=stamp(controller.data, "cluster.id"))
        kafka.start()
        made = Cluster(ottla, kafka)
        wait_until(lambda: len(made.admin.list_topics(timeout=10).brokers) == 2, "both are there")
        yield made
    finally:
        for node in (ottla, kafka, controller):
            node.kill()


def test_a_follower_that_stands_still_is_let_go_and_comes_back(cluster: Cluster) -> None:
    topic = NewTopic("t", 1, replica_assignment=[[OTTLA_ID, KAFKA_ID]])
    cluster.admin.create_topics([topic])["t"].result(30)
    outcomes: list[object] = []
    producer = Producer({**IDEMPOTENT, "bootstrap.servers": cluster.ottla.bootstrap})

    def send(count: int) -> None:
        for number in range(count):
            producer.produce("t", b"%d" % number, on_delivery=lambda error, _: outcomes.append(error))

    send(100)
    assert producer.flush(60) == 0
    wait_until(lambda: cluster.in_sync("t") == {OTTLA_ID, KAFKA_ID}, "both are in sync")
    os.kill(cluster.kafka.pid, signal.SIGSTOP)
    try:
        send(100)
        assert producer.flush(60) == 0
        wait_until(lambda: cluster.in_sync("t") == {OTTLA_ID}, "Kafka's broker is let go")
    finally:
        os.kill(cluster.kafka.pid, signal.SIGCONT)
    wait_until(lambda: cluster.in_sync("t") == {OTTLA_ID, KAFKA_ID}, "Kafka's broker is in sync again")
    assert outcomes == [None] * 200
    assert f"broker {KAFKA_ID} has not caught up for 2000 ms in t-0" in cluster.ottla.log()
