"""What ten thousand partitions cost, in ten topics: Kafka makes no more than 10,000 records of a request.

The records go by plain socket, a thousand partitions in a request: librdkafka sends one request for each, and
takes seconds to think of it.
"""

import struct
import time

from benchmarks.librdkafka import new_topic
from compat.processes import resident_bytes
from compat.raw_client import NOT_READY_YET, RawClient, frame, metadata_request, one_record_batch, text

TOPICS = 10
PARTITIONS = 1000
READY_TIMEOUT_SECONDS = 60
MEBIBYTE = 1024 * 1024

_ANSWER = struct.Struct(">ihqq")
"""Of one partition in version 3: index, error code, base offset, log append time."""


def partitions_round(address: str, pid: int) -> dict[str, float]:
    """Create the topics, and produce one record into each partition."""
    before = resident_bytes(pid)
    began = time.perf_counter()
    topics = [new_topic(address, PARTITIONS) for _ in range(TOPICS)]
    created = time.perf_counter() - began
    with RawClient(address) as client:
        for topic in topics:
            client.ask(metadata_request(topic))
        requests = [produce_request(topic, PARTITIONS) for topic in topics]
        began = time.perf_counter()
        for topic, request in zip(topics, requests, strict=True):
            produce_until_acknowledged(client, topic, request)
        produced = time.perf_counter() - began
    return {
        "create 10,000 partitions": created,
        "one record into each of 10,000 partitions": produced,
        "memory of 10,000 partitions with a record": max(0, resident_bytes(pid) - before) / MEBIBYTE,
    }


def produce_until_acknowledged(
    client: RawClient, topic: str, request: bytes, *, timeout_seconds: float = READY_TIMEOUT_SECONDS
) -> None:
    """Produce, and again if the broker does not know all partitions of a new topic yet."""
    deadline = time.monotonic() + timeout_seconds
    while codes := produce_errors(client.ask(request), topic):
        if not codes <= NOT_READY_YET or time.monotonic() > deadline:
            raise RuntimeError(f"records were refused with errors {sorted(codes)}")


def produce_request(topic: str, partitions: int) -> bytes:
    """Produce version 3 with acks=all: one record for each partition."""
    batch = one_record_batch(b"x" * 100)
    head = struct.pack(">hhii", -1, -1, 30_000, 1)  # no transactional id, acks, timeout, one topic
    entries = [struct.pack(">ii", partition, len(batch)) + batch for partition in range(partitions)]
    return frame(0, 3, head + text(topic) + struct.pack(">i", partitions) + b"".join(entries))


def produce_errors(answer: bytes, topic: str) -> set[int]:
    """The error codes, without 0, of all partitions in the answer to ``produce_request``."""
    start = 4 + 4 + len(text(topic))
    (count,) = struct.unpack_from(">i", answer, start)
    entries = answer[start + 4 : start + 4 + count * _ANSWER.size]
    return {code for _, code, _, _ in _ANSWER.iter_unpack(entries)} - {0}
