"""Members of a consumer group that note what they committed, one class for each client library.

A member takes records, then commits them before it takes more.  What was committed is noted for
good; what was taken but not committed when a partition is taken away is forgotten, since somebody
else will get it.
"""

import asyncio
import threading
from collections import Counter, defaultdict
from typing import Any, Protocol

import confluent_kafka
import kafka
import kafka.errors
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import KafkaError as AioKafkaError

from compat.clients.library import TIMEOUT_SECONDS

HEARTBEAT_MS = 200
SESSION_MS = 10_000
TAKE_COUNT = 20


class Ledger:
    """What all members of a group committed: offsets by partition, with how often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._committed: Counter[tuple[int, int]] = Counter()
        self.failures: list[BaseException] = []

    def note(self, taken: dict[int, list[int]]) -> None:
        with self._lock:
            for partition, offsets in taken.items():
                self._committed.update((partition, offset) for offset in offsets)

    @property
    def count(self) -> int:
        """Records that were committed at least once."""
        with self._lock:
            return len(self._committed)

    def repeated(self) -> list[tuple[int, int]]:
        with self._lock:
            return [place for place, times in self._committed.items() if times > 1]


class Member(Protocol):
    def __init__(self, address: str, topic: str, group: str, ledger: Ledger) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None:
        """Leave the group, and wait until that is done."""

    @property
    def assigned(self) -> int:
        """How many partitions the member has now."""


class ThreadMember(threading.Thread):
    """What members have in common: a thread, a wish to end, and what is taken but not committed."""

    def __init__(self, address: str, topic: str, group: str, ledger: Ledger) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.topic = topic
        self.group = group
        self.ledger = ledger
        self.ended = threading.Event()
        self.taken: defaultdict[int, list[int]] = defaultdict(list)
        self.owned: set[int] = set()

    def run(self) -> None:
        try:
            self.take_and_commit()
        except BaseException as error:
            self.ledger.failures.append(error)
            raise

    def take_and_commit(self) -> None:
        raise AssertionError("each library does it its own way")

    def stop(self) -> None:
        self.ended.set()
        self.join(TIMEOUT_SECONDS)
        assert not self.is_alive()

    @property
    def assigned(self) -> int:
        return len(self.owned)

    def next_offsets(self) -> dict[int, int]:
        return {partition: offsets[-1] + 1 for partition, offsets in self.taken.items()}

    def settle(self) -> None:
        """What was taken has been committed."""
        self.ledger.note(self.taken)
        self.taken.clear()

    def gained(self, partitions: list[Any]) -> None:
        self.owned |= {partition.partition for partition in partitions}

    def lost(self, partitions: list[Any]) -> None:
        for partition in partitions:
            self.owned.discard(partition.partition)
            self.taken.pop(partition.partition, None)


class ConfluentMember(ThreadMember):
    strategy = "range"

    def take_and_commit(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": self.group,
                "partition.assignment.strategy": self.strategy,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "log_level": 3,
            }
        )
        consumer.subscribe(
            [self.topic],
            on_assign=lambda _, partitions: self.gained(partitions),
            on_revoke=lambda _, partitions: self.lost(partitions),
            on_lost=lambda _, partitions: self.lost(partitions),
        )
        while not self.ended.is_set():
            for message in consumer.consume(TAKE_COUNT, timeout=0.1):
                error = message.error()
                partition, offset = message.partition(), message.offset()
                if error is None and partition is not None and offset is not None:
                    self.taken[partition].append(offset)
            if self.taken:
                self.commit(consumer)
        consumer.close()

    def commit(self, consumer: confluent_kafka.Consumer) -> None:
        offsets = [
            confluent_kafka.TopicPartition(self.topic, partition, offset)
            for partition, offset in self.next_offsets().items()
        ]
        try:
            results = consumer.commit(offsets=offsets, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # the group is rebalancing: tried again, or forgotten with the partition
        if not any(result.error for result in results or []):
            self.settle()


class CooperativeConfluentMember(ConfluentMember):
    strategy = "cooperative-sticky"


class KafkaPythonMember(ThreadMember):
    def take_and_commit(self) -> None:
        member = self

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                member.lost(revoked)

            def on_partitions_assigned(self, assigned: Any) -> None:
                member.gained(assigned)

        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.address,
            group_id=self.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        consumer.subscribe([self.topic], listener=Listener())
        while not self.ended.is_set():
            for partition, records in consumer.poll(timeout_ms=100, max_records=TAKE_COUNT).items():
                self.taken[partition.partition] += [record.offset for record in records]
            if self.taken:
                self.commit(consumer)
        consumer.close()

    def commit(self, consumer: Any) -> None:
        offsets = {
            kafka.TopicPartition(self.topic, partition): kafka.OffsetAndMetadata(offset, "", -1)
            for partition, offset in self.next_offsets().items()
        }
        try:
            consumer.commit(offsets)
        except kafka.errors.KafkaError:
            return
        self.settle()


class AioKafkaMember(ThreadMember):
    def take_and_commit(self) -> None:
        asyncio.run(self.take_and_commit_in_loop())

    async def take_and_commit_in_loop(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.address,
            group_id=self.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        member = self
        busy = asyncio.Lock()  # partitions are taken away in the background, but not while we commit

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                async with busy:
                    member.lost(list(revoked))

            async def on_partitions_assigned(self, assigned: Any) -> None:
                member.gained(list(assigned))

        consumer.subscribe([self.topic], listener=Listener())
        await consumer.start()
        while not self.ended.is_set():
            taken = await consumer.getmany(timeout_ms=100, max_records=TAKE_COUNT)
            async with busy:
                for partition, records in taken.items():
                    self.taken[partition.partition] += [record.offset for record in records]
                if self.taken:
                    await self.commit(consumer)
        await consumer.stop()

    async def commit(self, consumer: Any) -> None:
        offsets = {
            AioTopicPartition(self.topic, partition): offset
            for partition, offset in self.next_offsets().items()
        }
        try:
            await consumer.commit(offsets)
        except AioKafkaError:
            return
        self.settle()


MEMBERS: dict[str, type[Member]] = {
    "confluent-kafka, range": ConfluentMember,
    "confluent-kafka, cooperative": CooperativeConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioKafkaMember,
}
