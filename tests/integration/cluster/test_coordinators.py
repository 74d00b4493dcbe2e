"""Groups whose coordinators die: what was committed stays, and members go on."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.librdkafka import IDEMPOTENT
from compat.waiting import wait_until
from ottla.cluster import Cluster, Node
from tests.integration.cluster.exactly_once import let_pass, wait_in_sync
from tests.integration.exactly_once import QUICK

pytestmark = pytest.mark.slow

CONTROLLER = "node-1"
PARTITIONS = 6
MEMBERS = 3
RECORDS = 600
PATIENCE_SECONDS = 90.0
SILENCE_SECONDS = 25.0

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


class Member(threading.Thread):
    """Reads, and commits what it has read; whatever happens it goes on."""

    def __init__(self, servers: str, protocol: str) -> None:
        super().__init__(daemon=True)
        self._settings: dict[str, str | int | float | bool] = {
            **QUICK,
            "bootstrap.servers": servers,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if protocol == "classic":
            self._settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        self.ended = threading.Event()
        self.seen: list[tuple[int, int]] = []
        """Partition and offset."""
        self.committed: dict[int, int] = {}
        """What the coordinator has acknowledged, by partition."""

    def run(self) -> None:
        while not self.ended.is_set():
            self._consumer = Consumer(self._settings)
            self._consumer.subscribe(["t"])
            self._read()
            self._consumer.close()

    def _read(self) -> None:
        """Read until the end, or until nothing comes any more.

        When a partition's new leader dies before librdkafka 2.16 has compared epochs with it, librdkafka asks
        the dead one twice a second for as long as it is away and does not ask who leads now (state
        ``validate-epoch-wait``, as in its issue 4492); it goes on with the others.  Somebody else must have
        the partition then.
        """
        heard = time.monotonic()
        while not self.ended.is_set() and time.monotonic() < heard + SILENCE_SECONDS:
            messages = [each for each in self._consumer.consume(50, 0.1) if each.error() is None]
            if messages:
                heard = time.monotonic()
                self._take([(each.partition() or 0, each.offset() or 0) for each in messages])

    def _take(self, places: list[tuple[int, int]]) -> None:
        self.seen += places
        ends = {partition: offset + 1 for partition, offset in places}
        offsets = [TopicPartition("t", partition, end) for partition, end in ends.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # the group has changed, or nobody answers: it is not promised
        self.committed.update(ends)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, 3, settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: Cluster) -> AdminClient:
    admin = AdminClient({**QUICK, "bootstrap.servers": cluster.bootstrap_servers})
    for done in admin.create_topics([NewTopic("t", PARTITIONS, 3)]).values():
        done.result()
    return admin


def coordinator(cluster: Cluster) -> Node:
    # A new client: librdkafka's does not look again for a coordinator that it has found before.
    admin = AdminClient({**QUICK, "bootstrap.servers": cluster.bootstrap_servers})
    found: list[int] = []

    def is_found() -> bool:
        try:
            described = admin.describe_consumer_groups(["g"], request_timeout=5)["g"].result()
        except KafkaException:
            return False
        if described.coordinator is not None:
            found.append(described.coordinator.id)
        return bool(found)

    wait_until(is_found, "the group has a coordinator", patience_seconds=PATIENCE_SECONDS)
    return cluster.node(str(found[0]))


def committed(servers: str) -> dict[int, int]:
    """What the group has committed, as its coordinator says."""
    # Not an admin client: librdkafka 2.16's crashes when it hears that the coordinator has changed.
    consumer = Consumer({**QUICK, "bootstrap.servers": servers, "group.id": "g"})
    found: dict[int, int] = {}

    def is_told() -> bool:
        try:
            told = consumer.committed([TopicPartition("t", each) for each in range(PARTITIONS)], 5)
        except KafkaException:
            return False
        found.update({each.partition: each.offset for each in told})
        return all(each.error is None for each in told)

    wait_until(is_told, "the group's offsets are told", patience_seconds=PATIENCE_SECONDS)
    consumer.close()
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_survives_its_coordinators(
    cluster: Cluster, admin: AdminClient, protocol: str, chance: random.Random
) -> None:
    servers = cluster.bootstrap_servers
    producer = Producer({**QUICK, **IDEMPOTENT, "bootstrap.servers": servers})
    members = [Member(servers, protocol) for _ in range(MEMBERS)]
    for member in members:
        member.start()

    def seen() -> int:
        return len({place for member in members for place in member.seen})

    for round_number in range(1, 4):
        for number in range(RECORDS):
            producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_SECONDS) == 0
        before = RECORDS * (round_number - 1)
        wait_until(lambda: seen() > before, "somebody reads", patience_seconds=PATIENCE_SECONDS)  # noqa: B023
        node = coordinator(cluster)
        let_pass(chance.random() * 0.2)
        node.kill()
        if node.name == CONTROLLER:  # nobody takes its place while it is away
            cluster.start(node.name)
        goal = RECORDS * round_number
        wait_until(
            lambda: seen() == goal,  # noqa: B023
            "everything is read",
            patience_seconds=PATIENCE_SECONDS,
        )
        promised = {
            partition: max(member.committed.get(partition, 0) for member in members)
            for partition in range(PARTITIONS)
        }
        told = committed(servers)
        assert all(told.get(partition, 0) >= end for partition, end in promised.items()), (promised, told)
        if node.pid is None:
            cluster.start(node.name)
        node.wait_ready()
        wait_in_sync(admin)
    for member in members:
        member.ended.set()
    for member in members:
        member.join(PATIENCE_SECONDS)
