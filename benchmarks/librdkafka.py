"""What librdkafka gets out of a broker: throughput, latency, and how many small requests."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.figures import percentile

TIMEOUT_SECONDS = 60
CHUNK = 1000
MEGABYTE = 1_000_000


class Load(NamedTuple):
    """Records that are alike, spread evenly over the partitions of a topic."""

    size_bytes: int
    record_count: int
    codec: str
    partitions: int = 1

    @property
    def megabytes(self) -> float:
        return self.size_bytes * self.record_count / MEGABYTE


def new_topic(address: str, partitions: int = 1) -> str:
    """A fresh topic."""
    topic = f"bench-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(TIMEOUT_SECONDS)
    return topic


def make_values(size_bytes: int) -> list[bytes]:
    """Values that compress to about half, as text does."""
    words = [uuid.uuid4().hex[:8].encode() for _ in range(200)]
    return [
        b" ".join(words[(start * 7 + step * step) % 200] for step in range(size_bytes // 9 + 1))[:size_bytes]
        for start in range(CHUNK)
    ]


def producer(address: str, codec: str = "none", settings: Mapping[str, Any] | None = None) -> Producer:
    return Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "linger.ms": 5,
            "compression.type": codec,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "socket.nagle.disable": True,
            "log_level": 3,
            **(settings or {}),
        }
    )


def consumer(address: str, topic: str, offset: int, partitions: int = 1) -> Consumer:
    client = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 262_144,
            "socket.nagle.disable": True,
            "log_level": 3,
        }
    )
    client.assign([TopicPartition(topic, partition, offset) for partition in range(partitions)])
    return client


def produce(address: str, topic: str, load: Load) -> float:
    """Seconds until all records are acknowledged; the client is connected before."""
    client = producer(address, load.codec)
    client.list_topics(topic, TIMEOUT_SECONDS)
    values = [{"value": value} for value in make_values(load.size_bytes)]
    began = time.perf_counter()
    for chunk in range(load.record_count // CHUNK):
        messages = [dict(value) for value in values]
        client.produce_batch(topic, messages, partition=chunk % load.partitions)
    left = client.flush(TIMEOUT_SECONDS)
    seconds = time.perf_counter() - began
    if left:
        raise RuntimeError(f"{left} records were not acknowledged in {TIMEOUT_SECONDS} s")
    return seconds


def consume(address: str, topic: str, load: Load) -> float:
    """Seconds from the first to the last record."""
    client = consumer(address, topic, OFFSET_BEGINNING, load.partitions)
    try:
        taken = 0
        began = 0.0
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while taken < load.record_count:
            messages = client.consume(10_000, timeout=1)
            if messages and not taken:
                began = time.perf_counter()
            taken += len(messages)
            if time.monotonic() > deadline:
                raise RuntimeError(f"{taken} of {load.record_count} records came in {TIMEOUT_SECONDS} s")
        return time.perf_counter() - began
    finally:
        client.close()


def synchronous(address: str, topic: str, count: int, size_bytes: int) -> list[float]:
    """Milliseconds of each of ``count`` records, each produced when the one before is acknowledged."""
    client = producer(address, settings={"linger.ms": 0})
    value = b"x" * size_bytes
    delivered = threading.Event()
    failures: list[object] = []

    def note(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)
        delivered.set()

    taken = []
    for number in range(count + 50):
        delivered.clear()
        began = time.perf_counter()
        client.produce(topic, value, partition=0, on_delivery=note)
        while not delivered.is_set():
            client.poll(1)
        if number >= 50:  # the first ones open connections
            taken.append((time.perf_counter() - began) * 1000)
    if failures:
        raise RuntimeError(f"records failed: {failures[:3]}")
    return taken


def small_requests(address: str, topic: str, count: int) -> float:
    """Seconds for ``count`` requests of one record each, many in flight."""
    client = producer(
        address,
        settings={"batch.num.messages": 1, "linger.ms": 0, "max.in.flight.requests.per.connection": 1000},
    )
    client.list_topics(topic, TIMEOUT_SECONDS)
    value = b"x" * 100
    began = time.perf_counter()
    for _ in range(count // CHUNK):
        client.produce_batch(topic, [{"value": value} for _ in range(CHUNK)], partition=0)
    left = client.flush(TIMEOUT_SECONDS)
    seconds = time.perf_counter() - began
    if left:
        raise RuntimeError(f"{left} records were not acknowledged in {TIMEOUT_SECONDS} s")
    return seconds


def end_to_end(address: str, topic: str, count: int, size_bytes: int) -> list[float]:
    """Milliseconds from ``produce`` to the record in a waiting consumer's hands, one at a time."""
    sender = producer(address, settings={"linger.ms": 0})
    value = b"x" * size_bytes
    sender.produce(topic, value, partition=0)
    sender.flush(TIMEOUT_SECONDS)
    receiver = consumer(address, topic, OFFSET_BEGINNING)
    try:
        while receiver.poll(TIMEOUT_SECONDS) is None:  # from here on it waits at the end
            pass
        taken = []
        for number in range(count + 20):
            began = time.perf_counter()
            sender.produce(topic, value, partition=0)
            sender.poll(0)
            message = receiver.poll(TIMEOUT_SECONDS)
            if message is None or message.error():
                raise RuntimeError(f"record {number} did not arrive")
            if number >= 20:
                taken.append((time.perf_counter() - began) * 1000)
        return taken
    finally:
        sender.flush(TIMEOUT_SECONDS)
        receiver.close()


def throughput_round(
    address: str, label: str, load: Load, cpu_seconds: Callable[[], float] | None
) -> dict[str, float]:
    """Produce, then consume what was produced: MB/s of values, and the broker's processor time per GB."""
    topic = new_topic(address, load.partitions)
    before = cpu_seconds() if cpu_seconds else 0.0
    produced = produce(address, topic, load)
    between = cpu_seconds() if cpu_seconds else 0.0
    consumed = consume(address, topic, load)
    values = {
        f"produce {label}": load.megabytes / produced,
        f"consume {label}": load.megabytes / consumed,
    }
    if cpu_seconds:
        after = cpu_seconds()
        values[f"broker's CPU, produce {label}"] = (between - before) * 1000 / load.megabytes
        values[f"broker's CPU, consume {label}"] = (after - between) * 1000 / load.megabytes
    return values


def synchronous_round(address: str, count: int, size_bytes: int) -> dict[str, float]:
    """Percentiles of records that are each produced when the one before is acknowledged."""
    taken = synchronous(address, new_topic(address), count, size_bytes)
    return {
        "synchronous record, p50": percentile(taken, 0.5),
        "synchronous record, p99": percentile(taken, 0.99),
    }


def end_to_end_round(address: str, count: int, size_bytes: int) -> dict[str, float]:
    """Percentiles of the way from producer to consumer."""
    taken = end_to_end(address, new_topic(address), count, size_bytes)
    return {"end to end, p50": percentile(taken, 0.5), "end to end, p99": percentile(taken, 0.99)}


def small_requests_round(address: str, count: int) -> dict[str, float]:
    return {"one-record requests": count / small_requests(address, new_topic(address), count)}
