"""A cluster that Apache Kafka has begun becomes a lone Ottla, while clients go on."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OTTLA_ID, SMALL_CLUSTER, OttlaNode, stamp
from compat.cluster.operators import format_to_join, hand_over, reassign
from compat.cluster.quorum import leads
from compat.cluster.records import Worker, first_partition, numbers, transacting, writing
from compat.cluster.views import ClusterView
from compat.oracle.kafka import KafkaNode, kept_addresses
from compat.waiting import wait_until

pytestmark = pytest.mark.slow

KAFKA_ID = 2

PLAIN, TRANSACTED = "plain", "transacted"
GROUP = "readers"

INTERNAL = ("__consumer_offsets", "__transaction_state")


def commit_as_group(bootstrap: str) -> int:
    """Read something in a group, and commit; returns the offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([PLAIN])
    last: list[Message] = []

    def has_some() -> bool:
        last.extend(message for message in consumer.consume(50, 1) if message.error() is None)
        return bool(last)

    try:
        wait_until(has_some, "the group reads")
        consumer.commit(message=last[-1], asynchronous=False)
        return (last[-1].offset() or 0) + 1
    finally:
        consumer.close()


def committed(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    try:
        (found,) = consumer.committed([TopicPartition(PLAIN, 0)], timeout=60)
        return int(found.offset)
    finally:
        consumer.close()


def test_a_cluster_of_kafka_shrinks_to_a_lone_ottla(kafka_jars: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        ottla = OttlaNode(tmp_path / "ottla")
        place = tmp_path / "kafka"
        controllers = f"{kept_addresses(place)[1]},{ottla.controller}"
        kafka = KafkaNode(place, SMALL_CLUSTER, node_id=KAFKA_ID, controllers=controllers)
        kafka.format()
        kafka.start()
        stack.callback(kafka.kill)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_topics([NewTopic(PLAIN, 1, 1), NewTopic(TRANSACTED, 1, 1)]).values():
            future.result(30)

        ottla.settings["controller.quorum.bootstrap.servers"] = controllers
        format_to_join(ottla, stamp(kafka.data, "cluster.id"))
        ottla.start()
        stack.callback(ottla.kill)

        bootstrap = f"{ottla.bootstrap},{kafka.bootstrap}"
        plain = Worker(writing(bootstrap, PLAIN))
        transacted = Worker(transacting(bootstrap, TRANSACTED))
        with plain, transacted:
            plain.wait_for(30)
            transacted.wait_for(5)
            offset = commit_as_group(bootstrap)
            reassign(
                ClusterView(bootstrap), [PLAIN, TRANSACTED, *INTERNAL], [OTTLA_ID], through=kafka.bootstrap
            )
            plain.wait_for(30)
            hand_over(kafka.bootstrap, OTTLA_ID)
            assert leads(ottla.controller)
            plain.wait_for(30)
            kafka.stop()
            plain.wait_for(30)
            transacted.wait_for(5)
        assert plain.failure is None
        assert transacted.failure is None
        ottla.stop()
        ottla.start()
        assert first_partition(ottla.bootstrap, PLAIN, plain.done) == numbers(plain.done)
        assert first_partition(ottla.bootstrap, TRANSACTED, transacted.done) == numbers(transacted.done)
        assert committed(ottla.bootstrap) == offset
