"""A node of a cluster hands everything to an Ottla that has joined, and retires, while clients go on."""

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.cluster.nodes import OttlaNode
from compat.cluster.operators import hand_over, reassign
from compat.cluster.quorum import leads
from compat.cluster.records import Worker, first_partition, numbers, transacting, writing
from compat.cluster.views import ClusterView
from compat.oracle.kafka import KafkaNode
from compat.waiting import wait_until

PLAIN, TRANSACTED = "plain", "transacted"
GROUP = "readers"

EVERYTHING = [PLAIN, TRANSACTED, "__consumer_offsets", "__transaction_state"]


def make_topics(bootstrap: str) -> None:
    """Those that clients of ``retire`` use."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(PLAIN, 1, 1), NewTopic(TRANSACTED, 1, 1)]).values():
        future.result(30)


def retire(old: KafkaNode | OttlaNode, heir: OttlaNode, heir_id: int) -> None:
    """Let the heir have all partitions and the controller; nothing is lost, and it can be killed then."""
    bootstrap = f"{old.bootstrap},{heir.bootstrap}"
    plain = Worker(writing(bootstrap, PLAIN))
    transacted = Worker(transacting(bootstrap, TRANSACTED))
    with plain, transacted:
        plain.wait_for(30)
        transacted.wait_for(5)
        offset = commit_as_group(bootstrap)
        reassign(ClusterView(bootstrap), EVERYTHING, [heir_id], through=old.bootstrap)
        plain.wait_for(30)
        hand_over(old.bootstrap, heir_id)
        assert leads(heir.controller)
        plain.wait_for(30)
        old.stop()
        plain.wait_for(30)
        transacted.wait_for(5)
    assert plain.failure is None
    assert transacted.failure is None
    heir.kill()
    heir.start()
    assert first_partition(heir.bootstrap, PLAIN, plain.done) == numbers(plain.done)
    assert first_partition(heir.bootstrap, TRANSACTED, transacted.done) == numbers(transacted.done)
    assert committed(heir.bootstrap) == offset


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
