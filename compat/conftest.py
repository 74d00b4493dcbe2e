"""What tests with Apache Kafka itself need; they are skipped where it cannot be had, and say why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess, running_broker
from compat.oracle.jars import KafkaMissing, find_jars
from compat.oracle.kafka import KafkaNode, kafka_node


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder of Kafka's jars."""
    try:
        return find_jars()
    except KafkaMissing as missing:
        pytest.skip(f"Apache Kafka is not to be had: {missing}")


@pytest.fixture(scope="session")
def kafka(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A Kafka broker that tests share: each uses topics and groups of its own."""
    with kafka_node(tmp_path_factory.mktemp("kafka")) as node:
        yield node


@pytest.fixture(scope="session")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """An Ottla broker that tests share: each uses topics and groups of its own."""
    with running_broker(tmp_path_factory.mktemp("ottla")) as broker:
        yield broker
