"""Dead letter queues: the topics that are told which records share groups have given up (KIP-1191)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import trio

from broker.errors import ErrorCode, KafkaError
from broker.network.waiting import NotYet, Waiting
from broker.share.group_settings import group_setting
from broker.share.held_partition import HeldPartition
from broker.share.in_flight import DeadLetter
from protocol.records.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    RecordBatch,
    read_batches,
)
from protocol.records.builder import append_record, assemble_batch
from protocol.records.errors import CorruptRecords, RecordsTooLarge
from protocol.records.record import Header, Record, read_records
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.metadata.image import TopicImage
    from broker.partitions.leader import Leader
    from broker.services import Services
    from storage.partition_log import Appended

ENABLED: Final = "errors.deadletterqueue.group.enable"
"""The setting by which a topic agrees to be told."""

REJECTED_TEXT: Final = "Offset rejected by client."
DELIVERED_TOO_OFTEN_TEXT: Final = "Offset delivery count exceeded the threshold."

READ_BYTES_MAX: Final = 1024 * 1024
"""How much of the records' own log is read at once, in order to copy them."""

ATTEMPTS_MAX: Final = 5
RETRY_SECONDS: Final = 1.0
"""How often a queue that nobody can write to now is tried, and after how long, which doubles each time."""

PASSING: Final = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
)
"""After these it may be different soon.  An id is unknown to a leader whose metadata is behind."""

PATIENCE_SECONDS: Final = 1.0
"""How much longer than the queue's leader, which waits for its followers, this broker waits for it."""

AT_ONCE_MAX: Final = 20
"""Ranges of records that are written to queues at the same time."""


class DeadLetterQueues:
    """Writes a record into its group's queue for each that the group has given up.

    Its headers say which record that was; key and value are the record's own if the group wants copies.  What
    cannot be written is told to the operator, and the group goes on without.
    """

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._slots = trio.CapacityLimiter(AT_ONCE_MAX)

    async def take(self, held: HeldPartition, dead: DeadLetter) -> None:
        """Write all of ``dead``, or say why that is not possible."""
        offset, failures = dead.first_offset, 0
        while offset <= dead.last_offset:
            try:
                async with self._slots:
                    offset = await self._write(held, dead, offset)
                failures = 0
                continue
            except (KafkaError, StorageError) as error:
                failures += 1
                if failures == ATTEMPTS_MAX or not _may_pass(error):
                    self._services.log.error(
                        f"records {offset} to {dead.last_offset} of {held.leader.topic}-"
                        f"{held.leader.partition}, which share group {held.key.group_id} has given up, are "
                        f"not in its dead letter queue: {error}"
                    )
                    return
            await trio.sleep(RETRY_SECONDS * 2 ** (failures - 1))

    async def _write(self, held: HeldPartition, dead: DeadLetter, offset: int) -> int:
        """Write a batch that begins with ``offset``, and return the first offset that is not in it."""
        group_id = held.key.group_id
        topic = group_setting(self._services, group_id, "errors.deadletterqueue.topic.name")
        self._check(topic)
        if topic not in self._services.image.topics:
            await self._make(topic)
        size_max = self._services.partitions.settings_of(topic).max_message_bytes
        known: Mapping[int, Record] = {}
        known_until = dead.last_offset
        if group_setting(self._services, group_id, "errors.deadletterqueue.copy.record.enable"):
            known, known_until = await self._read(held, offset, dead.last_offset, size_max)
        batch, next_offset = _build(
            held, dead, known, range(offset, known_until + 1), size_max, self._services.clock.now_ms()
        )
        await self._send(topic, held.leader.partition, batch)
        return next_offset

    # The topic

    def _check(self, topic: str) -> None:
        """Raise ``KafkaError`` if this topic is not to be written to, or not to be made."""
        services = self._services
        prefix = services.config.get("errors.deadletterqueue.topic.name.prefix")
        fault = None
        if not topic:
            fault = "the group names no topic for it any more"
        elif topic.startswith("__"):
            fault = f"its name {topic} begins like that of an internal topic"
        elif topic in services.image.topics:
            if not services.partitions.settings_of(topic)[ENABLED]:
                fault = f"topic {topic} has not {ENABLED}=true"
        elif not services.config.get("errors.deadletterqueue.auto.create.topics.enable"):
            fault = (
                f"there is no topic {topic}, and errors.deadletterqueue.auto.create.topics.enable is false"
            )
        if fault is None and not topic.startswith(prefix):
            fault = f"topic {topic} does not begin with errors.deadletterqueue.topic.name.prefix={prefix}"
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, fault)

    async def _make(self, topic: str) -> None:
        made: Waiting[None] = Waiting()

        def told(error: KafkaError | None) -> None:
            if error is None:
                made.answer(None)
            else:
                made.fail(error)

        settings = {ENABLED: "true", "message.timestamp.type": "CreateTime"}
        self._services.automatic_topics.ensure(topic, told, settings)
        await made.wait()

    # The records

    async def _read(
        self, held: HeldPartition, first_offset: int, last_offset: int, size_max: int
    ) -> tuple[Mapping[int, Record], int]:
        """Records as they are in the log, about ``size_max`` bytes; and up to which offset all are known.

        What cannot be read is told of without its key and value.
        """
        log = held.leader.log
        found: dict[int, Record] = {}
        next_offset = first_offset
        size_bytes = 0
        try:
            located = log.read(first_offset, READ_BYTES_MAX, upper=log.high_watermark)
            content = b"" if located is None else await self._services.run_blocking(located.read)
            for batch in read_batches(content):
                for record in _records_of(batch, size_max):
                    if not first_offset <= record.offset <= last_offset:
                        continue
                    size_bytes += len(record.key or b"") + len(record.value or b"")
                    if size_bytes > size_max and found:
                        return found, record.offset - 1
                    found[record.offset] = record
                next_offset = max(next_offset, batch.next_offset)
        except (CorruptRecords, StorageError) as error:
            self._services.log.warn(
                f"records from {next_offset} on of {held.leader.topic}-{held.leader.partition} go to a dead "
                f"letter queue without their contents: {error}"
            )
            next_offset = first_offset
        return found, last_offset if next_offset == first_offset else min(next_offset - 1, last_offset)

    # Writing

    async def _send(self, topic: str, partition: int, batch: bytearray) -> None:
        """Write a batch about records of ``partition`` to whoever leads that partition of the queue."""
        image = self._services.image
        found = image.topics.get(topic)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        index = partition % len(found.partitions)
        leader = found.partitions[index].leader
        if leader == self._services.node_id:
            await self._append(await self._leader(topic, index), batch)
        elif image.is_alive(leader):
            await self._produce(leader, found, index, batch)
        else:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def _leader(self, topic: str, index: int) -> "Leader":
        partitions = self._services.partitions
        while partitions.missing:
            try:
                partitions.require_made([(topic, index)])
                break
            except NotYet as not_yet:
                await not_yet.waiting.wait()
        return partitions.leader(topic, index)

    async def _append(self, queue: "Leader", batch: bytearray) -> None:
        """Returns when the batch is safe; like any client's it may be changed or refused."""
        written: Waiting[None] = Waiting()

        def appended(outcome: "Appended | Exception") -> None:
            if isinstance(outcome, Exception):
                written.fail(outcome)
            else:
                queue.when_committed(outcome.last_offset + 1, committed)

        def committed(error: KafkaError | None) -> None:
            if error is None:
                written.answer(None)
            else:
                written.fail(error)

        queue.append_in_turn(RecordBatch(batch), self._services.clock.now_ms(), appended, check_aside=False)
        await written.wait()

    async def _produce(self, leader: int, topic: "TopicImage", index: int, batch: bytearray) -> None:
        """The same at another broker."""
        from broker.network.node_client import NodeUnreachable
        from protocol.messages.produce import (
            PartitionProduceData,
            ProduceRequest,
            ProduceResponse,
            TopicProduceData,
        )

        timeout_ms = self._services.config.get("request.timeout.ms")
        data = PartitionProduceData(index=index, records=bytes(batch))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=[data])],
        )
        try:
            answer: ProduceResponse = await self._services.nodes.ask(
                leader, request, timeout_seconds=timeout_ms / 1000 + PATIENCE_SECONDS
            )
        except NodeUnreachable as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"broker {leader}: {error}") from error
        result = answer.responses[0].partition_responses[0]
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), result.error_message)


