"""One worker of the pipeline in ``exactly_once``: it does not expect to end well.

It gives up on whatever a transaction cannot be saved from; whoever started it starts another.
"""

import sys
from typing import Any, NoReturn

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.integration.exactly_once import BATCH_MAX, GROUP, QUICK, SOURCE, TARGET

CALL_SECONDS = 5.0
"""Short: a worker that gets nowhere makes room for another."""
SESSION_MS = 6000


def work(address: str, number: int) -> NoReturn:
    producer = Producer(
        {
            **QUICK,
            "bootstrap.servers": address,
            "transactional.id": f"worker-{number}",
            "transaction.timeout.ms": 20_000,
            "linger.ms": 1,
        }
    )
    producer.init_transactions(CALL_SECONDS)
    consumer = Consumer(
        {
            **QUICK,
            "bootstrap.servers": address,
            "group.id": GROUP,
            "group.instance.id": f"worker-{number}",  # the next one takes its place at once
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 500,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([SOURCE])
    while True:
        messages = [message for message in consumer.consume(BATCH_MAX, 0.05) if message.error() is None]
        if messages:
            transform(producer, consumer, messages)


def transform(producer: Producer, consumer: Consumer, messages: list[Message]) -> None:
    producer.begin_transaction()
    try:
        ends: dict[int, int] = {}
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            producer.produce(TARGET, message.value(), partition=partition)
            ends[partition] = offset + 1
        offsets: list[Any] = [TopicPartition(SOURCE, partition, end) for partition, end in ends.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CALL_SECONDS)
        commit(producer)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(CALL_SECONDS)
        # What was taken has not been done: from where the group is, once more.
        for committed in consumer.committed(consumer.assignment(), CALL_SECONDS):
            start = max(committed.offset, 0)
            consumer.seek(TopicPartition(committed.topic, committed.partition, start))


def commit(producer: Producer) -> None:
    try:
        producer.commit_transaction(CALL_SECONDS)
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        producer.commit_transaction(CALL_SECONDS)  # and no more: whoever comes after finds out how it ended


if __name__ == "__main__":
    try:
        work(sys.argv[1], int(sys.argv[2]))
    except KafkaException as failure:
        sys.exit(str(failure))
