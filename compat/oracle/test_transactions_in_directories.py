"""A transaction begun with one broker is ended with the other, on one data directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat.broker_process import BrokerProcess
from compat.oracle.kafka import kafka_node
from compat.oracle.test_directories import create, dump
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

TOPIC = "shared"
GROUP = "pipeline"
TRANSACTIONAL_ID = "transaction"
CALL_SECONDS = 60.0
SEGMENT = f"{0:020d}.log"

# One partition each, so that it is known where things lie.
SETTINGS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


class Transactions:
    """A producer that outlives the brokers, whose transactions have ten records and an offset each."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.producer = Producer(
            {
                "bootstrap.servers": address,
                "transactional.id": TRANSACTIONAL_ID,
                "transaction.timeout.ms": 600_000,
                "reconnect.backoff.max.ms": 500,
                "metadata.recovery.strategy": "none",  # as in tests/integration/exactly_once.py
                "log_level": 0,
            }
        )
        self.begun = 0

    def begin(self) -> None:
        """Leave a transaction open whose records and offset have been written."""
        if not self.begun:
            self.producer.init_transactions(CALL_SECONDS)
        self.producer.begin_transaction()
        for number in range(10):
            self.producer.produce(TOPIC, b"%d" % (10 * self.begun + number), partition=0)
        assert self.producer.flush(CALL_SECONDS) == 0
        self.begun += 1
        with consumer(self.address, GROUP) as member:
            offset = TopicPartition(TOPIC, 0, 10 * self.begun)
            self.producer.send_offsets_to_transaction(
                [offset], member.consumer_group_metadata(), CALL_SECONDS
            )

    def commit(self) -> None:
        self.producer.commit_transaction(CALL_SECONDS)


@contextmanager
def consumer(address: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def check(address: str, committed: list[int], offset: int) -> None:
    """What is committed are these numbers, and this offset of the group."""
    found: list[int] = []
    with consumer(address, GROUP) as reader:
        reader.assign([TopicPartition(TOPIC, 0, 0)])

        def take() -> bool:
            for message in reader.consume(100, 0.5):
                value = message.value()
                assert value is not None
                found.append(int(value))
            return len(found) >= len(committed)

        wait_until(take, "all is consumed", patience_seconds=CALL_SECONDS)
        take()
        (known,) = reader.committed([TopicPartition(TOPIC, 0)], CALL_SECONDS)
    assert found == committed
    assert known.offset == offset


def test_each_ends_what_the_other_began(kafka_jars: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    with kafka_node(folder, SETTINGS) as node:
        create(node.bootstrap, TOPIC, 1)
        transactions = Transactions(node.bootstrap)
        transactions.begin()
    ours = BrokerProcess(node.folder / "ottla", node.settings)
    ours.data, ours.address = node.data, node.bootstrap
    ours.start()
    try:
        transactions.commit()
        check(ours.address, list(range(10)), 10)
        transactions.begin()
    finally:
        assert ours.stop() == 0
    states = dump(node.data / "__transaction_state-0" / SEGMENT, "--transaction-log-decoder")
    told = [line for line in states.splitlines() if TRANSACTIONAL_ID in line]
    assert "CompleteCommit" in states
    assert "Ongoing" in told[-1]
    offsets = dump(node.data / "__consumer_offsets-0" / SEGMENT, "--offsets-decoder")
    assert "endTxnMarker: COMMIT" in offsets
    with kafka_node(folder, SETTINGS) as node:
        transactions.commit()
        check(node.bootstrap, list(range(20)), 20)
        transactions.begin()
        transactions.producer.abort_transaction(CALL_SECONDS)
        transactions.begin()
    ours.start()
    try:
        successor = Transactions(ours.address)
        successor.begin()  # which aborts what Kafka has left
        successor.commit()
        check(ours.address, [*range(20), *range(10)], 10)
    finally:
        assert ours.stop() == 0