def _may_pass(error: KafkaError | StorageError) -> bool:
    return isinstance(error, KafkaError) and error.code in PASSING


def _records_of(batch: RecordBatch, size_max: int) -> Iterable[Record]:
    """The records of a batch; none of one that would not fit into the queue when it is decompressed."""
    try:
        payload = bytes(batch.payload(size_max))
    except RecordsTooLarge:
        return ()
    return read_records(payload, batch.record_count, batch.base_offset, batch.base_timestamp)


def _build(
    held: HeldPartition,
    dead: DeadLetter,
    known: Mapping[int, Record],
    offsets: range,
    size_max: int,
    now_ms: int,
) -> tuple[bytearray, int]:
    """A batch that tells of these offsets, of one at least, and the first that it has no room for."""
    section = bytearray()
    count = 0
    for offset in offsets:
        record = known.get(offset)
        end = len(section)
        key, value = (None, None) if record is None else (record.key, record.value)
        append_record(section, count, 0, key, value, _headers(held, dead, offset))
        if count and RECORD_BATCH_OVERHEAD + len(section) > size_max:
            del section[end:]
            break
        count += 1
    batch = assemble_batch(
        section,
        base_offset=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        attributes=0,
        level=None,
        last_offset_delta=count - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=count,
    )
    return batch, offsets[0] + count


def _headers(held: HeldPartition, dead: DeadLetter, offset: int) -> list[Header]:
    texts = {
        "topic": held.leader.topic,
        "partition": str(held.leader.partition),
        "offset": str(offset),
        "group": held.key.group_id,
        "delivery.count": str(dead.delivery_count),
        "message": REJECTED_TEXT if dead.is_rejected else DELIVERED_TOO_OFTEN_TEXT,
    }
    return [(f"__dlq.errors.{name}".encode(), text.encode()) for name, text in texts.items()]
