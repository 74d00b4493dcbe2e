"""``kill -9`` in the middle of traffic: what was acknowledged is there, and nothing is there twice."""

import threading
from collections import Counter
from functools import partial
from typing import Protocol

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from compat.python_clients import CLIENTS
from compat.scenarios.python.client import Place
from compat.scenarios.python.stage import Stage
from compat.waiting import wait_until
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow

KILLS = 20
PARTITION_COUNT = 3
ACKNOWLEDGED_BETWEEN_KILLS = 300
QUEUED_MAX = 400


class Killable(Protocol):
    """A broker that can be killed, and that comes back at the same address."""

    address: str

    def start(self) -> None: ...

    def kill(self) -> object: ...


class SteadyProducer(threading.Thread):
    """Produces numbered records without a pause until it is told to end, through whatever happens."""

    def __init__(self, address: str, topic: str, *, idempotent: bool) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.ended = threading.Event()
        self.acknowledged: dict[int, Place] = {}
        self.errors: list[KafkaError] = []
        self.produced = 0
        self.client = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "queue.buffering.max.messages": QUEUED_MAX,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "message.timeout.ms": 300_000,
                "log_level": 2,
            }
        )

    def run(self) -> None:
        while not self.ended.is_set():
            try:
                self.client.produce(
                    self.topic,
                    b"%d" % self.produced,
                    partition=self.produced % PARTITION_COUNT,
                    on_delivery=self.note,
                )
                self.produced += 1
            except BufferError:
                self.client.poll(0.05)
            self.client.poll(0)
        self.client.flush(60)

    def has_reached(self, goal: int) -> bool:
        return bool(self.errors) or len(self.acknowledged) >= goal

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert value is not None
        assert partition is not None
        assert offset is not None
        self.acknowledged[int(value)] = Place(partition, offset)


def survive_kills(broker: Killable, kills: int) -> tuple[SteadyProducer, SteadyProducer]:
    """Kill the broker in the middle of the traffic of an idempotent and a plain producer, again and again."""
    producers = []
    for topic, idempotent in (("idempotent", True), ("plain", False)):
        with Stage(CLIENTS["confluent-kafka"], broker.address) as stage:
            stage.topic(PARTITION_COUNT, name=topic)
        producer = SteadyProducer(broker.address, topic, idempotent=idempotent)
        producers.append(producer)
        producer.start()
    for _ in range(kills):
        for producer in producers:
            goal = len(producer.acknowledged) + ACKNOWLEDGED_BETWEEN_KILLS
            wait_until(
                partial(producer.has_reached, goal), f"{goal} {producer.topic} records are acknowledged"
            )
        broker.kill()
        broker.start()
    for producer in producers:
        producer.ended.set()
    for producer in producers:
        producer.join(120)
        assert not producer.is_alive()
    return producers[0], producers[1]


def records_of(address: str, topic: str) -> dict[Place, int]:
    """The numbers of all records of a topic, by place."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused"})
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, partition), 60)
        for partition in range(PARTITION_COUNT)
    ]
    consumer.close()
    count = sum(end[1] for end in ends)
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        taken = stage.take(topic, count, partition_count=PARTITION_COUNT)
    return {record.place: int(record.value or b"") for record in taken}


def check_survivors(address: str, idempotent: SteadyProducer, plain: SteadyProducer) -> None:
    """Every acknowledged record has its offset; the idempotent producer's are there once and in order."""
    for producer in (idempotent, plain):
        assert producer.errors == []
        assert len(producer.acknowledged) == producer.produced
        found = records_of(address, producer.topic)
        lost = {
            number: place for number, place in producer.acknowledged.items() if found.get(place) != number
        }
        assert lost == {}

    found = records_of(address, idempotent.topic)
    assert [number for number, times in Counter(found.values()).items() if times > 1] == []
    assert len(found) == idempotent.produced
    for partition in range(PARTITION_COUNT):
        numbers = [number for place, number in sorted(found.items()) if place.partition == partition]
        assert numbers == sorted(numbers)


def test_acknowledged_records_survive_twenty_kills(start_broker: StartBroker) -> None:
    broker = start_broker()
    idempotent, plain = survive_kills(broker, KILLS)
    check_survivors(broker.address, idempotent, plain)
    assert broker.stop() == 0
