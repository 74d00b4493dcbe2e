"""``kill -9`` in the middle of traffic: what was acknowledged is there, and nothing is there twice.

``OTTLA_TEST_KILLS=200`` makes more of it than the normal run does.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.broker_process import BrokerProcess
from compat.python_clients import CLIENTS
from compat.scenarios.python.client import Place
from compat.scenarios.python.stage import Stage
from compat.waiting import wait_until
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("OTTLA_TEST_KILLS", "4"))
KILLS_OF_ONE_BROKER = 10
"""Then another begins afresh: the more there is to be recovered, the longer each start takes."""
PARTITION_COUNT = 3
ACKNOWLEDGED_BETWEEN_KILLS = 100
QUEUED_MAX = 400
KEYS = 60
PADDING = bytes(100)

SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.retention.check.interval.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "150",
    "log.flush.start.offset.checkpoint.interval.ms": "150",
    "replica.high.watermark.checkpoint.interval.ms": "100",
}
"""So that a kill often hits one of these."""

SMALL_SEGMENTS = {"internal.segment.bytes": "8000", "file.delete.delay.ms": "200"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
SHORT = {"retention.bytes": "20000"}

START_SECONDS = 0.8
STOP_SECONDS = 0.3
"""Some kills come at a moment of this time after the broker was started, or asked to stop."""

RETRYING: dict[str, str | int | float | bool | None] = {
    "acks": "all",
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


class SteadyProducer(threading.Thread):
    """Produces numbered records without a pause until it is told to end, through whatever happens.

    With ``keys`` the numbers are the values of as many keys, in turn.
    """

    def __init__(self, address: str, topic: str, *, idempotent: bool, keys: int = 0) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.ended = threading.Event()
        self.acknowledged: dict[int, Place] = {}
        self.errors: list[KafkaError] = []
        self.produced = 0
        self._keys = keys
        self._client = Producer({**RETRYING, "bootstrap.servers": address, "enable.idempotence": idempotent})

    def run(self) -> None:
        while not self.ended.is_set():
            number = self.produced
            try:
                self._client.produce(
                    self.topic,
                    b"%d" % number + PADDING,
                    key=b"%d" % (number % self._keys) if self._keys else None,
                    partition=number % PARTITION_COUNT,
                    on_delivery=self._note,
                )
                self.produced += 1
            except BufferError:
                self._client.poll(0.05)
            self._client.poll(0)
        self._client.flush(60)

    def has_reached(self, goal: int) -> bool:
        return bool(self.errors) or len(self.acknowledged) >= goal

    def _note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert value is not None
        assert partition is not None
        assert offset is not None
        self.acknowledged[number_in(value)] = Place(partition, offset)


class TopicMaker(threading.Thread):
    """Makes one topic again and again, writes its generation's number into it, and deletes it."""

    TOPIC = "passing"

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.generation = 0
        self.acknowledged: set[int] = set()
        """Offsets in the topic's last life."""
        self.failure: BaseException | None = None
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        self._address = address

    def run(self) -> None:
        try:
            while not self.ended.is_set():
                self._insist(self._delete_topic)
                self._insist(self._create_topic)
                self.generation += 1
                self._write()
        except BaseException as failure:
            self.failure = failure

    def _insist(self, change: Callable[[], None]) -> None:
        """Until the cluster is as it should be: a change may have been made although nobody said so."""

        def is_made() -> bool:
            try:
                change()
            except KafkaException as refusal:
                made = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_ALREADY_EXISTS)
                return refusal.args[0].code() in made
            return True

        wait_until(is_made, f"{change.__name__} of {self.TOPIC}")

    def _delete_topic(self) -> None:
        self._admin.delete_topics([self.TOPIC], request_timeout=5)[self.TOPIC].result()

    def _create_topic(self) -> None:
        topic = NewTopic(self.TOPIC, 1, 1, config=SMALL_SEGMENTS)
        self._admin.create_topics([topic], request_timeout=5)[self.TOPIC].result()

    def _write(self) -> None:
        producer = Producer({**RETRYING, "bootstrap.servers": self._address, "enable.idempotence": True})
        self.acknowledged = set()
        for _ in range(200):
            value = b"%d" % self.generation + bytes(300)
            producer.produce(self.TOPIC, value, partition=0, on_delivery=self._note)
        assert producer.flush(60) == 0

    def _note(self, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            self.acknowledged.add(offset)


class Traffic:
    """All that goes on while the broker is killed."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._create("idempotent", {})
        self._create("plain", SMALL_SEGMENTS)
        self._create("compacted", SMALL_SEGMENTS | COMPACTED)
        self._create("short", SMALL_SEGMENTS | SHORT)
        self.idempotent = SteadyProducer(address, "idempotent", idempotent=True)
        self.plain = SteadyProducer(address, "plain", idempotent=False)
        self.compacted = SteadyProducer(address, "compacted", idempotent=True, keys=KEYS)
        self.short = SteadyProducer(address, "short", idempotent=True)
        self.producers = [self.idempotent, self.plain, self.compacted, self.short]
        self.topic_maker = TopicMaker(address)
        for thread in (*self.producers, self.topic_maker):
            thread.start()

    def _create(self, topic: str, config: Mapping[str, str]) -> None:
        with Stage(CLIENTS["confluent-kafka"], self._address) as stage:
            stage.topic(PARTITION_COUNT, config, name=topic)

    def go_on(self) -> None:
        """Return when each producer has got a little farther."""
        for producer in self.producers:
            goal = len(producer.acknowledged) + ACKNOWLEDGED_BETWEEN_KILLS
            wait_until(
                partial(producer.has_reached, goal), f"{goal} {producer.topic} records are acknowledged"
            )

    def end(self) -> None:
        threads: list[SteadyProducer | TopicMaker] = [*self.producers, self.topic_maker]
        for thread in threads:
            thread.ended.set()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        for producer in self.producers:
            assert producer.errors == []
            assert len(producer.acknowledged) == producer.produced
        assert self.topic_maker.failure is None


def kill_at_any_time(broker: BrokerProcess, chance: Random) -> None:
    """Mostly in the middle of traffic, else while it stops or starts again; it is running afterwards."""
    moment = chance.random()
    if moment < 0.2:
        os.kill(broker.pid, signal.SIGTERM)
        pass_time(chance.random() * STOP_SECONDS)
    broker.kill()
    while chance.random() < 0.2:
        broker.launch()
        pass_time(chance.random() * START_SECONDS)
        broker.kill()
    broker.start()


def pass_time(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, "the moment has come")


def number_in(value: bytes) -> int:
    return int(value.rstrip(b"\0"))


Records = dict[Place, int]


def records_of(address: str, topic: str, partition_count: int = PARTITION_COUNT) -> Records:
    """The numbers of all records of a topic, by place."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign(
        [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partition_count)]
    )
    records: Records = {}
    ended: set[int] = set()
    while len(ended) < partition_count:
        message = consumer.poll(60)
        assert message is not None, f"{topic} can be read to its end"
        partition = message.partition()
        assert partition is not None
        if (error := message.error()) is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(partition)
            continue
        offset, value = message.offset(), message.value()
        assert offset is not None
        assert isinstance(value, bytes)
        records[Place(partition, offset)] = number_in(value)
    consumer.close()
    return records


