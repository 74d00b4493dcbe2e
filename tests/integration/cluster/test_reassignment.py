"""Replicas that come and go among three nodes: new ones catch up under traffic, old ones are deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from compat.python_kafka_python.sockets import close_forgotten_sockets
from compat.waiting import wait_until
from ottla.cluster import Cluster
from tests.integration.cluster.promises import broken_promises, differing_replicas
from tests.integration.cluster.traffic import NumberedRecords, Reader, write_last_words

close_forgotten_sockets()

pytestmark = pytest.mark.slow

TOPIC = "moving"
PARTITIONS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster", nodes=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 3, "all brokers are unfenced")
        yield cluster


def replicas(admin: AdminClient) -> list[tuple[list[int], list[int]]]:
    """Replicas and in-sync sets, in order of partition."""
    found = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return [(sorted(found[index].replicas), sorted(found[index].isrs)) for index in sorted(found)]


def folders(cluster: Cluster, number: int) -> list[str]:
    data = cluster.node(str(number)).data
    return [name for path in data.iterdir() if (name := path.name).startswith(TOPIC) and "delete" not in name]


def reassign(cluster: Cluster, places: list[list[int]]) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        wanted = {TopicPartition(TOPIC, index): brokers for index, brokers in enumerate(places)}
        assert not any(client.alter_partition_reassignments(wanted).values())
    finally:
        client.close()


def test_replicas_move_between_nodes_under_traffic(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    places = [[1, 2], [2, 3], [3, 1]]
    topic = NewTopic(TOPIC, PARTITIONS, replica_assignment=places, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(30)
    writer = NumberedRecords(servers, TOPIC, PARTITIONS, "w")
    live = Reader(servers, TOPIC, PARTITIONS)
    writer.start()
    live.start()
    for turn in range(1, 5):
        sent = writer.sent
        wait_until(lambda sent=sent: writer.sent > sent + 300, "some records are written")  # type: ignore[misc]
        wanted = [[(broker + turn - 1) % 3 + 1 for broker in brokers] for brokers in places]
        reassign(cluster, wanted)
        expected = [(sorted(brokers), sorted(brokers)) for brokers in wanted]
        wait_until(
            lambda expected=expected: replicas(admin) == expected,  # type: ignore[misc]
            f"the replicas are at {wanted}",
        )
    writer.end()
    write_last_words(servers, TOPIC, PARTITIONS)
    live.end()
    final = Reader(servers, TOPIC, PARTITIONS)
    final.start()
    final.end()
    assert broken_promises([writer], [], live, final) == []
    reassign(cluster, [[1, 2, 3]] * PARTITIONS)
    wait_until(lambda: replicas(admin) == [([1, 2, 3], [1, 2, 3])] * PARTITIONS, "all have everything")
    reassign(cluster, [[2, 3]] * PARTITIONS)
    wait_until(lambda: folders(cluster, 1) == [], "what is not wanted any more is deleted")
    cluster.stop_all()
    assert differing_replicas([cluster.node("2").data, cluster.node("3").data], TOPIC, PARTITIONS) == []
