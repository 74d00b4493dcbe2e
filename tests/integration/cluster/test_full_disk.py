"""A node whose disk takes no more: others lead, and it comes back without a restart when there is room.

The disk is not full: the process may not let a file grow, which to it is the same.
"""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import SMALL_CLUSTER, OttlaBroker
from compat.cluster.quorums import kafka_quorum
from compat.waiting import wait_until
from ottla.cluster import Cluster
from tests.integration.exactly_once import QUICK

pytestmark = pytest.mark.slow

RECORDS = 10
RECORD_BYTES = 100_000
PATIENCE_SECONDS = 60.0

Places = list[list[int]]
"""The replicas of each partition; the first is to lead."""

State = list[tuple[int, set[int]]]
"""Leader and in-sync set of each partition."""


@contextmanager
def no_room(process_id: int) -> Iterator[None]:
    """The process cannot write to a file beyond this size, which only logs of records reach."""
    _, hard = resource.prlimit(process_id, resource.RLIMIT_FSIZE)
    resource.prlimit(process_id, resource.RLIMIT_FSIZE, (RECORDS * RECORD_BYTES, hard))
    try:
        yield
    finally:
        resource.prlimit(process_id, resource.RLIMIT_FSIZE, (hard, hard))


class Clients:
    """Those of one cluster."""

    def __init__(self, servers: str) -> None:
        self._settings = {**QUICK, "bootstrap.servers": servers}
        self.admin = AdminClient(self._settings)

    def create(self, topic: str, places: Places) -> None:
        made = self.admin.create_topics([NewTopic(topic, len(places), replica_assignment=places)])
        made[topic].result(30)
        self.wait(topic, lambda found: found == [(replicas[0], set(replicas)) for replicas in places])

    def state(self, topic: str) -> State:
        try:
            found = self.admin.list_topics(topic, timeout=5).topics[topic].partitions
        except KafkaException:
            return []
        return [(found[index].leader, set(found[index].isrs)) for index in sorted(found)]

    def wait(self, topic: str, holds: Callable[[State], bool]) -> None:
        wait_until(lambda: holds(self.state(topic)), f"{topic} is well", patience_seconds=PATIENCE_SECONDS)

    def produce(self, topic: str, partitions: int, *, seconds: float) -> list[str]:
        """Some large records to each partition; return the errors, of which each ends a record."""
        errors: list[str] = []
        producer = Producer({**self._settings, "acks": "all", "message.timeout.ms": int(1000 * seconds)})
        for _ in range(RECORDS):
            for partition in range(partitions):
                producer.produce(
                    topic,
                    bytes(RECORD_BYTES),
                    partition=partition,
                    on_delivery=lambda error, _: errors.append(str(error)) if error else None,
                )
        assert producer.flush(PATIENCE_SECONDS) == 0
        return errors

    def count(self, topic: str) -> int:
        """The records of the topic's first partition that can be read."""
        consumer = Consumer({**self._settings, "group.id": "g"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        read = consumer.consume(end, 20)
        consumer.close()
        return len([each for each in read if each.error() is None])

    def elect(self, topic: str, places: Places) -> bool:
        """Let the first replicas lead; whether they do."""
        wanted = [TopicPartition(topic, index) for index in range(len(places))]
        self.admin.elect_leaders(ElectionType.PREFERRED, wanted).result(30)
        return [leader for leader, _ in self.state(topic)] == [replicas[0] for replicas in places]


def play(clients: Clients, process_id: int, places: Places, full: int) -> None:
    """A topic goes on without node ``full``; what that has alone is read there all the same."""
    count = len(places)
    clients.create("t", places)
    clients.create("alone", [[full]])
    assert clients.produce("t", count, seconds=30) == []
    assert clients.produce("alone", 1, seconds=30) == []
    with no_room(process_id):
        assert clients.produce("t", count, seconds=45) == []
        clients.wait("t", lambda found: all(full not in (leader, *isr) for leader, isr in found))
        assert len(clients.produce("alone", 1, seconds=3)) == RECORDS
        assert clients.count("alone") == RECORDS
    clients.wait("t", lambda found: [isr for _, isr in found] == [set(replicas) for replicas in places])
    wait_until(
        lambda: clients.elect("t", places),
        "the first replicas lead again",
        patience_seconds=PATIENCE_SECONDS,
    )
    assert clients.produce("t", count, seconds=30) == []
    assert clients.produce("alone", 1, seconds=30) == []


@pytest.mark.parametrize("full", [1, 2], ids=["controller", "broker"])
def test_others_lead_and_it_comes_back(tmp_path: Path, full: int) -> None:
    with Cluster(tmp_path, 3, settings=SMALL_CLUSTER) as cluster:
        process_id = cluster.node(str(full)).pid
        assert process_id is not None
        others = [each for each in (1, 2, 3) if each != full]
        places = [[full, *others], [*others, full]]
        play(Clients(cluster.bootstrap_servers), process_id, places, full)
        assert cluster.node(str(full)).pid == process_id


@pytest.mark.usefixtures("kafka_jars")
def test_beside_kafka(tmp_path: Path) -> None:
    """Under Kafka's controller; the other replicas are Ottla's or Kafka's."""
    settings = {**SMALL_CLUSTER, "replica.lag.time.max.ms": "5000"}
    with kafka_quorum(tmp_path, 1, settings) as quorum:
        (kafka,) = quorum.nodes
        ottlas = [
            OttlaBroker(tmp_path / f"ottla-{each}", quorum.controllers, settings, node_id=each)
            for each in (1, 2)
        ]
        try:
            for ottla in ottlas:
                ottla.start()
            clients = Clients(",".join([quorum.bootstrap, *(ottla.bootstrap for ottla in ottlas)]))
            play(clients, ottlas[0].pid, [[1, 2], [1, kafka], [kafka, 1], [2, 1]], 1)
        finally:
            for ottla in ottlas:
                ottla.kill()