def in_partition(records: Records, partition: int) -> dict[int, int]:
    """Offset -> number, by offset."""
    return {place.offset: number for place, number in sorted(records.items()) if place.partition == partition}


def check_acknowledged(producer: SteadyProducer, found: Records) -> None:
    """Every acknowledged record has its offset."""
    lost = {number: place for number, place in producer.acknowledged.items() if found.get(place) != number}
    assert lost == {}


def check_order(producer: SteadyProducer, found: Records) -> None:
    """An idempotent producer's records are there once, in order, and without a gap."""
    assert [number for number, times in Counter(found.values()).items() if times > 1] == []
    for partition in range(PARTITION_COUNT):
        numbers = list(in_partition(found, partition).values())
        assert numbers == list(range(numbers[0], producer.produced, PARTITION_COUNT))


def check_survivors(address: str, traffic: Traffic) -> None:
    for producer in (traffic.idempotent, traffic.plain):
        check_acknowledged(producer, records_of(address, producer.topic))
    check_order(traffic.idempotent, records_of(address, "idempotent"))

    short = records_of(address, "short")
    check_order(traffic.short, short)
    starts = {partition: min(in_partition(short, partition)) for partition in range(PARTITION_COUNT)}
    assert all(starts.values()), "some records were deleted, in every partition"
    kept = {
        number: place
        for number, place in traffic.short.acknowledged.items()
        if place.offset >= starts[place.partition]
    }
    assert {place: number for number, place in kept.items()} == short

    compacted = records_of(address, "compacted")
    assert len(compacted) < traffic.compacted.produced, "some records were compacted away"
    expected = {number % KEYS: number for number in sorted(traffic.compacted.acknowledged)}
    last = {number % KEYS: number for _, number in sorted(compacted.items())}
    assert last == expected, "each key has its last value"
    for place, number in compacted.items():
        assert traffic.compacted.acknowledged[number] == place

    passing = records_of(address, TopicMaker.TOPIC, 1)
    assert set(passing.values()) <= {traffic.topic_maker.generation}, "a topic has no record of one before it"
    assert {place.offset for place in passing} >= traffic.topic_maker.acknowledged


@pytest.mark.parametrize(
    "kills", [min(KILLS - done, KILLS_OF_ONE_BROKER) for done in range(0, KILLS, KILLS_OF_ONE_BROKER)]
)
def test_acknowledged_records_survive_kills(start_broker: StartBroker, chance: Random, kills: int) -> None:
    broker = start_broker(SETTINGS)
    traffic = Traffic(broker.address)
    for _ in range(kills):
        traffic.go_on()
        kill_at_any_time(broker, chance)
    traffic.end()
    check_survivors(broker.address, traffic)
    assert broker.stop() == 0
    broker.start()
    check_survivors(broker.address, traffic)
    assert broker.stop() == 0
