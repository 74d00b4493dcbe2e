"""confluent-kafka behind the interface of the scenarios."""

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message, TopicPartition

from compat.python_confluent_kafka.admin import ConfluentAdmin
from compat.python_confluent_kafka.common import (
    SILENT,
    from_natives,
    raise_refusal,
    refusals,
    to_natives,
)
from compat.python_confluent_kafka.records import known, place_of, taken_record
from compat.python_confluent_kafka.share_consumer import ConfluentShareConsumer
from compat.scenarios.python.client import (
    FETCH_WAIT_MS,
    HEARTBEAT_MS,
    LONG_TIMEOUT_SECONDS,
    SESSION_MS,
    TIMEOUT_SECONDS,
    Admin,
    Client,
    Code,
    CommitFailed,
    Committed,
    Consumer,
    Fenced,
    Partition,
    PartitionsHandler,
    Place,
    Producer,
    Record,
    Refused,
    TakenRecord,
    TransactionalProducer,
    not_offered,
)
from compat.scenarios.python.share_client import ShareConsumer

ACKS = {"none": "0", "leader": "1", "all": "all"}
RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}


class ConfluentProducer(Producer):
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._producer = confluent_kafka.Producer(dict(options))

    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        places: dict[int, Place] = {}
        errors: list[KafkaError] = []

        def note_for(number: int) -> Callable[[KafkaError | None, Message], None]:
            def note(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    places[number] = place_of(message)

            return note

        for number, record in enumerate(records):
            self._producer.produce(
                topic,
                record.value,
                key=record.key,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                partition=-1 if record.partition is None else record.partition,
                on_delivery=note_for(number),
            )
            self._producer.poll(0)
        left = self._producer.flush(LONG_TIMEOUT_SECONDS)
        for error in errors:
            raise_refusal(error)
        if left or errors:
            raise RuntimeError(f"{left} records were not delivered; errors: {errors[:3]}")
        return [places[number] for number in range(len(records))]

    def close(self) -> None:
        self._producer.flush(TIMEOUT_SECONDS)


@contextmanager
def fencing() -> Iterator[None]:
    """librdkafka says that all is over for a producer, with one of several codes."""
    try:
        yield
    except KafkaException as error:
        cause = error.args[0]
        if cause.fatal() or cause.txn_requires_abort():
            raise Fenced(cause.str()) from error
        raise_refusal(cause)
        raise


class ConfluentTransactionalProducer(ConfluentProducer, TransactionalProducer):
    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._producer.init_transactions(TIMEOUT_SECONDS)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send_offsets(self, group: str, offsets: Mapping[Partition, int], consumer: Consumer) -> None:
        assert isinstance(consumer, ConfluentConsumer)
        with fencing():
            self._producer.send_offsets_to_transaction(
                to_natives(offsets), consumer.group_metadata(), TIMEOUT_SECONDS
            )

    def commit(self) -> None:
        with fencing():
            self._producer.commit_transaction(TIMEOUT_SECONDS)

    def abort(self) -> None:
        with fencing():
            self._producer.abort_transaction(TIMEOUT_SECONDS)

    def close(self) -> None:
        with suppress(KafkaException):  # what a fenced producer has left is nobody's business
            super().close()


class ConfluentConsumer(Consumer):
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._commit_errors: list[KafkaError | None] = []
        self._consumer = confluent_kafka.Consumer({**options, "on_commit": self._note_commit})
        self._starts: dict[Partition, int] | None = None
        """Where to start partitions that are assigned, but not yet: librdkafka seeks in running ones only."""
        self._positions: dict[Partition, int] = {}

    def _note_commit(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        self._commit_errors.append(error)

    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        gained: PartitionsHandler = lambda _: None,
        lost: PartitionsHandler = lambda _: None,
    ) -> None:
        self._consumer.subscribe(
            list(topics) if pattern is None else [f"^{pattern}$"],
            on_assign=lambda _, partitions: gained(from_natives(partitions)),
            on_revoke=lambda _, partitions: lost(from_natives(partitions)),
            on_lost=lambda _, partitions: lost(from_natives(partitions)),
        )

    def assign(self, partitions: Collection[Partition]) -> None:
        self._starts = dict.fromkeys(partitions, confluent_kafka.OFFSET_INVALID)

    def _start(self) -> None:
        if self._starts is not None:
            self._consumer.assign(to_natives(self._starts))
            self._starts = None

    def poll(self, wait_seconds: float = 0.1, records_max: int = 5000) -> list[TakenRecord]:
        self._start()
        taken: list[TakenRecord] = []
        with refusals():
            # Asked for several, it would wait the whole time for the last one.
            first = self._consumer.poll(wait_seconds)
            messages = [] if first is None else [first, *self._consumer.consume(records_max - 1, 0)]
        for message in messages:
            place = place_of(message)
            partition = Partition(known(message.topic()), place.partition)
            error = message.error()
            if error is None:
                taken.append(taken_record(message))
                self._positions[partition] = place.offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._positions[partition] = place.offset
            elif error.code() == KafkaError._AUTO_OFFSET_RESET and "out of range" in error.str():
                raise Refused(Code.OFFSET_OUT_OF_RANGE, error.str())
            else:
                raise_refusal(error)
                raise KafkaException(error)
        return taken

    def seek(self, partition: Partition, offset: int) -> None:
        if self._starts is None:
            self._consumer.seek(TopicPartition(partition.topic, partition.number, offset))
        else:
            self._starts[partition] = offset

    def seek_to_beginning(self, partitions: Collection[Partition]) -> None:
        for partition in partitions:
            self.seek(partition, OFFSET_BEGINNING)

    def seek_to_end(self, partitions: Collection[Partition]) -> None:
        for partition in partitions:
            self.seek(partition, OFFSET_END)

    def position(self, partition: Partition) -> int:
        # librdkafka tells none before the first record; here, the end counts, too.
        return self._positions.get(partition, -1)

    def pause(self, partitions: Collection[Partition]) -> None:
        self._consumer.pause(to_natives(dict.fromkeys(partitions, 0)))

    def resume(self, partitions: Collection[Partition]) -> None:
        self._consumer.resume(to_natives(dict.fromkeys(partitions, 0)))

    def commit(self, offsets: Mapping[Partition, Committed] | None = None) -> None:
        try:
            if offsets is None:
                results = self._consumer.commit(asynchronous=False)
            else:
                results = self._consumer.commit(offsets=to_native_commits(offsets), asynchronous=False)
        except KafkaException as error:
            raise CommitFailed(str(error)) from error
        for result in results:
            if result.error is not None:
                raise CommitFailed(result.error.str())

    def commit_soon(self, offsets: Mapping[Partition, Committed]) -> Callable[[], bool]:
        answered_before = len(self._commit_errors)
        self._consumer.commit(offsets=to_native_commits(offsets), asynchronous=True)

        def is_confirmed() -> bool:
            answers = self._commit_errors[answered_before:]
            if answers and answers[0] is not None:
                raise KafkaException(answers[0])
            return bool(answers)

        return is_confirmed

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        with refusals():
            entries = self._consumer.committed(to_natives(dict.fromkeys(partitions, 0)), TIMEOUT_SECONDS)
        return {
            Partition(entry.topic, entry.partition): (
                Committed(entry.offset, entry.metadata or "") if entry.offset >= 0 else None
            )
            for entry in entries
        }

    def bounds(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
        found: dict[Partition, tuple[int, int]] = {}
        for partition in partitions:
            native = TopicPartition(partition.topic, partition.number)
            with refusals():
                found[partition] = self._consumer.get_watermark_offsets(native, TIMEOUT_SECONDS)
        return found

    def find_times(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int | None]:
        with refusals():
            entries = self._consumer.offsets_for_times(to_natives(times_ms), TIMEOUT_SECONDS)
        return {
            Partition(entry.topic, entry.partition): entry.offset if entry.offset >= 0 else None
            for entry in entries
        }

    def partitions_of(self, topic: str) -> set[int]:
        found = self._consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic]
        return set(found.partitions)

    def group_metadata(self) -> Any:
        """What a producer has to know of this member."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        self._consumer.close()


class ConfluentKafka(Client):
    name = "confluent-kafka"
    version = metadata.version(name)

    def producer(
        self,
        address: str,
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        linger_ms: int = 5,
        batch_bytes_max: int | None = None,
        request_bytes_max: int | None = None,
    ) -> Producer:
        options = {
            **SILENT,
            "bootstrap.servers": address,
            "acks": ACKS[acks],
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "linger.ms": linger_ms,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 1_000_000,
        }
        if batch_bytes_max is not None:
            options["batch.size"] = batch_bytes_max
        if request_bytes_max is not None:
            options["message.max.bytes"] = request_bytes_max
        return ConfluentProducer(options)

    def transactional_producer(
        self, address: str, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> TransactionalProducer:
        return ConfluentTransactionalProducer(
            {
                **SILENT,
                "bootstrap.servers": address,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 30_000),
            }
        )

    def consumer(
        self,
        address: str,
        *,
        group: str | None = None,
        reset: str = "earliest",
        auto_commit: bool = False,
        instance_id: str | None = None,
        cooperative: bool = False,
        new_protocol: bool = False,
        committed_only: bool = False,
        fetch_bytes_max: int | None = None,
        metadata_age_ms: int | None = None,
        may_create_topics: bool | None = None,
    ) -> Consumer:
        options = {
            **SILENT,
            "bootstrap.servers": address,
            "group.id": group or f"unused-{uuid.uuid4()}",
            "auto.offset.reset": RESETS[reset],
            "enable.auto.commit": auto_commit,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        }
        if new_protocol:
            options["group.protocol"] = "consumer"
        else:  # what the broker says to members by the new protocol
            options["partition.assignment.strategy"] = "cooperative-sticky" if cooperative else "range"
            options["session.timeout.ms"] = SESSION_MS
            options["heartbeat.interval.ms"] = HEARTBEAT_MS
        if instance_id is not None:
            options["group.instance.id"] = instance_id
        if fetch_bytes_max is not None:
            options["max.partition.fetch.bytes"] = fetch_bytes_max
        if metadata_age_ms is not None:
            options["topic.metadata.refresh.interval.ms"] = metadata_age_ms
        if may_create_topics is not None:
            options["allow.auto.create.topics"] = may_create_topics
        return ConfluentConsumer(options)

    def share_consumer(
        self, address: str, group: str, *, explicit: bool = False, records_max: int | None = None
    ) -> ShareConsumer:
        options: dict[str, Any] = {
            **SILENT,
            "bootstrap.servers": address,
            "group.id": group,
            "share.acknowledgement.mode": "explicit" if explicit else "implicit",
            "fetch.wait.max.ms": FETCH_WAIT_MS,
        }
        if records_max is not None:
            not_offered("its share consumer does not limit how many records the broker hands out")
        return ConfluentShareConsumer(options)

    def admin(self, address: str) -> Admin:
        return ConfluentAdmin(address)


def to_native_commits(offsets: Mapping[Partition, Committed]) -> list[TopicPartition]:
    return [
        TopicPartition(partition.topic, partition.number, committed.offset, committed.metadata)
        for partition, committed in offsets.items()
    ]
