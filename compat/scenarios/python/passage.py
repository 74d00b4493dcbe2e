"""What scenarios of frameworks play on: an application hears records of a topic, and may pass them on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, Self

from compat.scenarios.python.checks import expect
from compat.scenarios.python.client import Committed, Partition, Record, Refused
from compat.scenarios.python.records import START_MS
from compat.scenarios.python.stage import Stage, partitions_of, values, wait_for

LOADING: Final = (14, 16)
"""COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR, which a broker that has just started may answer."""


class Listener(ABC):
    """An application that runs, and tells what it hears."""

    @abstractmethod
    def heard(self) -> list[dict[str, Any]]:
        """The records that it heard so far."""

    def values(self) -> list[str]:
        return [each["value"] for each in self.heard()]


def wait_for_heard(listener: Listener, wanted: Sequence[str]) -> None:
    """Wait until it heard as much, and hold it against what it should have heard."""
    wait_for(lambda: len(listener.heard()) >= len(wanted), f"{len(wanted)} records are heard")
    expect(listener.values(), list(wanted), "values that were heard")


def numbered(count: int, word: str = "value") -> list[str]:
    return [f"{word}{number}" for number in range(count)]


class Passage:
    """The topics and the group of a scenario; what runs in it ends when the block is left, last first."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.group = stage.new_name("group")
        self.input = stage.new_name("in")
        self.output = stage.new_name("out")
        self.running = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.running.close()

    def create(self, *names: str, partition_count: int = 1) -> None:
        for name in names:
            self.stage.topic(partition_count, name=name)

    def send(self, sent: Sequence[str], partition_count: int = 1) -> None:
        """One record for each, a second apart, to one partition after the other."""
        records = [
            Record(
                value.encode(),
                b"key",
                partition=number % partition_count,
                timestamp_ms=START_MS + 1000 * number,
            )
            for number, value in enumerate(sent)
        ]
        self.stage.send(self.input, records)

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets of partitions of the input for the group, of which nobody is a member."""
        wanted = {Partition(self.input, number): Committed(offset) for number, offset in offsets.items()}
        consumer = self.stage.consumer(group=self.group)
        consumer.assign(list(wanted))

        def has_coordinator() -> bool:
            try:
                consumer.committed(list(wanted))
            except Refused as refusal:
                if refusal.code not in LOADING:
                    raise
                return False
            return True

        wait_for(has_coordinator, f"{self.group} has a coordinator")
        consumer.commit(wanted)

    def committed(self, partition_count: int = 1) -> list[int]:
        """How far the group is in each partition of the input; 0 where it has not begun."""
        found = self.stage.admin.group_offsets(self.group)
        return [
            found[each].offset if each in found else 0 for each in partitions_of(self.input, partition_count)
        ]

    def wait_until_committed(self, wanted: Sequence[int]) -> None:
        wait_for(lambda: self.committed(len(wanted)) == list(wanted), f"the group has committed {wanted}")

    def taken(self, topic: str, count: int, *, committed_only: bool = True) -> list[str]:
        """The first values of a topic of one partition, and what there is behind them."""
        taken = self.stage.take(topic, count, committed_only=committed_only)
        return [value.decode() for value in values(taken) if value is not None]
