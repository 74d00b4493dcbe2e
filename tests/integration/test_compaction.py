"""Compaction in a real broker: with its worker process, under traffic, and through ``kill -9``."""

import sys
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from compat.broker_process import BrokerProcess
from compat.waiting import wait_until
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow

KILLS = 6
KEYS = 500
RECORDS_PER_ROUND = 4000
"""Of 500 to 600 bytes: some segments."""

YEAR_MS = 365 * 24 * 60 * 60 * 1000

SETTINGS = {"log.cleaner.backoff.ms": "50", "log.cleaner.min.cleanable.ratio": "0.01"}
TOPIC = {"cleanup.policy": "compact", "internal.segment.bytes": "500000", "delete.retention.ms": "0"}

WRITING: Final = {"linger.ms": 5, "batch.size": 100_000, "compression.type": "lz4"}

State = dict[bytes, bytes | None]


def create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("c", 1, 1, config=TOPIC)])["c"].result()


def write(address: str, chance: Random, state: State) -> None:
    """Change random keys, a tenth of them to nothing, and return when all of that is acknowledged."""
    errors: list[KafkaError] = []

    def note(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer({**WRITING, "bootstrap.servers": address, "on_delivery": note})
    for number in range(RECORDS_PER_ROUND):
        key = b"key %d" % chance.randrange(KEYS)
        value = (
            None if chance.random() < 0.1 else b"%d " % number + chance.randbytes(chance.randrange(500, 600))
        )
        producer.produce("c", key=key, value=value)
        state[key] = value
        producer.poll(0)
    assert producer.flush(60) == 0
    assert errors == []


def read(address: str) -> tuple[State, int]:
    """What a reader from the start ends up with, and how many records it read."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign([TopicPartition("c", 0, 0)])
    state: State = {}
    count = 0
    while True:
        message = consumer.poll(30)
        assert message is not None, "the end comes in time"
        if message.error() is not None:
            break
        key = message.key()
        assert isinstance(key, bytes)
        value = message.value()
        assert value is None or isinstance(value, bytes)
        state[key] = value
        count += 1
    consumer.close()
    return state, count


def let_records_rest(address: str, milliseconds: int) -> None:
    """For how long records of the topic are not compacted."""
    lag = ConfigEntry("min.compaction.lag.ms", str(milliseconds), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "c", incremental_configs=[lag])
    admin = AdminClient({"bootstrap.servers": address})
    admin.incremental_alter_configs([resource])[resource].result()


def without_deleted(state: State) -> State:
    return {key: value for key, value in state.items() if value is not None}


def has_compacted(broker: BrokerProcess, times: int) -> bool:
    return broker.log().count("c-0 is compacted up to offset") >= times


def workers_of(broker: BrokerProcess) -> list[int]:
    """Process ids of its children that compact."""
    children = [
        int(child)
        for listed in Path(f"/proc/{broker.pid}/task").glob("*/children")
        for child in listed.read_text().split()
    ]
    return [child for child in children if not is_gone(child)]


def is_gone(pid: int) -> bool:
    try:
        return b"storage.worker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True


def has_passed(moment: float) -> bool:
    return time.monotonic() >= moment


def test_readers_of_a_compacted_topic_end_up_with_the_last_values(
    start_broker: StartBroker, seed: int
) -> None:
    broker = start_broker(SETTINGS)
    create_topic(broker.address)
    chance = Random(seed)
    state: State = {}
    for number in range(2):
        write(broker.address, chance, state)
        wait_until(partial(has_compacted, broker, number + 1), "the log is compacted")
    found, count = read(broker.address)
    assert without_deleted(found) == without_deleted(state)
    assert count < 2 * RECORDS_PER_ROUND
    assert broker.stop() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_kills_in_the_middle_of_compaction_lose_and_revive_nothing(
    start_broker: StartBroker, seed: int
) -> None:
    broker = start_broker(SETTINGS)
    create_topic(broker.address)
    chance = Random(seed)
    state: State = {}
    for _ in range(KILLS):
        let_records_rest(broker.address, YEAR_MS)
        write(broker.address, chance, state)
        let_records_rest(broker.address, 0)
        wait_until(partial(workers_of, broker), "a compaction has begun")
        wait_until(partial(has_passed, time.monotonic() + chance.random() * 0.7), "the moment has come")
        workers = workers_of(broker)
        broker.kill()
        for worker in workers:
            wait_until(partial(is_gone, worker), "the worker is gone, too")
        broker.start()
        found, _ = read(broker.address)
        assert without_deleted(found) == without_deleted(state)
    assert broker.stop() == 0
