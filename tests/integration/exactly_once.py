"""A pipeline that consumes, transforms and produces in transactions, while everything is killed at random.

``python -m tests.integration.exactly_once [KILLS [SEED]]`` runs it with as many kills of the broker, and
tells what became of it; fifty take some minutes.
"""

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from compat.broker_process import ROOT, BrokerProcess
from compat.python_clients import CLIENTS
from compat.scenarios.python.stage import Stage
from compat.waiting import wait_until

SOURCE: Final = "source"
TARGET: Final = "target"
GROUP: Final = "pipeline"
PARTITION_COUNT: Final = 4
WORKERS: Final = 3
BATCH_MAX: Final = 20
"""Records of one transaction at most."""

BETWEEN_KILLS: Final = 120
"""Records that are transformed before the next kill."""

PATIENCE_SECONDS: Final = 120.0

SETTINGS: Final = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}

QUICK: Final[dict[str, str | int | float]] = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    # Else librdkafka 2.16 forgets a broker that is away, and now and then waits for the forgotten one.
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


class Source(threading.Thread):
    """Writes numbered records steadily, whatever happens to the broker, each exactly once."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.count = 0
        self.errors: list[KafkaError] = []
        self._client = Producer(
            {**QUICK, "bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 2}
        )

    def run(self) -> None:
        while not self.ended.wait(0.01):
            self._client.produce(
                SOURCE, b"%d" % self.count, partition=self.count % PARTITION_COUNT, on_delivery=self._note
            )
            self.count += 1
            self._client.poll(0)
        assert self._client.flush(PATIENCE_SECONDS) == 0

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.errors.append(error)


class Worker:
    """A process of ``exactly_once_worker``, and its place in the pipeline."""

    def __init__(self, address: str, number: int) -> None:
        self._command = [sys.executable, "-m", "tests.integration.exactly_once_worker", address, str(number)]
        self.starts = 0
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        self.starts += 1
        return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, cwd=ROOT)

    def tend(self) -> None:
        """Start it again if it has given up: a fenced or confused producer does that."""
        if self._process.poll() is not None:
            self._process = self._start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def transformed(address: str) -> int:
    """How many records, with markers, the target has."""
    consumer = Consumer({**QUICK, "bootstrap.servers": address, "group.id": "unused"})

    def end_of(partition: int) -> int:
        ends: list[int] = []

        def has_answer() -> bool:
            with suppress(KafkaException):  # leaders change, and the client does not ask again by itself
                ends.append(consumer.get_watermark_offsets(TopicPartition(TARGET, partition), 10)[1])
            return bool(ends)

        wait_until(has_answer, f"partition {partition} has a leader", patience_seconds=PATIENCE_SECONDS)
        return ends[0]

    try:
        return sum(end_of(partition) for partition in range(PARTITION_COUNT))
    finally:
        consumer.close()


def committed_records(address: str, count: int) -> list[list[int]]:
    """The numbers that a consumer of what is committed gets, by partition, once there are so many."""
    consumer = Consumer(
        {
            **QUICK,
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(TARGET, partition, 0) for partition in range(PARTITION_COUNT)])
    found: list[list[int]] = [[] for _ in range(PARTITION_COUNT)]

    def take() -> bool:
        for message in consumer.consume(1000, 0.2):
            value, partition = message.value(), message.partition()
            if message.error() is None and value is not None and partition is not None:
                found[partition].append(int(value))
        return sum(map(len, found)) >= count

    try:
        wait_until(take, f"{count} records are committed", patience_seconds=PATIENCE_SECONDS)
        for _ in range(10):  # nothing may come behind them
            take()
    finally:
        consumer.close()
    return found


def run_pipeline(broker: BrokerProcess, kills: int, chance: random.Random) -> list[str]:
    """What is wrong with the output of one broker, if anything is."""

    def kill() -> None:
        broker.kill()
        broker.start()

    with Stage(CLIENTS["confluent-kafka"], broker.address) as stage:
        for topic in (SOURCE, TARGET):
            stage.topic(PARTITION_COUNT, name=topic)
    return run_through(broker.address, kills, chance, kill)


def run_through(address: str, kills: int, chance: random.Random, kill: Callable[[], None]) -> list[str]:
    """What is wrong with the output, if anything is.

    ``address`` is where clients find the brokers, who have the topics.  ``kill`` kills one, and sees to it
    that it comes back.
    """
    source = Source(address)
    source.start()
    workers = [Worker(address, number) for number in range(WORKERS)]

    def has_reached(goal: int) -> bool:
        for worker in workers:
            worker.tend()
        return transformed(address) >= goal

    try:
        for _ in range(kills):
            goal = transformed(address) + BETWEEN_KILLS
            wait_until(partial(has_reached, goal), "it goes on", patience_seconds=PATIENCE_SECONDS)
            if chance.random() < 0.7:
                chance.choice(workers).kill()
            time.sleep(chance.random() * 0.05)  # anywhere in a transaction
            kill()
        source.ended.set()
        source.join(PATIENCE_SECONDS)
        assert not source.is_alive()
        ended = threading.Event()
        tending = threading.Thread(target=tend_until, args=(workers, ended), daemon=True)
        tending.start()
        found = committed_records(address, source.count)
        ended.set()
        tending.join()
    finally:
        for worker in workers:
            worker.kill()
    return list(complaints(found, source))


def tend_until(workers: list[Worker], ended: threading.Event) -> None:
    while not ended.wait(0.2):
        for worker in workers:
            worker.tend()


def complaints(found: list[list[int]], source: Source) -> list[str]:
    wrong = [f"the source failed: {error}" for error in source.errors[:3]]
    counts = Counter(number for numbers in found for number in numbers)
    wrong += [f"{number} is there {count} times" for number, count in counts.items() if count > 1][:5]
    wrong += [f"{number} is missing" for number in range(source.count) if number not in counts][:5]
    wrong += [
        f"partition {partition} is out of order"
        for partition, numbers in enumerate(found)
        if numbers != sorted(numbers)
    ]
    return wrong


def tell(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def main() -> int:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().getrandbits(32)
    tell(f"{kills} kills from seed {seed}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder), SETTINGS)
        broker.start()
        try:
            wrong = run_pipeline(broker, kills, random.Random(seed))
        finally:
            broker.kill()
    tell(*wrong or ["each record is there exactly once"])
    tell(f"{time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
