"""Clients at work on a cluster, which remember what they were promised."""

import random
import threading
import time
from collections import defaultdict
from functools import partial
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from compat.librdkafka import IDEMPOTENT
from compat.waiting import wait_until

PATIENCE_SECONDS: Final = 60.0
PADDING: Final = b"." * 100
PAUSE_SECONDS: Final = 0.002
BATCH_RECORDS_MAX: Final = 97
LAST_WORDS: Final = b"last 0"

QUICK: Final[dict[str, str | int | float]] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 5000,
    # Else librdkafka 2.16 forgets a broker that is away, and now and then waits for the forgotten one.
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


class Acknowledged(NamedTuple):
    """A promise: this number lies at this offset, or, if that is None, somewhere."""

    number: int
    offset: int | None


class NumberedRecords(threading.Thread):
    """Writes rising numbers to each partition with an idempotent producer and acks=all.

    One batch after the other, for ``IDEMPOTENT`` says what librdkafka may double else.
    """

    def __init__(self, servers: str, topic: str, partitions: int, name: str) -> None:
        super().__init__(daemon=True)
        self.label = name
        self.acknowledged: dict[int, list[Acknowledged]] = defaultdict(list)
        self.last_seconds: dict[int, float] = {}
        """When the last record of each partition was acknowledged, by ``time.monotonic``."""
        self.sent = 0
        self.errors: list[KafkaError] = []
        self._topic = topic
        self._partitions = partitions
        self._written = [0] * partitions
        self._answered = [0] * partitions
        self._ended = threading.Event()
        self._client = Producer(
            {
                **QUICK,
                "bootstrap.servers": servers,
                **IDEMPOTENT,
                "linger.ms": 5,
                "message.timeout.ms": int(PATIENCE_SECONDS * 1000),
            }
        )

    def run(self) -> None:
        partition = 0
        while not self._ended.wait(PAUSE_SECONDS):
            self._client.poll(0)
            partition = (partition + 1) % self._partitions
            if self._written[partition] == self._answered[partition]:
                for _ in range(1 + self._written[partition] % BATCH_RECORDS_MAX):
                    self._write(partition)

    def _write(self, partition: int) -> None:
        number = self._written[partition]
        self._client.produce(
            self._topic,
            b"%s %d " % (self.label.encode(), number) + PADDING,
            partition=partition,
            on_delivery=partial(self._note, number),
        )
        self._written[partition] += 1
        self.sent += 1

    def end(self) -> None:
        """Write no more, and wait until all is acknowledged."""
        self._ended.set()
        self.join()
        left = self._client.flush(PATIENCE_SECONDS)
        assert left == 0, f"{left} records of {self.label} are not acknowledged after {PATIENCE_SECONDS} s"

    def _note(self, number: int, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        self._answered[partition] += 1
        if error is not None:
            self.errors.append(error)
            return
        self.acknowledged[partition].append(Acknowledged(number, offset))
        self.last_seconds[partition] = time.monotonic()


class Pairs(threading.Thread):
    """Writes each number to two partitions in a transaction, and commits or gives up."""

    def __init__(self, servers: str, topic: str, partitions: int, name: str, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.label = name
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.doubtful: set[int] = set()
        """Whose commit failed in a way that tells nothing."""
        self._servers = servers
        self._topic = topic
        self._partitions = partitions
        self._chance = chance
        self._ended = threading.Event()

    def run(self) -> None:
        number = 0
        client: Producer | None = None
        while not self._ended.wait(PAUSE_SECONDS * 10):
            number += 1
            try:
                if client is None:
                    client = self._open()
                self._write(client, number)
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if number not in self.aborted:
                    self.doubtful.add(number)
                if cause.txn_requires_abort() and client is not None:
                    try:
                        client.abort_transaction(PATIENCE_SECONDS)
                        self.doubtful.discard(number)
                        self.aborted.add(number)
                        continue
                    except KafkaException:
                        pass
                client = None  # the next one of the same name fences it, and ends what it has begun

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _open(self) -> Producer:
        client = Producer(
            {
                **QUICK,
                "bootstrap.servers": self._servers,
                "transactional.id": self.label,
                "linger.ms": 0,
                "transaction.timeout.ms": 10_000,
            }
        )
        client.init_transactions(PATIENCE_SECONDS)
        return client

    def _write(self, client: Producer, number: int) -> None:
        client.begin_transaction()
        for partition in self._chance.sample(range(self._partitions), 2):
            client.produce(self._topic, b"%s %d" % (self.label.encode(), number), partition=partition)
        client.flush(PATIENCE_SECONDS)
        if self._chance.random() < 0.25:
            client.abort_transaction(PATIENCE_SECONDS)
            self.aborted.add(number)
        else:
            client.commit_transaction(PATIENCE_SECONDS)
            self.committed.add(number)


class Reader(threading.Thread):
    """Reads what is committed, from the beginning, and keeps what it saw."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.seen: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(partitions)}
        self._ended = threading.Event()
        self._client = Consumer(
            {
                **QUICK,
                "bootstrap.servers": servers,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        self._client.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self.errors: list[KafkaError] = []

    def run(self) -> None:
        while not self._ended.is_set():
            for message in self._client.consume(1000, 0.1):
                partition, offset, value = message.partition(), message.offset(), message.value()
                error = message.error()
                if error is not None:
                    self.errors.append(error)
                    continue
                assert partition is not None
                assert offset is not None
                self.seen[partition].append((offset, value or b""))

    def end(self) -> None:
        """Read up to the last words of each partition, and stop."""

        def has_ended() -> bool:
            return all(seen and seen[-1][1] == LAST_WORDS for seen in self.seen.values())

        wait_until(has_ended, "everything is read", patience_seconds=PATIENCE_SECONDS)
        self._ended.set()
        self.join()
        self._client.close()


def write_last_words(servers: str, topic: str, partitions: int) -> None:
    """What readers stop behind: the markers of transactions, which they do not see, hide where a log ends."""
    client = Producer({**QUICK, **IDEMPOTENT, "bootstrap.servers": servers})
    for partition in range(partitions):
        client.produce(topic, LAST_WORDS, partition=partition)
    left = client.flush(PATIENCE_SECONDS)
    assert left == 0, f"{left} last words are not acknowledged after {PATIENCE_SECONDS} s"
