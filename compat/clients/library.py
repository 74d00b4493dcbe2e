"""What a client library is asked to do, and with which records."""

import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

TIMEOUT_SECONDS = 120
"""No call of a library takes longer, whatever the broker does."""


class Sample(NamedTuple):
    """A record to produce.  ``number`` tells it from all others of its topic."""

    number: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]
    timestamp_ms: int


class Place(NamedTuple):
    """Where the broker says that it put a record."""

    partition: int
    offset: int


class TakenRecord(NamedTuple):
    """A record as a consumer got it."""

    place: Place
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int


class ClientLibrary(Protocol):
    """One client library.  Each call opens its own connections and closes them."""

    name: str

    def create_topic(self, address: str, topic: str, partition_count: int) -> None: ...

    def produce(
        self, address: str, topic: str, samples: Sequence[Sample], *, codec: str, idempotent: bool
    ) -> list[Place]:
        """Produce all with acks=all; the place of each, in the order of ``samples``."""

    def consume(self, address: str, topic: str, count: int) -> list[TakenRecord]:
        """The first ``count`` records of all partitions, without a group."""


def make_samples(count: int, chance: random.Random) -> list[Sample]:
    """Records of about a hundred bytes that compress as real ones do: some have no key, some headers."""
    words = [chance.randbytes(4).hex().encode() for _ in range(50)]
    start_ms = 1_700_000_000_000
    return [
        Sample(
            number=number,
            key=None if number % 7 == 0 else b"key-%d" % (number % 100),
            value=b"%d " % number + b" ".join(chance.choices(words, k=chance.randrange(12))),
            headers=[("trace", b"%d" % number), ("empty", b"")] if number % 10 == 0 else [],
            timestamp_ms=start_ms + number,
        )
        for number in range(count)
    ]
