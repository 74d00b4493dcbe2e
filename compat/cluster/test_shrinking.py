"""A cluster that Apache Kafka has begun becomes a lone Ottla, while clients go on."""

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.broker_process import ROOT
from compat.cluster.nodes import OTTLA_ID, SMALL_CLUSTER, OttlaNode, stamp
from compat.cluster.quorum import ask, leads
from compat.free_ports import free_ports
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

pytestmark = pytest.mark.slow

KAFKA_ID = 2

PLAIN, TRANSACTED = "plain", "transacted"
GROUP = "readers"

INTERNAL = ("__consumer_offsets", "__transaction_state")


class Cluster:
    """Two nodes, both brokers and controllers."""

    def __init__(self, ottla: OttlaNode, other: KafkaNode | OttlaNode) -> None:
        self.bootstrap = f"{ottla.bootstrap},{other.bootstrap}"
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def partitions(self, topic: str) -> dict[int, tuple[set[int], set[int]]]:
        """Replicas and in-sync replicas."""
        found = self.admin.list_topics(topic, timeout=20).topics[topic].partitions
        return {index: (set(each.replicas), set(each.isrs)) for index, each in found.items()}

    def place(self, replicas: list[int], topics: list[str], *, through: str) -> None:
        """Let all partitions have these replicas, and wait until they are in sync."""
        orders = [
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index in self.partitions(topic)
                ],
            )
            for topic in topics
        ]
        request = AlterPartitionReassignmentsRequest(topics=orders)
        answer = ask(through, request, AlterPartitionReassignmentsResponse, 1)
        codes = [each.error_code for topic in answer.responses for each in topic.partitions]
        assert {answer.error_code, *codes} == {0}

        def is_done() -> bool:
            asked = ListPartitionReassignmentsRequest()
            told = ask(through, asked, ListPartitionReassignmentsResponse, 0)
            return told is not None and not told.error_code and not told.topics

        wait_until(is_done, f"{topics} are on {replicas}", patience_seconds=120)
        wanted = set(replicas)
        wait_until(
            lambda: all(
                found == (wanted, wanted) for topic in topics for found in self.partitions(topic).values()
            ),
            f"{topics} are in sync on {replicas}",
        )


class Client:
    """Work in a thread of its own, one piece after the other, each done again until it succeeds."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self.done = 0
        self.failure: BaseException | None = None
        self._work = work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Client":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._work(self.done)
                self.done += 1
        except BaseException as error:
            self.failure = error

    def wait_for(self, more: int) -> None:
        goal = self.done + more
        wait_until(lambda: self.done >= goal or self.failure, f"{more} pieces more", patience_seconds=120)
        assert self.failure is None, self.failure


def writing(bootstrap: str) -> Callable[[int], None]:
    """One record at a time, by an idempotent producer."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "linger.ms": 0}
    )

    def work(number: int) -> None:
        failed: list[KafkaError] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        producer.produce(PLAIN, b"%d" % number, on_delivery=note)
        assert producer.flush(120) == 0
        assert failed == []

    return work


def transacting(bootstrap: str) -> Callable[[int], None]:
    """One record a transaction; one that is aborted is done again."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "grower", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(120)

    def work(number: int) -> None:
        while True:
            try:
                producer.begin_transaction()
                producer.produce(TRANSACTED, b"%d" % number)
                producer.commit_transaction(120)
                return
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(120)

    return work


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """The committed records of a topic's only partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "checker", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []

    def has_all() -> bool:
        found.extend(message.value() or b"" for message in consumer.consume(500, 0.5))
        return len(found) >= count

    try:
        wait_until(has_all, f"{count} records of {topic} are read")
    finally:
        consumer.close()
    return found


def commit_as_group(bootstrap: str) -> int:
    """Read something in a group, and commit; returns the offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([PLAIN])
    last: list[Message] = []

    def has_some() -> bool:
        last.extend(message for message in consumer.consume(50, 1) if message.error() is None)
        return bool(last)

    try:
        wait_until(has_some, "the group reads")
        consumer.commit(message=last[-1], asynchronous=False)
        return (last[-1].offset() or 0) + 1
    finally:
        consumer.close()


def committed(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    try:
        (found,) = consumer.committed([TopicPartition(PLAIN, 0)], timeout=60)
        return int(found.offset)
    finally:
        consumer.close()


def test_a_cluster_of_kafka_shrinks_to_a_lone_ottla(kafka_jars: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        ottla = OttlaNode(tmp_path / "ottla")
        place = tmp_path / "kafka"
        place.mkdir()
        addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        (place / "addresses").write_text(" ".join(addresses))
        controllers = f"{addresses[1]},{ottla.controller}"
        kafka = KafkaNode(place, SMALL_CLUSTER, node_id=KAFKA_ID, controllers=controllers)
        kafka.format()
        kafka.start()
        stack.callback(kafka.kill)
        cluster_id = stamp(kafka.data, "cluster.id")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_topics([NewTopic(PLAIN, 1, 1), NewTopic(TRANSACTED, 1, 1)]).values():
            future.result(30)

        ottla.settings["controller.quorum.bootstrap.servers"] = controllers
        overrides = [f"--override={name}={value}" for name, value in ottla.settings.items()]
        command = ["-m", "ottla", "format", "-t", cluster_id, "-N", "--data", str(ottla.data), *overrides]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        ottla.start()
        stack.callback(ottla.kill)

        cluster = Cluster(ottla, kafka)
        plain = Client(writing(cluster.bootstrap))
        transacted = Client(transacting(cluster.bootstrap))
        with plain, transacted:
            plain.wait_for(30)
            transacted.wait_for(5)
            offset = commit_as_group(cluster.bootstrap)
            cluster.place([OTTLA_ID], [PLAIN, TRANSACTED, *INTERNAL], through=kafka.bootstrap)
            plain.wait_for(30)
            command = ["-m", "ottla", "handover", "--bootstrap-server", kafka.bootstrap, "--to", "1"]
            done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)
            assert done.returncode == 0, done.stderr
            assert leads(ottla.controller)
            plain.wait_for(30)
            kafka.stop()
            plain.wait_for(30)
            transacted.wait_for(5)
        assert plain.failure is None
        assert transacted.failure is None
        ottla.stop()
        ottla.start()
        assert read(ottla.bootstrap, PLAIN, plain.done) == [b"%d" % number for number in range(plain.done)]
        assert read(ottla.bootstrap, TRANSACTED, transacted.done) == [
            b"%d" % number for number in range(transacted.done)
        ]
        assert committed(ottla.bootstrap) == offset
