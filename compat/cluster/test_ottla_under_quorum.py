"""Brokers of Ottla and of Apache Kafka under three controllers of Kafka, of which the active one dies."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaException, NewTopic

from compat.cluster.nodes import SMALL_CLUSTER, OttlaBroker
from compat.cluster.quorums import KafkaQuorum, kafka_quorum
from compat.cluster.records import consumed, produced
from compat.waiting import wait_until

OTTLA_IDS = (1, 2)

SETTINGS = {**SMALL_CLUSTER, "offsets.topic.replication.factor": "3"}
"""A group's coordinator may be on any node, and outlives it."""

METADATA = "__cluster_metadata-0"


class Cluster:
    """Kafka's three nodes, and two brokers of Ottla."""

    def __init__(self, quorum: KafkaQuorum, ottlas: dict[int, OttlaBroker]) -> None:
        self.quorum = quorum
        self.ottlas = ottlas
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        """Asks Ottla."""

    @property
    def bootstrap(self) -> str:
        """Of Ottla's brokers."""
        return ",".join(ottla.bootstrap for ottla in self.ottlas.values())

    @property
    def all_ids(self) -> set[int]:
        return {*OTTLA_IDS, *(node_id for node_id, node in self.quorum.nodes.items() if node.is_running)}

    def brokers(self) -> set[int]:
        return set(self.admin.list_topics(timeout=10).brokers)

    def noted(self, ottla_id: int) -> tuple[int, int]:
        """Leader and epoch of the quorum, as one of Ottla's brokers has noted them."""
        text = (self.ottlas[ottla_id].data / METADATA / "quorum-state").read_text()
        state = json.loads(text)
        return state["leaderId"], state["leaderEpoch"]

    def wait_for_epoch_after(self, epoch: int) -> None:
        """Wait until another controller leads, by what Ottla knows."""
        wait_until(
            lambda: all(self.noted(each) > (-1, 0) and self.noted(each)[1] > epoch for each in OTTLA_IDS),
            f"an epoch after {epoch} has a leader",
        )

    def create(self, topic: str) -> None:
        """Two partitions with a replica on each of Ottla's brokers and one of Kafka's."""
        kafka_ids = sorted(self.all_ids - set(OTTLA_IDS))
        places = [[1, 2, kafka_ids[0]], [kafka_ids[-1], 2, 1]]
        made = self.admin.create_topics([NewTopic(topic, len(places), replica_assignment=places)])
        made[topic].result(60)

    def in_sync(self, topic: str) -> list[int]:
        """How many replicas of each partition are."""
        try:
            found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        except KafkaException:
            return []
        return [len(partition.isrs) for partition in found.values()]

    def wait_until_in_sync(self, topic: str) -> None:
        wait_until(lambda: self.in_sync(topic) == [3, 3], f"all replicas of {topic} are in sync")


@pytest.fixture(scope="module")
def cluster(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("quorum")
    with kafka_quorum(folder, 3, SETTINGS) as quorum:
        ottlas = {}
        try:
            for node_id in OTTLA_IDS:
                ottlas[node_id] = OttlaBroker(
                    folder / f"ottla-{node_id}", quorum.controllers, SETTINGS, node_id=node_id
                )
                ottlas[node_id].start()
            yield Cluster(quorum, ottlas)
        finally:
            for ottla in ottlas.values():
                ottla.kill()


@pytest.mark.slow
class TestOttlaUnderQuorum:
    def test_they_are_brokers_as_all_others(self, cluster: Cluster) -> None:
        wait_until(lambda: cluster.brokers() == cluster.all_ids, "all brokers are unfenced")
        theirs = AdminClient({"bootstrap.servers": cluster.quorum.bootstrap})
        assert set(theirs.list_topics(timeout=10).brokers) == cluster.all_ids
        cluster.create("shared")
        values = [b"%d" % number for number in range(200)]
        produced(cluster.bootstrap, "shared", values)
        cluster.wait_until_in_sync("shared")
        assert consumed(cluster.quorum.bootstrap, "shared", 200) == set(values)

    def test_another_controller_takes_over(self, cluster: Cluster) -> None:
        cluster.create("before")
        produced(cluster.bootstrap, "before", [b"1"])
        for number in range(2):
            dead, epoch = cluster.noted(1)
            cluster.quorum.nodes[dead].kill()
            cluster.wait_for_epoch_after(epoch)
            topic = f"after-{number}"
            cluster.create(topic)
            values = [b"%d" % value for value in range(100)]
            produced(cluster.bootstrap, topic, values)
            assert consumed(cluster.bootstrap, topic, 100) == set(values)
            wait_until(lambda: cluster.brokers() == cluster.all_ids, "the dead broker is missed, no other")
            cluster.quorum.nodes[dead].start()
            wait_until(lambda: cluster.brokers() == cluster.all_ids, "it is back")
            cluster.wait_until_in_sync(topic)
        cluster.wait_until_in_sync("before")

    def test_they_stop_and_start_under_it(self, cluster: Cluster) -> None:
        cluster.create("moved")
        produced(cluster.bootstrap, "moved", [b"%d" % number for number in range(50)])
        second = cluster.ottlas[2]
        assert second.stop() == 0
        wait_until(lambda: cluster.in_sync("moved") == [2, 2], "it has left the in-sync sets")
        produced(cluster.bootstrap, "moved", [b"%d" % number for number in range(50, 100)])
        second.start()
        cluster.wait_until_in_sync("moved")
        assert len(consumed(cluster.bootstrap, "moved", 100)) == 100

    def test_their_metadata_are_the_controllers(self, cluster: Cluster) -> None:
        leader_id, _ = cluster.noted(2)
        theirs = (cluster.quorum.nodes[leader_id].data / METADATA / f"{'0' * 20}.log").read_bytes()
        for ottla in cluster.ottlas.values():
            ours = (ottla.data / METADATA / f"{'0' * 20}.log").read_bytes()
            assert len(ours) > 1000
            common = min(len(ours), len(theirs))
            assert ours[:common] == theirs[:common]
