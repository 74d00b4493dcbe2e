"""How fast a log is compacted, from the moment that its topic asks for it."""

import random
import time
from collections.abc import Iterator

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from benchmarks.librdkafka import CHUNK, TIMEOUT_SECONDS, make_values, new_topic, producer
from benchmarks.storage.brokers import StoredBroker
from benchmarks.storage.partitions import wait_until_connected

SEGMENTS = 8
"""So many or more are compacted."""
SEGMENT_BYTES_MIN = 1 << 20
"""Kafka accepts no smaller ones."""
DEADLINE_SECONDS = 300
PAUSE_SECONDS = 0.01
CHECKPOINT = "cleaner-offset-checkpoint"


def figure(label: str) -> str:
    return f"compaction, {label}"


def settings(total_bytes: int) -> dict[str, str]:
    """What a broker is started with: the cleaner looks often, and segments are small beside the log."""
    segment_bytes = max(total_bytes // SEGMENTS // 2, SEGMENT_BYTES_MIN)
    return {"log.cleaner.backoff.ms": "100", "log.segment.bytes": str(segment_bytes)}


def compaction_round(
    broker: StoredBroker, label: str, size_bytes: int, total_bytes: int, codec: str
) -> dict[str, float]:
    """Megabytes of log a second, for keys of which each occurs about ten times."""
    broker.launch()
    wait_until_connected(broker)
    topic = new_topic(broker.address)
    count = total_bytes // size_bytes // CHUNK * CHUNK
    client = producer(broker.address, codec)
    keys = _keys(count)
    values = make_values(size_bytes)
    for _ in range(count // CHUNK):
        client.produce_batch(topic, [{"key": next(keys), "value": value} for value in values], partition=0)
        client.poll(0)
    if client.flush(TIMEOUT_SECONDS):
        raise RuntimeError("records were not acknowledged in time")
    folder = broker.data / f"{topic}-0"
    segments = sorted(folder.glob("*.log"))
    cleanable = sum(segment.stat().st_size for segment in segments[:-1])
    last_base = int(segments[-1].stem)
    began = time.perf_counter()
    ask_for_compaction(broker.address, topic)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while cleaned_up_to(broker, topic) < last_base:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no compaction within {DEADLINE_SECONDS} s")
        time.sleep(PAUSE_SECONDS)
    return {figure(label): cleanable / 1e6 / (time.perf_counter() - began)}


def _keys(count: int) -> Iterator[bytes]:
    chance = random.Random(1)
    distinct = max(count // 10, 1)
    return (b"key-%09d" % chance.randrange(distinct) for _ in range(count))


def ask_for_compaction(address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_SECONDS)


def cleaned_up_to(broker: StoredBroker, topic: str) -> int:
    """What the cleaner's checkpoint says of the topic; -1 if nothing yet."""
    try:
        lines = (broker.data / CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return -1
    for line in lines[2:]:
        name, _, offset = line.split()
        if name == topic:
            return int(offset)
    return -1
