"""``ottla verify`` finds nothing wrong with what Apache Kafka writes, closes, and leaves after a crash."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode, kafka_node
from compat.verification import damages, findings
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.retention.check.interval.ms": "200",
    "file.delete.delay.ms": "100",
}
SMALL = {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}


def create(address: str, **topics: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    made = admin.create_topics([NewTopic(name, 2, 1, config={**SMALL, **topics[name]}) for name in topics])
    for topic in made.values():
        topic.result()


def write_everything(address: str) -> None:
    """Every codec, idempotence, transactions of which some are aborted, keys that come again and again."""
    create(
        address,
        codecs={},
        compacted={"cleanup.policy": "compact"},
        transactions={},
        short={"retention.bytes": "40000"},
    )
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": True,
             "batch.num.messages": 7, "linger.ms": 5}
        )  # fmt: skip
        for number in range(600):
            value = b"%d of many that are alike " % number * 4
            headers: dict[str, str | bytes | None] = {"name": b"value"} if number % 5 else {}
            producer.produce("codecs", value, b"key", partition=number % 2, headers=headers)
            producer.produce("short", value, partition=0)
            key = b"key %d" % (number % 40)
            producer.produce("compacted", None if number % 11 == 0 else value, key, partition=number % 2)
            producer.poll(0)
        assert producer.flush(60) == 0
    producers = [
        Producer({"bootstrap.servers": address, "transactional.id": name, "batch.num.messages": 3})
        for name in ("first", "second")
    ]
    for producer in producers:
        producer.init_transactions(60)
    for number in range(12):
        for producer in producers:
            producer.begin_transaction()
            for each in range(20):
                producer.produce("transactions", b"%d in a transaction" % each * 3, partition=each % 2)
                producer.produce("compacted", b"in a transaction", b"key %d" % each, partition=each % 2)
            producer.flush(60)
        for place, producer in enumerate(producers):
            if (number + place) % 3:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)
    producers[0].begin_transaction()  # and never ended
    producers[0].produce("transactions", b"open", partition=0)
    producers[0].flush(60)
    for protocol in ("classic", "consumer"):
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": protocol,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["codecs"])
        assert consumer.consume(100, 60)
        consumer.commit(asynchronous=False)
        consumer.close()
    share = ("--topic", "codecs", "--group", "share", "--max-messages", "5", "--timeout-ms", "5000")
    run_tool("kafka-console-share-consumer", *share, bootstrap=address)


def has_cleaned(node: KafkaNode) -> bool:
    checkpoint = node.data / "cleaner-offset-checkpoint"
    return checkpoint.exists() and "compacted" in checkpoint.read_text()


def test_what_kafka_closed_is_sound(kafka_jars: Path, tmp_path: Path) -> None:
    with kafka_node(tmp_path / "node", SETTINGS) as node:
        write_everything(node.bootstrap)
        wait_until(lambda: has_cleaned(node), "a log is compacted")
    # What was marked as deleted shortly before the end is still there.
    assert [finding for finding in findings(node.data) if "marked as deleted" not in finding["text"]] == []


def test_what_is_left_of_a_killed_kafka_is_mended_by_a_start(kafka_jars: Path, tmp_path: Path) -> None:
    with kafka_node(tmp_path / "node", SETTINGS) as node:
        write_everything(node.bootstrap)
        node.kill()
        assert damages(node.data) == []
        node.start()
    assert damages(node.data) == []
