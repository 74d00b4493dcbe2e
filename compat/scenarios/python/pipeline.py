"""Exactly-once: records consumed, and what becomes of them, in one transaction."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from compat.scenarios.python.client import (
    Consumer,
    Partition,
    Place,
    Record,
    TakenRecord,
    TransactionalProducer,
)


class Pipeline(ABC):
    """A member of a group that commits its offsets in the transactions of what it produces."""

    @abstractmethod
    def poll(self, wait_seconds: float, records_max: int) -> list[TakenRecord]: ...

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, records: Sequence[Record]) -> list[Place]: ...

    @abstractmethod
    def commit(self) -> None:
        """Commit what was sent, and the offsets of all that was polled."""

    @abstractmethod
    def abort(self) -> None:
        """Nothing was sent, and what was polled since the last commit comes again."""

    @abstractmethod
    def close(self) -> None: ...


class PipelineOfTwo(Pipeline):
    """A consumer and a producer, as most libraries have it."""

    def __init__(self, group: str, consumer: Consumer, producer: TransactionalProducer) -> None:
        self._group = group
        self._consumer = consumer
        self._producer = producer
        self._starts: dict[Partition, int] = {}
        """Where the records begin that were polled since the last commit."""
        self._ends: dict[Partition, int] = {}

    def poll(self, wait_seconds: float, records_max: int) -> list[TakenRecord]:
        taken = self._consumer.poll(wait_seconds, records_max=records_max)
        for record in taken:
            partition = Partition(record.topic, record.place.partition)
            self._starts.setdefault(partition, record.place.offset)
            self._ends[partition] = record.place.offset + 1
        return taken

    def begin(self) -> None:
        self._producer.begin()

    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        return self._producer.send(topic, records)

    def commit(self) -> None:
        self._producer.send_offsets(self._group, self._ends, self._consumer)
        self._producer.commit()
        self._starts, self._ends = {}, {}

    def abort(self) -> None:
        self._producer.send_offsets(self._group, self._ends, self._consumer)
        self._producer.abort()
        for partition, offset in self._starts.items():
            self._consumer.seek(partition, offset)
        self._starts, self._ends = {}, {}

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()
