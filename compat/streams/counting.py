"""Words are counted exactly once, whoever comes, goes and crashes meanwhile."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from compat.python_clients import CLIENTS
from compat.scenarios.python.client import Consumer, Record
from compat.scenarios.python.stage import Stage, partitions_of
from compat.streams.applications import PATIENCE_SECONDS, Applications, running_applications
from compat.waiting import wait_until

PROTOCOLS: Final = ("classic", "streams")
"""Each has an application of its own, called after it."""

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""A broker that misses whoever has crashed soon enough for a test."""

PARTITIONS: Final = 2
WORDS: Final = [f"word{number}" for number in range(12)]


class Counted:
    """What goes into one application and what comes out."""

    def __init__(self, stage: Stage, application: str, chance: random.Random) -> None:
        self._stage = stage
        self._chance = chance
        self._lines = stage.topic(PARTITIONS, name=f"{application}-lines")
        counts = stage.topic(PARTITIONS, name=f"{application}-counts")
        self._reader: Consumer = stage.consumer(committed_only=True)
        self._reader.assign(partitions_of(counts, PARTITIONS))
        self._reader.seek_to_beginning(partitions_of(counts, PARTITIONS))
        self._sent: Counter[str] = Counter()
        self._told: defaultdict[str, list[int]] = defaultdict(list)

    def send(self, line_count: int) -> None:
        """More lines to count."""
        lines = [self._chance.choices(WORDS, k=5) for _ in range(line_count)]
        self._sent.update(word for line in lines for word in line)
        self._stage.send(self._lines, [Record(" ".join(line).encode()) for line in lines])

    def look(self) -> int:
        """How many words are counted so far."""
        for record in self._reader.poll(0.1):
            assert record.key is not None
            assert record.value is not None
            self._told[record.key.decode()].append(int(record.value))
        return sum(map(len, self._told.values()))

    def wait_for_more(self) -> None:
        """Wait until something is counted that was not when it was last looked."""
        before = sum(map(len, self._told.values()))
        wait_until(lambda: self.look() > before, "counting goes on", patience_seconds=PATIENCE_SECONDS)

    def wait_for_all(self) -> None:
        """Wait until all words are counted, and hold the counts against what was sent."""
        total = self._sent.total()
        wait_until(
            lambda: self.look() >= total, f"{total} words are counted", patience_seconds=PATIENCE_SECONDS
        )
        self.look()
        wanted = {word: list(range(1, count + 1)) for word, count in self._sent.items()}
        assert self._told == wanted


def count_words(address: str, folder: Path, seed: int, protocols: Sequence[str] = PROTOCOLS) -> None:
    """Play it on the broker at ``address``.  Raises KafkaMissing where Kafka Streams is not to be had."""
    chance = random.Random(seed)
    with Stage(CLIENTS["confluent-kafka"], address) as stage:
        counted = {protocol: Counted(stage, protocol, chance) for protocol in protocols}
        with running_applications(address, folder) as applications:
            _work_together(applications, counted)
            for each in counted.values():
                each.send(200)
            for each in counted.values():
                each.wait_for_more()
            for each in counted.values():
                each.send(100)
            applications.kill()
        with running_applications(address, folder) as applications:
            for protocol in counted:
                applications.start(f"{protocol}-third", protocol, protocol)
            for each in counted.values():
                each.wait_for_all()


def _work_together(applications: Applications, counted: dict[str, Counted]) -> None:
    """The first instance works alone, then with a second one, and alone again."""
    for protocol in counted:
        applications.start(f"{protocol}-first", protocol, protocol)
    for each in counted.values():
        each.send(60)
    for each in counted.values():
        each.wait_for_all()
    seconds = [f"{protocol}-second" for protocol in counted]
    for protocol in counted:
        applications.start(f"{protocol}-second", protocol, protocol)
    for each in counted.values():
        each.send(60)
    applications.wait_for_tasks(*seconds)
    for each in counted.values():
        each.send(60)
        each.wait_for_all()
    for instance in seconds:
        applications.leave(instance)
