"""confluent-kafka: librdkafka, and through it most languages that are not Java."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.clients.library import TIMEOUT_SECONDS, Place, Sample, TakenRecord


class Confluent:
    name = "confluent-kafka"

    def create_topic(self, address: str, topic: str, partition_count: int) -> None:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
        for future in admin.create_topics([NewTopic(topic, partition_count, 1)]).values():
            future.result(TIMEOUT_SECONDS)

    def produce(
        self, address: str, topic: str, samples: Sequence[Sample], *, codec: str, idempotent: bool
    ) -> list[Place]:
        producer = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "queue.buffering.max.messages": max(len(samples), 100_000),
                "linger.ms": 5,
                "log_level": 3,
            }
        )
        places: dict[int, Place] = {}
        errors: list[KafkaError] = []

        def note_for(number: int) -> Callable[[KafkaError | None, Message], None]:
            def note(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    places[number] = Place(_known(message.partition()), _known(message.offset()))

            return note

        for sample in samples:
            producer.produce(
                topic,
                sample.value,
                key=sample.key,
                headers=list(sample.headers),
                timestamp=sample.timestamp_ms,
                on_delivery=note_for(sample.number),
            )
            producer.poll(0)
        left = producer.flush(TIMEOUT_SECONDS)
        if left or errors:
            raise RuntimeError(f"{left} records were not delivered; errors: {errors[:3]}")
        return [places[sample.number] for sample in samples]

    def consume(self, address: str, topic: str, count: int) -> list[TakenRecord]:
        consumer = Consumer(
            {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False, "log_level": 3}
        )
        taken: list[TakenRecord] = []
        try:
            partitions = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while len(taken) < count and time.monotonic() < deadline:
                for message in consumer.consume(5000, timeout=0.5):
                    error = message.error()
                    if error is not None:
                        raise RuntimeError(str(error))
                    taken.append(_taken(message))
        finally:
            consumer.close()
        return taken


def _taken(message: Message) -> TakenRecord:
    headers: Any = message.headers() or []
    return TakenRecord(
        place=Place(_known(message.partition()), _known(message.offset())),
        key=_as_bytes(message.key()),
        value=_as_bytes(message.value()),
        headers=list(headers),
        timestamp_ms=message.timestamp()[1],
    )


def _as_bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _known(number: int | None) -> int:
    assert number is not None
    return number
