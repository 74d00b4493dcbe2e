"""What a topic of very many partitions costs."""

import time

from benchmarks.librdkafka import TIMEOUT_SECONDS, new_topic, producer
from compat.processes import resident_bytes

MEBIBYTE = 1024 * 1024


def partitions_round(address: str, pid: int, partitions: int) -> dict[str, float]:
    """Create a topic, and produce one record into each of its partitions."""
    before = resident_bytes(pid)
    began = time.perf_counter()
    topic = new_topic(address, partitions)
    created = time.perf_counter() - began
    client = producer(address)
    client.list_topics(topic, TIMEOUT_SECONDS)
    began = time.perf_counter()
    client.produce_batch(topic, [{"value": b"x" * 100, "partition": number} for number in range(partitions)])
    left = client.flush(TIMEOUT_SECONDS)
    produced = time.perf_counter() - began
    if left:
        raise RuntimeError(f"{left} records were not acknowledged in {TIMEOUT_SECONDS} s")
    return {
        "create 10,000 partitions": created,
        "one record into each of 10,000 partitions": produced,
        "memory of 10,000 partitions with a record": (resident_bytes(pid) - before) / MEBIBYTE,
    }
