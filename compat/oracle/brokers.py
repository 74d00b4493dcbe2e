"""The two brokers that are compared, each new, and with the settings that make them comparable."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from compat.broker_process import BrokerProcess
from compat.oracle.kafka import SMALL_NODE, kafka_node

SETTINGS: Final = {
    **SMALL_NODE,
    "node.id": "1",
    "offsets.topic.num.partitions": "1",  # one coordinator answers for all
    "transaction.state.log.num.partitions": "1",
    "group.max.size": "2",  # so that a group can be full
    "group.consumer.max.size": "3",
    "group.streams.max.size": "3",
    "group.min.session.timeout.ms": "100",  # so that the end of a session can be waited for
    "log.retention.ms": "-1",  # records are of a time long past
}


@contextmanager
def compared_kafka() -> Iterator[str]:
    """The address of a new Apache Kafka."""
    with tempfile.TemporaryDirectory() as folder, kafka_node(Path(folder), SETTINGS) as node:
        yield node.bootstrap


@contextmanager
def compared_ottla() -> Iterator[str]:
    """The address of a new Ottla, which is not asked to stop: nobody will read its thousand topics again."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder), SETTINGS)
        broker.start()
        try:
            yield f"127.0.0.1:{broker.address.rpartition(':')[2]}"
        finally:
            broker.kill()
