"""One directory whose brokers, Kafka and we in turn, are killed: each recovers what the other has left."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from compat.oracle.kafka import KafkaNode, kafka_node
from compat.oracle.test_directories import check, create, ottla_on, produce
from compat.oracle.test_group_directories import Client
from compat.oracle.test_transactions_in_directories import CALL_SECONDS, consumer
from compat.python_clients import CLIENTS
from compat.scenarios.python.client import Place, Record
from compat.scenarios.python.stage import Stage
from compat.verification import damages
from compat.waiting import wait_until
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest

pytestmark = pytest.mark.slow

SETTINGS = {"log.flush.start.offset.checkpoint.interval.ms": "100", "offsets.topic.num.partitions": "1"}
STARTS = "log-start-offset-checkpoint"
EARLIEST = -2
GROUP = "readers"


class Life:
    """What has happened to the topics, whoever served them."""

    def __init__(self) -> None:
        self.kept: dict[Place, Record] = {}
        self.start = 0
        self.read = 0
        self.turns = 0

    def go_on(self, address: str, data: Path) -> None:
        """See that all is as it was left; add records, delete some, delete a topic, and move a group."""
        self.turns += 1
        if self.turns == 1:
            create(address, "kept", 3)
            with Stage(CLIENTS["confluent-kafka"], address) as stage:
                stage.topic(1, {"retention.ms": "-1"}, name="cut")
        else:
            self.check(address)
        with asking(address) as client:
            create(address, "gone", 2)
            produce(address, "gone", "lz4", self.turns)
            client.delete_topic(client.known_topic("gone"))
            client.produce(client.known_topic("cut"), *"abcdefgh")
            self.start = 8 * self.turns - 3
            client.delete_records(client.known_topic("cut"), self.start)
        self.kept |= produce(address, "kept", ("zstd", "none", "gzip", "snappy")[self.turns % 4], self.turns)
        with consumer(address, GROUP) as member:
            self.read = 10 * self.turns
            member.commit(offsets=[TopicPartition("kept", 0, self.read)], asynchronous=False)
        wait_until(lambda: f"cut 0 {self.start}\n" in read(data / STARTS), "the log's start is stored")

    def check(self, address: str) -> None:
        check(address, "kept", 3, self.kept)
        with asking(address) as client:
            known = {topic.name for topic in client.quietly(MetadataRequest(topics=None)).topics}
            assert {"kept", "cut"} <= known
            assert "gone" not in known
            assert earliest(client, "cut") == self.start
        with consumer(address, GROUP) as member:
            (found,) = member.committed([TopicPartition("kept", 0)], CALL_SECONDS)
        assert found.offset == self.read


@contextmanager
def asking(address: str) -> Iterator[Client]:
    client = Client(address)
    try:
        yield client
    finally:
        client.close()


def earliest(client: Client, topic: str) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
    answer = client.quietly(
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    )
    (found,) = answer.topics[0].partitions
    assert not found.error_code, found
    return int(found.offset)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def static_voters(node: KafkaNode) -> dict[str, str]:
    """The older way to say which controllers there are."""
    return {"controller.quorum.bootstrap.servers": "", "controller.quorum.voters": f"1@{node.controller}"}


@contextmanager
def us_until_killed(node: KafkaNode) -> Iterator[str]:
    broker = ottla_on(node)
    broker.start()
    try:
        yield node.bootstrap
    finally:
        broker.kill()


@contextmanager
def kafka_until_killed(node: KafkaNode) -> Iterator[str]:
    node.start()
    try:
        yield node.bootstrap
    finally:
        node.kill()


def test_each_recovers_what_the_other_was_killed_over(kafka_jars: Path, tmp_path: Path) -> None:
    """We have formatted the directory; Kafka is told of its controller in one way, and then in the other."""
    life = Life()
    folder = tmp_path / "node"
    node = KafkaNode(folder, SETTINGS)
    for run in (us_until_killed, kafka_until_killed, us_until_killed):
        if run is kafka_until_killed:
            node = KafkaNode(folder, {**SETTINGS, **static_voters(node)})
        with run(node) as address:
            life.go_on(address, node.data)
        assert damages(node.data) == []
    with kafka_node(folder, SETTINGS) as node:
        life.check(node.bootstrap)
    with us_until_killed(node) as address:
        life.check(address)
    assert damages(node.data) == []


def test_a_directory_with_static_voters_is_recovered_by_both(kafka_jars: Path, tmp_path: Path) -> None:
    """Kafka has formatted it as it did before version 3.9: no record says who the voters are."""
    life = Life()
    folder = tmp_path / "node"
    node = KafkaNode(folder, SETTINGS)
    node = KafkaNode(folder, {**SETTINGS, **static_voters(node)})
    node.format()
    for run in (kafka_until_killed, us_until_killed):
        with run(node) as address:
            life.go_on(address, node.data)
    with kafka_node(folder, node.settings) as node:
        life.check(node.bootstrap)
    assert damages(node.data) == []
