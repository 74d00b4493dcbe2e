"""A broker of Apache Kafka under a controller of Ottla: it joins, serves, stops, dies and is back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OTTLA_ID, OttlaNode, ottla_and_kafka
from compat.cluster.records import consumed, produced
from compat.cluster.views import ClusterView
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

KAFKA_ID = 2
BOTH = {OTTLA_ID, KAFKA_ID}


class Cluster(ClusterView):
    """One node of each kind; Ottla's is the controller, and tells what is seen: it is there all the time."""

    def __init__(self, ottla: OttlaNode, kafka: KafkaNode) -> None:
        super().__init__(ottla.bootstrap)
        self.ottla = ottla
        self.kafka = kafka

    def create(self, topic: str, partitions: int, *, through: str | None = None) -> None:
        """With a replica on each node."""
        admin = AdminClient({"bootstrap.servers": through}) if through else self.admin
        admin.create_topics([NewTopic(topic, partitions, 2)])[topic].result(30)


@pytest.fixture(scope="module")
def cluster(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ottla_and_kafka(tmp_path_factory.mktemp("cluster"), kafka_id=KAFKA_ID) as nodes:
        made = Cluster(*nodes)
        made.wait_for_brokers(BOTH)
        yield made


@pytest.mark.slow
class TestKafkaBrokerUnderOttla:
    def test_each_leads_its_share_and_copies_the_other_s(self, cluster: Cluster) -> None:
        cluster.create("shared", 6)
        assert sorted(cluster.leaders("shared")) == [OTTLA_ID] * 3 + [KAFKA_ID] * 3
        values = [b"%d" % number for number in range(300)]
        produced(cluster.ottla.bootstrap, "shared", values)
        cluster.wait_until_in_sync("shared", BOTH)
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
        cluster.wait_until_in_sync("moved", BOTH)
        assert "may not register" not in cluster.ottla.log()

    def test_it_dies_and_is_missed_when_its_session_is_over(self, cluster: Cluster) -> None:
        cluster.create("inherited", 4)
        cluster.wait_until_in_sync("inherited", BOTH)
        cluster.kafka.kill()
        wait_until(lambda: cluster.leaders("inherited") == [OTTLA_ID] * 4, "Ottla leads everything")
        assert cluster.brokers() == {OTTLA_ID}
        assert "broker 2 is fenced" in cluster.ottla.log()
        produced(cluster.ottla.bootstrap, "inherited", [b"alone"] * 20)
        cluster.kafka.start()
        cluster.wait_until_in_sync("inherited", BOTH)

    def test_the_controller_s_own_end_stops_nobody_but_itself(self, cluster: Cluster) -> None:
        cluster.create("kept", 2)
        cluster.wait_until_in_sync("kept", BOTH)
        cluster.ottla.kill()
        cluster.ottla.start()
        cluster.wait_for_brokers(BOTH)
        cluster.wait_until_in_sync("kept", BOTH)
        produced(cluster.ottla.bootstrap, "kept", [b"after"] * 20)
