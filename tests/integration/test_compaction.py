"""Compaction in a real broker: with its worker process, under traffic, and through ``kill -9``."""

import sys
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.broker_process import BrokerProcess
from compat.waiting import wait_until
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow

KILLS = 8
KEYS = 500
RECORDS_PER_ROUND = 8000
"""Of 500 to 600 bytes: four segments of the smallest size that Kafka allows."""

SETTINGS = {"log.cleaner.backoff.ms": "50", "log.cleaner.min.cleanable.ratio": "0.01"}
TOPIC = {"cleanup.policy": "compact", "segment.bytes": "1048576", "delete.retention.ms": "0"}

State = dict[bytes, bytes | None]


def create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("c", 1, 1, config=TOPIC)])["c"].result()


def write(address: str, chance: Random, state: State) -> None:
    """Change random keys, a tenth of them to nothing, and return when all of that is acknowledged."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "compression.type": "lz4"})
    for number in range(RECORDS_PER_ROUND):
        key = b"key %d" % chance.randrange(KEYS)
        value = (
            None if chance.random() < 0.1 else b"%d " % number + chance.randbytes(chance.randrange(500, 600))
        )
        producer.produce("c", key=key, value=value)
        state[key] = value
        producer.poll(0)
    assert producer.flush(60) == 0


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


def without_deleted(state: State) -> State:
    return {key: value for key, value in state.items() if value is not None}


def has_compacted(broker: BrokerProcess, times: int) -> bool:
    return broker.log().count("c-0 is compacted up to offset") >= times


def workers_of(broker: BrokerProcess) -> list[int]:
    """Process ids of its children that compact."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            if parent == broker.pid and b"storage.worker" in (status.parent / "cmdline").read_bytes():
                found.append(int(status.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


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
    seen = 0
    for _ in range(KILLS):
        write(broker.address, chance, state)
        wait_until(partial(has_passed, time.monotonic() + chance.random() * 1.5), "the moment has come")
        workers = workers_of(broker)
        seen += len(workers)
        broker.kill()
        for worker in workers:
            wait_until(partial(is_gone, worker), "the worker is gone, too")
        broker.start()
        found, _ = read(broker.address)
        assert without_deleted(found) == without_deleted(state)
    assert seen > 0, "some of the kills hit a compaction"
    assert broker.stop() == 0
