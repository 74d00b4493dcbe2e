"""Brokers of Ottla under a controller of Apache Kafka: they join, serve, stop, die, pause and are back."""

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.lengthy import LENGTHY
from compat.cluster.nodes import SMALL_CLUSTER, OttlaBroker, kafka_controller
from compat.cluster.operators import said
from compat.cluster.quorums import kafka_quorum
from compat.cluster.records import consumed, produced
from compat.cluster.views import ClusterView
from compat.disk_faults.faults import Faults
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

KAFKA_ID, FIRST_ID, SECOND_ID, THIRD_ID = 101, 1, 2, 3
BOTH = {FIRST_ID, SECOND_ID}
DUPLICATE = "DUPLICATE_BROKER_REGISTRATION"


class Cluster(ClusterView):
    """Two brokers, and a controller without a broker; the first broker tells what is seen."""

    def __init__(self, controller: KafkaNode, first: OttlaBroker, second: OttlaBroker) -> None:
        super().__init__(first.bootstrap)
        self.controller = controller
        self.first = first
        self.second = second

    def create(self, topic: str, partitions: int) -> None:
        """With a replica on each broker."""
        self.admin.create_topics([NewTopic(topic, partitions, 2)])[topic].result(30)
        self.wait_until_in_sync(topic, BOTH)


