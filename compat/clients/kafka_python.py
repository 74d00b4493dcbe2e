"""kafka-python: the client in pure Python."""

import time
from collections.abc import Sequence

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from compat.clients.library import TIMEOUT_SECONDS, Place, Sample, TakenRecord


class KafkaPython:
    name = "kafka-python"

    def create_topic(self, address: str, topic: str, partition_count: int) -> None:
        admin = KafkaAdminClient(bootstrap_servers=address)
        try:
            admin.create_topics([NewTopic(topic, partition_count, 1)])
        finally:
            admin.close()

    def produce(
        self, address: str, topic: str, samples: Sequence[Sample], *, codec: str, idempotent: bool
    ) -> list[Place]:
        producer = KafkaProducer(
            bootstrap_servers=address,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    sample.value,
                    key=sample.key,
                    headers=sample.headers,
                    timestamp_ms=sample.timestamp_ms,
                )
                for sample in samples
            ]
            producer.flush(TIMEOUT_SECONDS)
            results = [future.get(TIMEOUT_SECONDS) for future in futures]
        finally:
            producer.close()
        return [Place(result.partition, result.offset) for result in results]

    def consume(self, address: str, topic: str, count: int) -> list[TakenRecord]:
        consumer = KafkaConsumer(
            bootstrap_servers=address, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        taken: list[TakenRecord] = []
        try:
            partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while len(taken) < count and time.monotonic() < deadline:
                for records in consumer.poll(timeout_ms=500, max_records=5000).values():
                    taken += [
                        TakenRecord(
                            place=Place(record.partition, record.offset),
                            key=record.key,
                            value=record.value,
                            headers=list(record.headers),
                            timestamp_ms=record.timestamp,
                        )
                        for record in records
                    ]
        finally:
            consumer.close()
        return taken
