"""Looks at batches as the broker stores them, past the library: whether it compressed what it was told to."""

import socket
import struct
from collections.abc import Collection
from typing import NamedTuple

from compat.probe import receive_frame, split_address
from compat.scenarios.python.client import CODECS, TIMEOUT_SECONDS

FETCH = 1
FETCH_VERSION = 4
METADATA = 3
METADATA_VERSION = 1
LEADER_NOT_AVAILABLE = 5
SIZE_MAX = 16 * 1024 * 1024
LENGTH_END = 12
"""A batch's length counts what comes behind its first 12 bytes."""
CODEC_BITS = 0b111


class StoredBatch(NamedTuple):
    """What a record batch of version 2 says in its header."""

    base_offset: int
    codec: str
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


def stored_batches(address: str, topic: str, partition: int = 0) -> list[StoredBatch]:
    """The batches of a partition from offset 0, as far as one answer of 16 MiB holds them."""
    ((error, data),) = fetch(address, topic, [partition])
    if error:
        raise ValueError(f"a fetch of {topic}-{partition} gave error {error}")
    return read_batches(data)


def is_served(address: str, topic: str, partition_count: int) -> bool:
    """Whether every partition can be read: Kafka leads them a moment after it created the topic."""
    return all(error == 0 for error, _ in fetch(address, topic, range(partition_count)))


def fetch(address: str, topic: str, partitions: Collection[int]) -> list[tuple[int, bytes]]:
    """Error code and records of each partition, from offset 0, without waiting.

    ``address`` is that of any broker.
    """
    leaders = leader_addresses(address, topic)
    by_leader: dict[str, list[int]] = {}
    for partition in partitions:
        if partition in leaders:
            by_leader.setdefault(leaders[partition], []).append(partition)
    found = {
        partition: answer
        for leader, led in by_leader.items()
        for partition, answer in zip(led, fetch_from(leader, topic, led), strict=True)
    }
    return [found.get(partition, (LEADER_NOT_AVAILABLE, b"")) for partition in partitions]


def leader_addresses(address: str, topic: str) -> dict[int, str]:
    """By partition, as far as the broker knows."""
    answer = ask(address, METADATA, METADATA_VERSION, struct.pack(">ih", 1, len(topic)) + topic.encode())
    reader = Reader(answer)
    brokers = {}
    for _ in range(reader.number(">i")):
        broker_id, host, port = reader.number(">i"), reader.text(), reader.number(">i")
        reader.text()  # the rack
        brokers[broker_id] = f"{host}:{port}"
    reader.number(">i")  # the controller
    leaders = {}
    for _ in range(reader.number(">i")):
        reader.number(">h")
        reader.text()
        reader.number(">b")
        for _ in range(reader.number(">i")):
            _, partition, leader = reader.number(">h"), reader.number(">i"), reader.number(">i")
            for _ in range(2):  # replicas, and those in sync
                for _ in range(reader.number(">i")):
                    reader.number(">i")
            if leader in brokers:
                leaders[partition] = brokers[leader]
    return leaders


class Reader:
    """Takes an answer apart, from behind its correlation id on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 4

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def text(self) -> str:
        """Empty for null."""
        size = max(self.number(">h"), 0)
        self._position += size
        return self._data[self._position - size : self._position].decode()


def ask(address: str, api_key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhih", api_key, version, 1, -1) + body
    with socket.create_connection(split_address(address), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        return receive_frame(connection)


def fetch_from(leader: str, topic: str, partitions: Collection[int]) -> list[tuple[int, bytes]]:
    name = topic.encode()
    head = struct.pack(">iiiib", -1, 0, 1, SIZE_MAX, 0)
    wanted = [struct.pack(">iqi", partition, 0, SIZE_MAX) for partition in partitions]
    one_topic = struct.pack(">ih", 1, len(name)) + name + struct.pack(">i", len(wanted)) + b"".join(wanted)
    answer = ask(leader, FETCH, FETCH_VERSION, head + one_topic)
    # Correlation id, throttle time, count of topics, name, count of partitions; then, for each:
    # number, error, high watermark, last stable offset, aborted transactions (none here), size, records.
    position = 4 + 4 + 4 + 2 + len(name) + 4
    found = []
    for _ in wanted:
        _, error, _, _, _, size = struct.unpack_from(">ihqqii", answer, position)
        start = position + 30
        found.append((error, answer[start : start + size]))
        position = start + size
    return found


def read_batches(data: bytes) -> list[StoredBatch]:
    found = []
    position = 0
    while position + LENGTH_END <= len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + LENGTH_END + length
        if end > len(data):
            break
        # Left out by "x": leader epoch, magic and checksum; last offset delta and both timestamps.
        fields = struct.unpack_from(">qi4xx4xh4x8x8xqhii", data, position)
        base_offset, _, attributes, producer_id, epoch, sequence, count = fields
        codec = CODECS[attributes & CODEC_BITS]
        found.append(StoredBatch(base_offset, codec, producer_id, epoch, sequence, count))
        position = end
    return found
