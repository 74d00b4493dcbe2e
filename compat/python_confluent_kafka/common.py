"""What the parts of confluent-kafka's driver share."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from compat.scenarios.python.client import TIMEOUT_SECONDS, Partition, Refused

SILENT = {"log_level": 0}
"""librdkafka writes to standard error on its own, even about what a scenario provokes."""


@contextmanager
def refusals() -> Iterator[None]:
    """Errors that came from the broker leave as Refused; librdkafka's own are negative."""
    try:
        yield
    except KafkaException as error:
        raise_refusal(error.args[0])
        raise


def raise_refusal(error: KafkaError) -> None:
    """Raise Refused if the error has one of Kafka's numbers."""
    if error.code() > 0:
        raise Refused(error.code(), error.str())


def raise_first(partitions: Collection[TopicPartition]) -> None:
    """Raise the first error that one of several partitions came back with."""
    for partition in partitions:
        if partition.error is not None:
            with refusals():
                raise KafkaException(partition.error)


def result_of(future: Future[Any]) -> Any:
    with refusals():
        return future.result(TIMEOUT_SECONDS)


def to_natives(offsets: Mapping[Partition, int]) -> list[TopicPartition]:
    return [
        TopicPartition(partition.topic, partition.number, offset) for partition, offset in offsets.items()
    ]


def from_natives(partitions: Collection[TopicPartition]) -> set[Partition]:
    return {Partition(partition.topic, partition.partition) for partition in partitions}
