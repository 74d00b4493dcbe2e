"""Kafka's own image of our metadata, from snapshot and log, is the one that we make of it."""

import pytest

from compat.broker_process import BrokerProcess
from compat.cluster.image import kafka_image
from compat.oracle.java import run_tool
from tests.integration.cluster.images import our_image
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("kafka_jars")
def test_one_node(start_broker: StartBroker) -> None:
    broker: BrokerProcess = start_broker(settings={"metadata.log.max.record.bytes.between.snapshots": "3000"})
    for command in (
        ("kafka-topics", "--create", "--topic", "one", "--partitions", "7"),
        ("kafka-topics", "--create", "--topic", "two", "--config", "retention.ms=1000"),
        (
            "kafka-configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-default",
            "--add-config",
            "log.cleaner.threads=2",
        ),
        ("kafka-topics", "--delete", "--topic", "two"),
        ("kafka-topics", "--create", "--topic", "three", "--partitions", "60"),
        ("kafka-topics", "--create", "--topic", "four"),
    ):
        done = run_tool(command[0], "--bootstrap-server", broker.address, *command[1:])
        assert done.exit_code == 0, done
    assert broker.stop() == 0
    metadata = broker.data / "__cluster_metadata-0"
    assert [path for path in metadata.glob("*.checkpoint") if not path.name.startswith("0" * 20)]
    assert kafka_image(metadata) == our_image(broker.data)
