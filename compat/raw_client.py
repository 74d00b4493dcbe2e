"""A client of plain sockets: nothing of its cost is a library's, and it needs no time to start."""

import socket
import struct
import time

import crc32c

from compat.probe import API_VERSIONS_V0, receive_frame, split_address

CONNECT_PAUSE_SECONDS = 0.0005
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
NOT_READY_YET = frozenset({UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER})


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """A request with a header of version 1."""
    content = struct.pack(">hhih", api_key, version, 1, 5) + b"bench" + body
    return struct.pack(">i", len(content)) + content


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def metadata_request(topic: str) -> bytes:
    """Metadata version 4, which creates the topic if it is not there."""
    return frame(3, 4, struct.pack(">i", 1) + text(topic) + b"\x01")


def produce_request(topic: str, value: bytes) -> bytes:
    """Produce version 3 with acks=all: one record for partition 0."""
    batch = one_record_batch(value)
    head = struct.pack(">hhi", -1, -1, 30_000)  # no transactional id, acks, timeout
    partition = struct.pack(">iii", 1, 0, len(batch)) + batch
    return frame(0, 3, head + struct.pack(">i", 1) + text(topic) + partition)


def one_record_batch(value: bytes) -> bytes:
    """A batch of version 2 with one record that has a value only."""
    record = b"\0\0\0\x01" + varint(len(value)) + value + b"\0"
    record = varint(len(record)) + record
    now_ms = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c.crc32c(checked)) + checked


def varint(value: int) -> bytes:
    """A signed varint of a value that is not negative."""
    rest = value << 1
    written = bytearray()
    while rest >= 0x80:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def produce_error(answer: bytes, topic: str) -> int:
    """The error code of the one partition in the answer to ``produce_request``."""
    start = 4 + 4 + len(text(topic)) + 4 + 4
    (code,) = struct.unpack_from(">h", answer, start)
    return int(code)


class RawClient:
    """One connection that asks and waits for the answer."""

    def __init__(self, address: str, *, timeout_seconds: float = 30) -> None:
        self._socket = socket.create_connection(split_address(address), timeout=timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        answer = receive_frame(self._socket)
        if not answer:
            raise ConnectionError("the broker closed the connection")
        return answer

    def greet(self) -> None:
        """Ask for the API versions, as every client does first."""
        self.ask(API_VERSIONS_V0)

    def produce_until_acknowledged(self, topic: str, *, timeout_seconds: float = 60) -> None:
        """Create the topic and produce one record, as often as it takes until that is acknowledged."""
        deadline = time.monotonic() + timeout_seconds
        self.ask(metadata_request(topic))
        request = produce_request(topic, b"first")
        while True:
            code = produce_error(self.ask(request), topic)
            if code == 0:
                return
            if code not in NOT_READY_YET or time.monotonic() > deadline:
                raise RuntimeError(f"a record was refused with error {code}")
            self.ask(metadata_request(topic))


def first_acknowledged(address: str, topic: str, *, timeout_seconds: float = 60) -> None:
    """Connect as soon as somebody listens, and return when a record has been acknowledged."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            with RawClient(address) as client:
                client.produce_until_acknowledged(topic)
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(CONNECT_PAUSE_SECONDS)
