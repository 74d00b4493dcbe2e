"""Kafka's own tools at work on a cluster of both kinds, asked by way of either and of the controller."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.cluster.nodes import OTTLA_ID, OttlaNode, ottla_and_kafka
from compat.cluster.operators import said
from compat.cluster.views import ClusterView
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

KAFKA_ID = 2

pytestmark = pytest.mark.slow


class Cluster:
    def __init__(self, folder: Path, ottla: OttlaNode, kafka: KafkaNode) -> None:
        self.folder = folder
        self.ottla = ottla
        self.kafka = kafka

    @property
    def doors(self) -> list[str]:
        """Brokers of both kinds."""
        return [self.ottla.bootstrap, self.kafka.bootstrap]


@pytest.fixture(scope="module")
def cluster(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("tools")
    with ottla_and_kafka(folder, kafka_id=KAFKA_ID) as (ottla, kafka):
        ClusterView(ottla.bootstrap).wait_for_brokers({OTTLA_ID, KAFKA_ID})
        yield Cluster(folder, ottla, kafka)


def topics(door: str, *arguments: str) -> str:
    return said("kafka-topics", "--bootstrap-server", door, *arguments)


def test_topics_are_made_by_way_of_either(cluster: Cluster) -> None:
    for number, door in enumerate(cluster.doors):
        topic = f"made-{number}"
        topics(door, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "2")
        topics(door, "--alter", "--topic", topic, "--partitions", "4")
        for other in cluster.doors:
            wait_until(
                lambda topic=topic, other=other: (
                    "PartitionCount: 4"  # type: ignore[misc]
                    in topics(other, "--describe", "--topic", topic)
                ),
                f"{other} knows of {topic}",
            )


def test_replicas_are_moved_and_leaders_follow(cluster: Cluster) -> None:
    topics(
        cluster.ottla.bootstrap,
        *("--create", "--topic", "moved", "--replica-assignment", f"{OTTLA_ID},{OTTLA_ID}"),
    )
    plan = cluster.folder / "plan.json"
    wanted = [
        {"topic": "moved", "partition": 0, "replicas": [KAFKA_ID]},
        {"topic": "moved", "partition": 1, "replicas": [KAFKA_ID, OTTLA_ID]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    command = ("--bootstrap-server", cluster.kafka.bootstrap, "--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignments" in said(
        "kafka-reassign-partitions", *command, "--execute", "--throttle", "10000000"
    )
    wait_until(
        lambda: said("kafka-reassign-partitions", *command, "--verify").count("is completed") == 2,
        "both partitions have moved",
    )
    assert "No partition reassignments found" in said(
        "kafka-reassign-partitions", "--bootstrap-server", cluster.ottla.bootstrap, "--list"
    )
    election = ("--election-type", "preferred", "--all-topic-partitions")
    said("kafka-leader-election", "--bootstrap-server", cluster.ottla.bootstrap, *election)
    described = topics(cluster.ottla.bootstrap, "--describe", "--topic", "moved")
    assert described.count(f"Leader: {KAFKA_ID}") == 2


def test_the_quorum_is_described_at_every_door(cluster: Cluster) -> None:
    describe = ("describe", "--status")
    for door in cluster.doors:
        status = said("kafka-metadata-quorum", "--bootstrap-server", door, *describe)
        assert f"LeaderId:               {OTTLA_ID}" in status
    replication = said(
        "kafka-metadata-quorum",
        *("--bootstrap-controller", cluster.ottla.controller, "describe", "--replication"),
    )
    roles = {line.split()[0]: line.split()[-1] for line in replication.splitlines()[1:] if line.strip()}
    assert roles == {str(OTTLA_ID): "Leader", str(KAFKA_ID): "Observer"}


def test_features_count_for_all_nodes(cluster: Cluster) -> None:
    for door in (
        ("--bootstrap-server", cluster.kafka.bootstrap),
        ("--bootstrap-controller", cluster.ottla.controller),
    ):
        described = said("kafka-features", *door, "describe")
        assert "FinalizedVersionLevel: 4.4-IV2" in described
        refused = run_tool("kafka-features", *door, "upgrade", "--feature", "share.version=3")
        assert refused.exit_code == 1
        assert "only supports versions 0-2" in refused.output + refused.errors


def test_a_broker_that_is_gone_is_forgotten(cluster: Cluster) -> None:
    listed = said("kafka-cluster", "list-endpoints", "--bootstrap-server", cluster.ottla.bootstrap)
    assert listed.count("unfenced") == 2
    cluster.kafka.stop()
    fenced = ("--bootstrap-server", cluster.ottla.bootstrap, "--include-fenced-brokers")
    assert said("kafka-cluster", "list-endpoints", *fenced).count(" fenced") == 1
    door = ("--bootstrap-server", cluster.ottla.bootstrap)
    assert "no longer registered" in said("kafka-cluster", "unregister", *door, "--id", str(KAFKA_ID))
    assert said("kafka-cluster", "list-endpoints", *fenced).count("fenced") == 1
