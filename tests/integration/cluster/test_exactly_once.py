"""Exactly-once on a cluster: workers and nodes are killed at random in the middle of transactions."""

import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from compat.broker_process import BrokerProcess
from compat.cluster.nodes import OttlaBroker, OttlaNode, kafka_in
from compat.oracle.kafka import KafkaNode
from tests.integration.cluster.exactly_once import (
    SETTINGS,
    let_pass,
    make_topics,
    run_with_kills,
    wait_in_sync,
)
from tests.integration.exactly_once import QUICK, run_through

pytestmark = pytest.mark.slow

KILLS = 3
"""``python -m tests.integration.cluster.exactly_once --kills 50`` takes its time."""


def test_each_record_is_transformed_once(tmp_path: Path, chance: random.Random) -> None:
    said: list[str] = []
    assert run_with_kills(tmp_path, KILLS, chance.getrandbits(32), said.append) == [], said


def test_so_it_is_on_a_cluster_of_both_kinds(kafka_jars: Path, tmp_path: Path, chance: random.Random) -> None:
    """Coordinators and partitions of one transaction are Ottla's and Apache Kafka's, and change places."""
    with ExitStack() as opened:
        first = OttlaNode(tmp_path / "ottla", SETTINGS)
        opened.callback(first.kill)
        first.start()
        second = OttlaBroker(tmp_path / "broker", first.controller, SETTINGS, node_id=3)
        second.environment["CLUSTER_ID"] = first.cluster_id
        opened.callback(second.kill)
        second.start()
        kafka = kafka_in(first, tmp_path / "kafka", node_id=2, roles="broker", settings=SETTINGS)
        opened.callback(kafka.kill)
        kafka.start()
        servers = f"{first.bootstrap},{second.bootstrap},{kafka.bootstrap}"
        admin = AdminClient({**QUICK, "bootstrap.servers": servers})
        make_topics(admin)
        others: list[BrokerProcess | KafkaNode] = [kafka, second]

        def kill() -> None:
            node = others.pop(0)
            others.append(node)
            node.kill()
            let_pass(chance.choice((0.0, chance.uniform(0, 6))))
            node.start()
            wait_in_sync(admin)

        assert run_through(servers, KILLS, chance, kill) == []
