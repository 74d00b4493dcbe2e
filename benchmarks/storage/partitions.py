"""Ten thousand partitions: made, written to, met again after a crash and after a proper stop."""

import time

from benchmarks.librdkafka import new_topic
from benchmarks.peers.many_partitions import PARTITIONS, produce_request, produce_until_acknowledged
from benchmarks.storage.brokers import StoredBroker, timed
from compat.processes import resident_bytes
from compat.raw_client import RawClient, metadata_request

START_TIMEOUT_SECONDS = 300
PAUSE_SECONDS = 0.01
MEBIBYTE = 1024 * 1024

CREATE = "create 10,000 partitions"
WRITE = "one record into each of 10,000 partitions"
WRITTEN_MEMORY = "memory with 10,000 written partitions"
AFTER_KILL = "start with 10,000 partitions after kill -9"
AFTER_KILL_MEMORY = "memory after that start"
STOP = "proper stop with 10,000 partitions"
AFTER_STOP = "start with 10,000 partitions after a proper stop"
AFTER_STOP_MEMORY = "memory after this start"


def partitions_round(broker: StoredBroker, topics_count: int) -> dict[str, float]:
    """Everything once; each start is timed from its launch to the first record that is acknowledged."""
    broker.launch()
    wait_until_connected(broker)
    values: dict[str, float] = {}
    topics: list[str] = []
    values[CREATE] = timed(
        lambda: topics.extend(new_topic(broker.address, PARTITIONS) for _ in range(topics_count))
    )
    requests = {topic: produce_request(topic, PARTITIONS) for topic in topics}
    with RawClient(broker.address) as client:
        for topic in topics:
            client.ask(metadata_request(topic))
        began = time.perf_counter()
        for topic in topics:
            produce_until_acknowledged(client, topic, requests[topic], timeout_seconds=START_TIMEOUT_SECONDS)
        values[WRITE] = time.perf_counter() - began
    values[WRITTEN_MEMORY] = memory(broker)
    broker.kill()
    values[AFTER_KILL] = timed(lambda: start_until_served(broker, topics[-1]))
    values[AFTER_KILL_MEMORY] = memory(broker)
    values[STOP] = timed(broker.stop)
    values[AFTER_STOP] = timed(lambda: start_until_served(broker, topics[-1]))
    values[AFTER_STOP_MEMORY] = memory(broker)
    return values


def memory(broker: StoredBroker) -> float:
    return resident_bytes(broker.pid) / MEBIBYTE


def start_until_served(broker: StoredBroker, topic: str) -> None:
    """Launch, and return when a record for the topic's first partition has been acknowledged."""
    broker.launch()
    wait_until_connected(broker)
    with RawClient(broker.address) as client:
        request = produce_request(topic, 1)
        produce_until_acknowledged(client, topic, request, timeout_seconds=START_TIMEOUT_SECONDS)


def wait_until_connected(broker: StoredBroker) -> None:
    """Until requests are answered: a port may be bound long before."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            with RawClient(broker.address, timeout_seconds=START_TIMEOUT_SECONDS) as client:
                client.greet()
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