@pytest.fixture(scope="module")
def cluster(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("brokers")
    controller = kafka_controller(folder / "kafka", KAFKA_ID)
    controller.start()
    first = OttlaBroker(folder / "first", controller.controller, node_id=FIRST_ID)
    second = OttlaBroker(folder / "second", controller.controller, node_id=SECOND_ID)
    try:
        first.start()
        second.start()
        made = Cluster(controller, first, second)
        made.wait_for_brokers(BOTH)
        yield made
    finally:
        for broker in (second, first):
            if broker.is_running:
                broker.kill()
        controller.kill()


def tool(name: str, at: OttlaBroker, *arguments: str, name_first: bool = False) -> str:
    """What a tool says; of some it is the first argument that says what to do."""
    place = ("--bootstrap-server", at.bootstrap)
    return said(name, *arguments, *place) if name_first else said(name, *place, *arguments)


@pytest.mark.slow
class TestAsked:
    """What Kafka's tools ask of the controller goes through our brokers."""

    def test_topics(self, cluster: Cluster) -> None:
        of_topic = ("--topic", "by-tool")
        tool(
            "kafka-topics", cluster.second, "--create", *of_topic, "--partitions=2", "--replication-factor=2"
        )
        tool("kafka-topics", cluster.second, "--alter", *of_topic, "--partitions=3")
        wait_until(lambda: len(cluster.leaders("by-tool")) == 3, "the first broker knows of the third one")
        cluster.wait_until_in_sync("by-tool", BOTH)
        values = [b"%d" % number for number in range(100)]
        produced(cluster.first.bootstrap, "by-tool", values)
        assert consumed(cluster.second.bootstrap, "by-tool", 100) == set(values)
        tool("kafka-topics", cluster.second, "--delete", *of_topic)
        wait_until(
            lambda: "by-tool" not in cluster.admin.list_topics(timeout=10).topics, "the first broker forgets"
        )

    def test_settings(self, cluster: Cluster) -> None:
        def alter(*arguments: str) -> None:
            tool("kafka-configs", cluster.second, "--alter", *arguments)

        def describe(at: OttlaBroker, *arguments: str) -> str:
            return tool("kafka-configs", at, "--describe", *arguments)

        of_second = ("--entity-type", "brokers", "--entity-name", str(SECOND_ID))
        alter(*of_second, "--add-config", "log.cleaner.threads=2")
        assert "log.cleaner.threads=2" in describe(cluster.second, *of_second)
        everybody = ("--entity-type", "brokers", "--entity-default")
        alter(*everybody, "--add-config", "log.retention.ms=87654321")
        wait_until(
            lambda: "log.retention.ms=87654321" in describe(cluster.first, *everybody),
            "the first broker has what was set at the second",
        )
        loggers = ("--entity-type", "broker-loggers", "--entity-name", str(SECOND_ID))
        alter(*loggers, "--add-config", "kafka.request.logger=INFO")
        assert "kafka.request.logger=INFO" in describe(cluster.second, *loggers)
        refused = run_tool(
            *("kafka-configs", "--bootstrap-server", cluster.second.bootstrap, "--alter"),
            *("--entity-type", "topics", "--entity-name", "nowhere", "--add-config", "retention.ms=1"),
        )
        assert refused.exit_code == 1
        assert "UnknownTopicOrPartitionException" in refused.output + refused.errors

    def test_the_quorum(self, cluster: Cluster) -> None:
        asked = tool("kafka-metadata-quorum", cluster.second, "describe", "--status")
        assert f"LeaderId:               {KAFKA_ID}" in asked

    def test_what_is_made_on_demand(self, cluster: Cluster) -> None:
        produced(cluster.second.bootstrap, "on-demand", [b"makes its topic"])
        producer = Producer({"bootstrap.servers": cluster.second.bootstrap, "transactional.id": "one"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("on-demand", b"makes the coordinator's")
        producer.commit_transaction(30)
        assert len(consumed(cluster.first.bootstrap, "on-demand", 2)) == 2
        topics = cluster.admin.list_topics(timeout=10).topics
        assert len(topics["__transaction_state"].partitions[0].replicas) == 2


@pytest.mark.slow
class TestLives:
    def test_a_broker_that_stops_is_let_go(self, cluster: Cluster) -> None:
        cluster.create("moved", 4)
        assert cluster.second.stop() == 0
        cluster.wait_for_brokers({FIRST_ID})
        assert cluster.leaders("moved") == [FIRST_ID] * 4
        assert cluster.in_sync("moved") == [{FIRST_ID}] * 4
        produced(cluster.first.bootstrap, "moved", [b"alone"] * 20)
        assert "goes without leave" not in cluster.second.log()
        cluster.second.start()
        assert "recovering" not in cluster.second.log()
        cluster.wait_until_in_sync("moved", BOTH)

    def test_one_that_dies_is_missed_and_comes_back_when_its_session_is_over(self, cluster: Cluster) -> None:
        cluster.create("inherited", 4)
        cluster.second.kill()
        wait_until(lambda: cluster.leaders("inherited") == [FIRST_ID] * 4, "the first leads everything")
        assert cluster.brokers() == {FIRST_ID}
        produced(cluster.first.bootstrap, "inherited", [b"alone"] * 20)
        cluster.second.start()
        cluster.wait_until_in_sync("inherited", BOTH)
        cluster.second.kill()
        cluster.second.start()  # at once: its session lasts
        assert DUPLICATE in cluster.second.log()
        cluster.wait_until_in_sync("inherited", BOTH)

    def test_one_that_was_silent_for_too_long_is_fenced_and_unfenced(self, cluster: Cluster) -> None:
        cluster.create("paused", 4)
        os.kill(cluster.second.pid, signal.SIGSTOP)
        try:
            cluster.wait_for_brokers({FIRST_ID})
        finally:
            os.kill(cluster.second.pid, signal.SIGCONT)
        cluster.wait_for_brokers(BOTH)
        cluster.wait_until_in_sync("paused", BOTH)

    def test_the_controller_s_end_stops_nobody(self, cluster: Cluster) -> None:
        cluster.create("kept", 4)
        produced(cluster.first.bootstrap, "kept", [b"before"])
        assert consumed(cluster.second.bootstrap, "kept", 1) == {b"before"}  # and there is a coordinator
        cluster.controller.kill()
        values = [b"%d" % number for number in range(50)]
        producer = Producer({"bootstrap.servers": cluster.first.bootstrap, "acks": "all"})
        for value in values:
            producer.produce("kept", value)
        assert producer.flush(60) == 0
        assert consumed(cluster.second.bootstrap, "kept", 50) == set(values)
        cluster.controller.start()
        cluster.create("afterwards", 2)
        assert cluster.brokers() == BOTH
        produced(cluster.second.bootstrap, "afterwards", values)

    def test_one_that_is_unregistered_while_it_lives_stays_out_until_it_is_started_again(
        self, cluster: Cluster
    ) -> None:
        cluster.create("known", 4)
        tool("kafka-cluster", cluster.first, "unregister", "--id", str(SECOND_ID), name_first=True)
        wait_until(
            lambda: "has been unregistered while it runs" in cluster.second.log(), "the second sees it"
        )
        wait_until(lambda: "STALE_BROKER_EPOCH" in cluster.second.log(), "its heartbeats are refused")
        cluster.wait_for_brokers({FIRST_ID})
        assert cluster.second.stop() == 0
        cluster.second.start()
        cluster.wait_for_brokers(BOTH)
        cluster.wait_until_in_sync("known", BOTH)

    def test_without_a_controller_a_broker_stops_all_the_same(self, cluster: Cluster) -> None:
        cluster.controller.kill()
        assert cluster.second.stop() == 0
        assert "goes without leave" in cluster.second.log()
        cluster.controller.start()
        cluster.second.start()
        cluster.wait_for_brokers(BOTH)


@LENGTHY
@pytest.mark.slow
def test_directories(cluster: Cluster, tmp_path: Path) -> None:
    """The controller knows what lies where, which takes nothing new, and which has failed."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    faults = Faults(tmp_path / "faults")
    third = OttlaBroker(
        tmp_path / "third",
        cluster.controller.controller,
        {"log.dirs": f"{good},{bad}"},
        node_id=THIRD_ID,
    )
    third.environment |= faults.environment
    third.start()
    try:
        # One after the other, so that each directory gets its share.
        for number in range(2):
            places = ",".join(f"{THIRD_ID}:{FIRST_ID}" for _ in range(2))
            tool(
                *("kafka-topics", cluster.first, "--create", "--topic", f"placed-{number}"),
                *("--replica-assignment", places),
            )
        topics = ("placed-0", "placed-1")
        wait_until(
            lambda: all(cluster.leaders(topic) == [THIRD_ID] * 2 for topic in topics),
            "the third leads its partitions",
        )
        for topic in topics:
            produced(third.bootstrap, topic, [b"%d" % number for number in range(20)])
        lying = {path.name for path in bad.iterdir() if path.name.startswith("placed-")}
        assert 0 < len(lying) < 4
        of_third = ("--entity-type", "brokers", "--entity-name", str(THIRD_ID))
        tool("kafka-configs", third, "--alter", *of_third, "--add-config", f"cordoned.log.dirs={bad}")
        tool(
            *("kafka-topics", cluster.first, "--create", "--topic", "elsewhere"),
            *("--replica-assignment", ",".join([str(THIRD_ID)] * 4)),
        )
        wait_until(lambda: len(list(good.glob("elsewhere-*"))) == 4, "new partitions avoid what is cordoned")

        def led_by_third() -> set[str]:
            found = cluster.admin.list_topics(timeout=10).topics
            return {
                f"{topic}-{index}"
                for topic in topics
                for index, partition in found[topic].partitions.items()
                if partition.leader == THIRD_ID
            }

        faults.begin("write", errno.EIO, str(bad))
        producer = Producer({"bootstrap.servers": cluster.first.bootstrap, "acks": "all"})
        for topic in topics:
            for partition in range(2):
                producer.produce(topic, b"to whoever leads", partition=partition)
        assert producer.flush(60) == 0
        wait_until(
            lambda: led_by_third() == {"placed-0-0", "placed-0-1", "placed-1-0", "placed-1-1"} - lying,
            "others lead what lay in the directory that has failed",
        )
        assert third.is_running
    finally:
        third.kill()


@LENGTHY
@pytest.mark.slow
def test_a_cluster_of_an_older_level_is_upgraded_through_a_broker(kafka_jars: Path, tmp_path: Path) -> None:
    controller = kafka_controller(tmp_path / "kafka", KAFKA_ID, "--release-version", "4.0-IV3")
    controller.start()
    broker = OttlaBroker(tmp_path / "ottla", controller.controller, node_id=FIRST_ID)
    broker.start()
    try:
        produced(broker.bootstrap, "older", [b"%d" % number for number in range(20)])
        asked = tool("kafka-features", broker, "upgrade", "--release-version", "4.4-IV2")
        assert "metadata.version was upgraded to 33." in asked
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("newer", 2, 1)])["newer"].result(30)
        produced(broker.bootstrap, "newer", [b"%d" % number for number in range(20)])
        assert broker.stop() == 0
        broker.start()
        assert len(consumed(broker.bootstrap, "older", 20)) == 20
    finally:
        if broker.is_running:
            broker.kill()
        controller.kill()


@LENGTHY
@pytest.mark.slow
def test_another_controller_takes_over(kafka_jars: Path, tmp_path: Path) -> None:
    """One of three dies, the active one: brokers go on with its successor, and so do their clients."""
    settings = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", **SMALL_CLUSTER}
    with kafka_quorum(tmp_path, 3, settings, roles="controller") as quorum:
        broker = OttlaBroker(tmp_path / "ottla", quorum.controllers, node_id=FIRST_ID)
        broker.start()
        try:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            for round_number in range(2):
                topic = f"before-{round_number}"
                admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
                produced(broker.bootstrap, topic, [b"before"] * 10)
                active = active_controller(broker)
                quorum.nodes[active].kill()
                topic = f"after-{round_number}"
                admin.create_topics([NewTopic(topic, 2, 1)], operation_timeout=30, request_timeout=60)[
                    topic
                ].result(60)
                produced(broker.bootstrap, topic, [b"after"] * 10)
                assert active_controller(broker) != active
                quorum.nodes[active].start()
            assert "has fenced" not in broker.log()
        finally:
            assert broker.stop() == 0


def active_controller(broker: OttlaBroker) -> int:
    """The id of the quorum's leader, as a broker tells it."""
    lines = tool("kafka-metadata-quorum", broker, "describe", "--status").splitlines()
    return int(next(line for line in lines if line.startswith("LeaderId:")).split()[1])
