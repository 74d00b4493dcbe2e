"""Clients at work while a cluster is made over, of which each remembers what it was promised."""

import random
import threading
from collections import defaultdict
from typing import Final

from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from compat.librdkafka import IDEMPOTENT
from compat.waiting import wait_until
from tests.integration.cluster.promises import broken_promises
from tests.integration.cluster.traffic import (
    LAST_WORDS,
    PATIENCE_SECONDS,
    QUICK,
    NumberedRecords,
    Pairs,
    Reader,
    write_last_words,
)

PARTITIONS: Final = 3

LONG_TIMEOUT_MS: Final = 900_000
"""The most that Kafka allows a transaction by default."""


class GroupReader(threading.Thread):
    """The only member of a group: it reads what is committed, and commits how far it has come."""

    def __init__(self, servers: str, topic: str, group: str, *, protocol: str) -> None:
        """``protocol`` is ``classic``, or ``consumer`` (KIP-848)."""
        super().__init__(daemon=True)
        self.label = group
        self.committed: dict[int, int] = {}
        """What the coordinator has acknowledged last, by partition."""
        self.read: dict[int, set[int]] = defaultdict(set)
        self.broken: list[str] = []
        self.last_words: set[int] = set()
        self._topic = topic
        self._ended = threading.Event()
        settings: dict[str, str | int | float | bool] = {
            **QUICK,
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": protocol,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
        if protocol == "classic":
            settings |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}
        self._client = Consumer(settings)

    def run(self) -> None:
        self._client.subscribe([self._topic])
        while not self._ended.is_set():
            behind: dict[int, int] = {}
            for message in self._client.consume(500, 0.1):
                if message.error() is not None:
                    continue  # a broker that is away, for one; what is missed in the end tells
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if offset < self.committed.get(partition, 0):
                    self.broken.append(
                        f"{self.label} was given {partition}:{offset} behind {self.committed[partition]}"
                    )
                self.read[partition].add(offset)
                behind[partition] = offset + 1
                if message.value() == LAST_WORDS:
                    self.last_words.add(partition)
            if behind:
                self._commit(behind)

    def _commit(self, behind: dict[int, int]) -> None:
        wanted = [TopicPartition(self._topic, partition, offset) for partition, offset in behind.items()]
        try:
            done = self._client.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return  # it is left to the next one
        for place in done or ():
            if place.error is None:
                self.committed[place.partition] = place.offset

    def end(self) -> None:
        """Read up to the last words of each partition, commit that, and leave."""

        def is_done() -> bool:
            return len(self.last_words) == PARTITIONS and all(
                self.committed.get(partition, 0) > max(self.read[partition])
                for partition in range(PARTITIONS)
            )

        wait_until(is_done, f"{self.label} has read everything", patience_seconds=PATIENCE_SECONDS)
        self._ended.set()
        self.join()
        self._client.close()


class Traffic:
    """All the clients of one topic; ``servers`` are all the brokers that there are and that will be."""

    def __init__(self, servers: str, topic: str, chance: random.Random) -> None:
        self._servers = servers
        self.topic = topic
        self.writers = [NumberedRecords(servers, topic, PARTITIONS, "writer-1")]
        self.pairs = [Pairs(servers, topic, PARTITIONS, f"pairs-of-{topic}", chance)]
        self.live = Reader(servers, topic, PARTITIONS)
        self.groups = [
            GroupReader(servers, topic, f"{protocol}-of-{topic}", protocol=protocol)
            for protocol in ("classic", "consumer")
        ]
        self.final: Reader | None = None

    def start(self) -> None:
        for client in (*self.writers, *self.pairs, self.live, *self.groups):
            client.start()
        self.wait_for_more()

    def wait_for_more(self) -> None:
        """Return when everybody has got further, so that whatever comes next comes amid their work."""
        before = self._progress()

        def has_moved() -> bool:
            return all(now > then for now, then in zip(self._progress(), before, strict=True))

        wait_until(has_moved, f"the clients of {self.topic} get on", patience_seconds=PATIENCE_SECONDS)

    def _progress(self) -> list[int]:
        return [
            *(
                len(writer.acknowledged[partition])
                for writer in self.writers
                for partition in range(PARTITIONS)
            ),
            *(len(pairs.committed) for pairs in self.pairs),
            *(len(self.live.seen[partition]) for partition in range(PARTITIONS)),
            *(group.committed.get(partition, 0) for group in self.groups for partition in range(PARTITIONS)),
        ]

    def end(self) -> list[str]:
        """Let everybody come to an end; what is broken."""
        for writer in self.writers:
            writer.end()
        for pairs in self.pairs:
            pairs.end()
        write_last_words(self._servers, self.topic, PARTITIONS)
        self.final = read_all(self._servers, self.topic)
        self.live.end()
        broken = broken_promises(self.writers, self.pairs, self.live, self.final)
        for group in self.groups:
            group.end()
            broken += group.broken
            for partition, seen in self.final.seen.items():
                missed = {offset for offset, _ in seen} - group.read[partition]
                if missed:
                    broken.append(f"{group.label} has missed {len(missed)} of partition {partition}")
        return broken + self.check_kept()

    def check_kept(self) -> list[str]:
        """What is broken of a topic whose clients have ended: records and committed offsets."""
        assert self.final is not None
        broken = []
        if read_all(self._servers, self.topic).seen != self.final.seen:
            broken.append(f"{self.topic} is not what it was")
        for group in self.groups:
            found = committed_offsets(self._servers, group.label, self.topic, range(PARTITIONS))
            if found != group.committed:
                broken.append(f"{group.label} had committed {group.committed}, and that is {found}")
        return broken

    def told(self) -> str:
        """How much was done, for who reads along."""
        records = sum(len(each) for writer in self.writers for each in writer.acknowledged.values())
        pairs = self.pairs[0]
        return (
            f"{self.topic}: {records} records acknowledged, {len(pairs.committed)} transactions committed, "
            f"{len(pairs.aborted)} given up, {len(pairs.doubtful)} in doubt"
        )


