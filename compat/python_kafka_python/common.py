"""What kafka-python's versions have in common: producing and consuming have hardly changed since 1.4."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import BrokerResponseError, KafkaError
from kafka.structs import OffsetAndMetadata

from compat.scenarios.python.client import (
    FETCH_WAIT_MS,
    HEARTBEAT_MS,
    LONG_TIMEOUT_SECONDS,
    SESSION_MS,
    TIMEOUT_SECONDS,
    CommitFailed,
    Committed,
    Consumer,
    Partition,
    PartitionsHandler,
    Place,
    Producer,
    Record,
    Refused,
    TakenRecord,
    not_offered,
)

ACKS = {"none": 0, "leader": 1, "all": "all"}
TIMEOUT_MS = int(TIMEOUT_SECONDS * 1000)


@contextmanager
def refusals() -> Iterator[None]:
    """Errors that came from the broker leave as Refused."""
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error


def to_native(partition: Partition) -> Any:
    return TopicPartition(partition.topic, partition.number)


def from_native(partition: Any) -> Partition:
    return Partition(partition.topic, partition.partition)


def to_native_offsets(offsets: Mapping[Partition, Committed]) -> dict[Any, Any]:
    # Older versions have no leader epoch among the fields, newer ones a default for it.
    return {
        to_native(partition): OffsetAndMetadata(committed.offset, committed.metadata)
        for partition, committed in offsets.items()
    }


def producer_options(
    *, acks: str, codec: str, linger_ms: int, batch_bytes_max: int | None, request_bytes_max: int | None
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "acks": ACKS[acks],
        "compression_type": None if codec == "none" else codec,
        "linger_ms": linger_ms,
    }
    if batch_bytes_max is not None:
        options["batch_size"] = batch_bytes_max
    if request_bytes_max is not None:
        options["max_request_size"] = request_bytes_max
    return options


def consumer_options(
    *,
    group: str | None,
    reset: str,
    auto_commit: bool,
    fetch_bytes_max: int | None,
    metadata_age_ms: int | None,
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "group_id": group,
        "auto_offset_reset": reset,
        "enable_auto_commit": auto_commit,
        "fetch_max_wait_ms": FETCH_WAIT_MS,
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
    }
    if fetch_bytes_max is not None:
        options["max_partition_fetch_bytes"] = fetch_bytes_max
    if metadata_age_ms is not None:
        options["metadata_max_age_ms"] = metadata_age_ms
    return options


class KafkaPythonProducer(Producer):
    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self._producer = KafkaProducer(bootstrap_servers=address, **options)

    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        if any(content is None for record in records for _, content in record.headers):
            not_offered("its producer takes no header without a value")
        with refusals():
            futures = [
                self._producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            self._producer.flush(LONG_TIMEOUT_SECONDS)
            results = [future.get(TIMEOUT_SECONDS) for future in futures]
        return [Place(result.partition, result.offset) for result in results]

    def close(self) -> None:
        self._producer.close(TIMEOUT_SECONDS)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """kafka-python calls it from ``poll`` and ``close``."""

    def __init__(self, gained: PartitionsHandler, lost: PartitionsHandler) -> None:
        self._gained = gained
        self._lost = lost

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._lost({from_native(partition) for partition in revoked})

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._gained({from_native(partition) for partition in assigned})


class KafkaPythonConsumer(Consumer):
    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self._consumer = KafkaConsumer(bootstrap_servers=address, **options)

    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        gained: PartitionsHandler = lambda _: None,
        lost: PartitionsHandler = lambda _: None,
    ) -> None:
        listener = Listener(gained, lost)
        if pattern is None:
            self._consumer.subscribe(topics=list(topics), listener=listener)
        else:
            self._consumer.subscribe(pattern=f"^{pattern}$", listener=listener)

    def assign(self, partitions: Collection[Partition]) -> None:
        self._consumer.assign([to_native(partition) for partition in partitions])

    def poll(self, wait_seconds: float = 0.1, records_max: int = 5000) -> list[TakenRecord]:
        with refusals():
            batches = self._consumer.poll(int(wait_seconds * 1000), max_records=records_max)
        return [
            TakenRecord(
                topic=record.topic,
                place=Place(record.partition, record.offset),
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp_ms=record.timestamp,
            )
            for records in batches.values()
            for record in records
        ]

    def seek(self, partition: Partition, offset: int) -> None:
        self._consumer.seek(to_native(partition), offset)

    def seek_to_beginning(self, partitions: Collection[Partition]) -> None:
        self._consumer.seek_to_beginning(*(to_native(partition) for partition in partitions))

    def seek_to_end(self, partitions: Collection[Partition]) -> None:
        self._consumer.seek_to_end(*(to_native(partition) for partition in partitions))

    def position(self, partition: Partition) -> int:
        return int(self._consumer.position(to_native(partition)))

    def pause(self, partitions: Collection[Partition]) -> None:
        self._consumer.pause(*(to_native(partition) for partition in partitions))

    def resume(self, partitions: Collection[Partition]) -> None:
        self._consumer.resume(*(to_native(partition) for partition in partitions))

    def commit(self, offsets: Mapping[Partition, Committed] | None = None) -> None:
        try:
            self._consumer.commit(None if offsets is None else to_native_offsets(offsets))
        except KafkaError as error:
            raise CommitFailed(str(error)) from error

    def commit_soon(self, offsets: Mapping[Partition, Committed]) -> Callable[[], bool]:
        answers: list[object] = []
        self._consumer.commit_async(
            to_native_offsets(offsets), callback=lambda _, response: answers.append(response)
        )

        def is_confirmed() -> bool:
            if answers and isinstance(answers[0], Exception):
                raise answers[0]
            return bool(answers)

        return is_confirmed

    def bounds(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
        natives = [to_native(partition) for partition in partitions]
        with refusals():
            first = self._consumer.beginning_offsets(natives)
            end = self._consumer.end_offsets(natives)
        return {from_native(native): (first[native], end[native]) for native in natives}

    def find_times(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int | None]:
        with refusals():
            found = self._consumer.offsets_for_times(
                {to_native(partition): time for partition, time in times_ms.items()}
            )
        return {from_native(native): entry and entry.offset for native, entry in found.items()}

    def partitions_of(self, topic: str) -> set[int]:
        return set(self._consumer.partitions_for_topic(topic) or ())

    def close(self) -> None:
        self._consumer.close()
