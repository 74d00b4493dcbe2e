"""aiokafka: the client for asyncio."""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from compat.clients.library import TIMEOUT_SECONDS, Place, Sample, TakenRecord


class AioKafka:
    name = "aiokafka"

    def create_topic(self, address: str, topic: str, partition_count: int) -> None:
        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=address)
            await admin.start()
            try:
                await admin.create_topics([NewTopic(topic, partition_count, 1)])
            finally:
                await admin.close()

        asyncio.run(asyncio.wait_for(create(), TIMEOUT_SECONDS))

    def produce(
        self, address: str, topic: str, samples: Sequence[Sample], *, codec: str, idempotent: bool
    ) -> list[Place]:
        async def produce() -> list[Place]:
            producer = AIOKafkaProducer(
                bootstrap_servers=address,
                acks="all",
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=5,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        sample.value,
                        key=sample.key,
                        headers=sample.headers,
                        timestamp_ms=sample.timestamp_ms,
                    )
                    for sample in samples
                ]
                results = await asyncio.gather(*sent)
            finally:
                await producer.stop()
            return [Place(result.partition, result.offset) for result in results]

        return asyncio.run(asyncio.wait_for(produce(), TIMEOUT_SECONDS))

    def consume(self, address: str, topic: str, count: int) -> list[TakenRecord]:
        async def consume() -> list[TakenRecord]:
            # Without a group a subscription is an assignment of all partitions.
            consumer = AIOKafkaConsumer(
                topic, bootstrap_servers=address, group_id=None, auto_offset_reset="earliest"
            )
            await consumer.start()
            taken: list[TakenRecord] = []
            try:
                while len(taken) < count:
                    for records in (await consumer.getmany(timeout_ms=500, max_records=5000)).values():
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
                await consumer.stop()
            return taken

        return asyncio.run(asyncio.wait_for(consume(), TIMEOUT_SECONDS))