def read_all(servers: str, topic: str) -> Reader:
    """What is committed in a topic that has its last words."""
    reader = Reader(servers, topic, PARTITIONS)
    reader.start()
    reader.end()
    return reader


def committed_offsets(servers: str, group: str, topic: str, partitions: range) -> dict[int, int]:
    """What the coordinator knows of a group."""
    client = Consumer({**QUICK, "bootstrap.servers": servers, "group.id": group})
    try:
        wanted = [TopicPartition(topic, partition) for partition in partitions]
        return {place.partition: place.offset for place in client.committed(wanted, PATIENCE_SECONDS)}
    finally:
        client.close()


class LongLived:
    """What is begun on one cluster and is to be ended on another: offsets, a transaction, a share group."""

    TOPIC: Final = "long"
    SHARED: Final = "shared"
    GROUP: Final = "parked"
    SHARE_GROUP: Final = "sharing"
    SHARED_COUNT: Final = 20
    TAKEN_COUNT: Final = 8

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._writer: Producer | None = None
        self._taken: set[bytes] = set()

    def begin(self) -> None:
        """Park a group, leave a transaction open, and accept some of the shared records."""
        parked = Consumer({**QUICK, "bootstrap.servers": self._servers, "group.id": self.GROUP})
        place = TopicPartition(self.TOPIC, 0, 3, metadata="read by somebody")
        parked.commit(offsets=[place], asynchronous=False)
        parked.close()
        self._writer = Producer(
            {
                **QUICK,
                "bootstrap.servers": self._servers,
                "transactional.id": "long",
                "transaction.timeout.ms": LONG_TIMEOUT_MS,
            }
        )
        self._writer.init_transactions(PATIENCE_SECONDS)
        self._writer.begin_transaction()
        self._writer.produce(self.TOPIC, b"begun", partition=0)
        self._writer.flush(PATIENCE_SECONDS)
        writer = Producer({**QUICK, **IDEMPOTENT, "bootstrap.servers": self._servers})
        for number in range(self.SHARED_COUNT):
            writer.produce(self.SHARED, b"%d" % number)
        assert writer.flush(PATIENCE_SECONDS) == 0
        self._taken = self._take(self.TAKEN_COUNT)

    def end(self) -> list[str]:
        """Go on with all of it; what is broken."""
        broken = []
        found = committed_offsets(self._servers, self.GROUP, self.TOPIC, range(1))
        if found != {0: 3}:
            broken.append(f"{self.GROUP} had committed 3, and that is {found}")
        assert self._writer is not None
        self._writer.produce(self.TOPIC, b"ended", partition=0)
        self._writer.commit_transaction(PATIENCE_SECONDS)
        values = self._read(2)
        if values != [b"begun", b"ended"]:
            broken.append(f"the long transaction left {values}")
        rest = self._take(self.SHARED_COUNT - self.TAKEN_COUNT)
        everything = {b"%d" % number for number in range(self.SHARED_COUNT)}
        if rest & self._taken or rest | self._taken != everything:
            broken.append(f"{sorted(self._taken)} were accepted, and then came {sorted(rest)}")
        return broken

    def _read(self, count: int) -> list[bytes]:
        client = Consumer(
            {
                **QUICK,
                "bootstrap.servers": self._servers,
                "group.id": "unused",
                "isolation.level": "read_committed",
            }
        )
        client.assign([TopicPartition(self.TOPIC, 0, 0)])
        found: list[bytes] = []

        def has_all() -> bool:
            found.extend(message.value() or b"" for message in client.consume(count, 0.2))
            return len(found) >= count

        try:
            wait_until(has_all, f"{count} records of {self.TOPIC} are there")
        finally:
            client.close()
        return found

    def _take(self, count: int) -> set[bytes]:
        """Accept so many of the shared records, and leave those that come with them to others."""
        client = ShareConsumer(
            {
                **QUICK,
                "bootstrap.servers": self._servers,
                "group.id": self.SHARE_GROUP,
                "share.acknowledgement.mode": "explicit",
            }
        )
        client.subscribe([self.SHARED])
        taken: set[bytes] = set()

        def has_enough() -> bool:
            for message in client.poll(0.2):
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                if message.error() is not None or topic is None or partition is None or offset is None:
                    continue
                is_wanted = len(taken) < count
                if is_wanted:
                    taken.add(message.value() or b"")
                how = AcknowledgeType.ACCEPT if is_wanted else AcknowledgeType.RELEASE
                client.acknowledge_offset(topic, partition, offset, how)
            failures = client.commit_sync(PATIENCE_SECONDS).values()
            assert not any(isinstance(failure, KafkaError) for failure in failures)
            return len(taken) >= count

        try:
            wait_until(has_enough, f"{count} records of {self.SHARED} are taken")
        finally:
            client.close()
        return taken
