"""A cluster that Apache Kafka has begun becomes a lone Ottla, while clients go on."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.cluster.lengthy import LENGTHY
from compat.cluster.nodes import OTTLA_ID, SMALL_CLUSTER, OttlaNode, stamp
from compat.cluster.operators import format_to_join
from compat.cluster.retiring import make_topics, retire
from compat.oracle.kafka import KafkaNode, kept_addresses

pytestmark = [pytest.mark.slow, LENGTHY]

KAFKA_ID = 2


def test_a_cluster_of_kafka_shrinks_to_a_lone_ottla(kafka_jars: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        ottla = OttlaNode(tmp_path / "ottla")
        place = tmp_path / "kafka"
        controllers = f"{kept_addresses(place)[1]},{ottla.controller}"
        kafka = KafkaNode(place, SMALL_CLUSTER, node_id=KAFKA_ID, controllers=controllers)
        kafka.format()
        kafka.start()
        stack.callback(kafka.kill)
        make_topics(kafka.bootstrap)
        ottla.settings["controller.quorum.bootstrap.servers"] = controllers
        format_to_join(ottla, stamp(kafka.data, "cluster.id"))
        ottla.start()
        stack.callback(ottla.kill)
        retire(kafka, ottla, OTTLA_ID)
