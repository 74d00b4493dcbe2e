"""aiokafka behind the interface of the scenarios."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError, ProducerFenced

from compat.python_aiokafka.admin import AioKafkaAdmin
from compat.python_aiokafka.loop import run
from compat.scenarios.python.client import (
    FETCH_WAIT_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    Admin,
    Client,
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

ACKS = {"none": 0, "leader": 1, "all": "all"}


class AioKafkaProducer(Producer):
    def __init__(self, options: Mapping[str, Any]) -> None:
        self._producer = run(started_producer(options))

    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        return run(self._send(topic, records))

    async def _send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        sent = [
            await self._producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
            for record in records
        ]
        # Without acknowledgements there are no results either.
        results = [result for result in await asyncio.gather(*sent) if result is not None]
        return [Place(result.partition, result.offset) for result in results]

    def close(self) -> None:
        run(self._producer.stop())


class AioKafkaTransactionalProducer(AioKafkaProducer, TransactionalProducer):
    def begin(self) -> None:
        run(self._producer.begin_transaction())

    def send_offsets(self, group: str, offsets: Mapping[Partition, int], consumer: Consumer) -> None:
        natives = {to_native(partition): offset for partition, offset in offsets.items()}
        with fencing():
            run(self._producer.send_offsets_to_transaction(natives, group))

    def commit(self) -> None:
        with fencing():
            run(self._producer.commit_transaction())

    def abort(self) -> None:
        with fencing():
            run(self._producer.abort_transaction())

    def close(self) -> None:
        with suppress(KafkaError, Refused):  # what a fenced producer has left is nobody's business
            super().close()


@contextmanager
def fencing() -> Iterator[None]:
    try:
        yield
    except (ProducerFenced, Refused) as error:
        raise Fenced(str(error)) from error


async def started_producer(options: Mapping[str, Any]) -> Any:
    producer = AIOKafkaProducer(**options)
    await producer.start()
    return producer


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """aiokafka rebalances in the background; what it says waits until the consumer's owner polls."""

    def __init__(
        self, gained: PartitionsHandler, lost: PartitionsHandler, owner_is_busy: asyncio.Lock
    ) -> None:
        self._gained = gained
        self._lost = lost
        self._owner_is_busy = owner_is_busy
        self.revocation_count = 0

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        async with self._owner_is_busy:
            self.revocation_count += 1
            self._lost({from_native(partition) for partition in revoked})

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        async with self._owner_is_busy:
            self._gained({from_native(partition) for partition in assigned})


class AioKafkaConsumer(Consumer):
    """``_owner_is_busy`` is held while the owner does something else than to poll or close."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._owner_is_busy = asyncio.Lock()
        self._listener: Listener | None = None
        self._address: str = options["bootstrap_servers"]
        self._consumer = run(self._start(options))

    async def _start(self, options: Mapping[str, Any]) -> Any:
        await self._owner_is_busy.acquire()
        consumer = AIOKafkaConsumer(**options)
        await consumer.start()
        return consumer

    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        gained: PartitionsHandler = lambda _: None,
        lost: PartitionsHandler = lambda _: None,
    ) -> None:
        self._listener = Listener(gained, lost, self._owner_is_busy)
        run(self._subscribe(topics, pattern, self._listener))

    async def _subscribe(self, topics: Sequence[str], pattern: str | None, listener: Listener) -> None:
        if pattern is None:
            self._consumer.subscribe(topics=list(topics), listener=listener)
        else:
            self._consumer.subscribe(pattern=f"^{pattern}$", listener=listener)

    def assign(self, partitions: Collection[Partition]) -> None:
        async def assign() -> None:
            self._consumer.assign([to_native(partition) for partition in partitions])

        run(assign())

    def poll(self, wait_seconds: float = 0.1, records_max: int = 5000) -> list[TakenRecord]:
        return run(self._poll(wait_seconds, records_max))

    async def _poll(self, wait_seconds: float, records_max: int) -> list[TakenRecord]:
        self._owner_is_busy.release()
        revocation_count = 0
        try:
            batches = await self._consumer.getmany(
                timeout_ms=int(wait_seconds * 1000), max_records=records_max
            )
            revocation_count = self._revocation_count
        finally:
            await self._owner_is_busy.acquire()
        if self._revocation_count != revocation_count:
            # The partitions were taken away while we waited for the lock: their records come again.
            return []
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

    @property
    def _revocation_count(self) -> int:
        return self._listener.revocation_count if self._listener else 0

    def seek(self, partition: Partition, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(to_native(partition), offset)

        run(seek())

    def seek_to_beginning(self, partitions: Collection[Partition]) -> None:
        run(self._consumer.seek_to_beginning(*(to_native(partition) for partition in partitions)))

    def seek_to_end(self, partitions: Collection[Partition]) -> None:
        run(self._consumer.seek_to_end(*(to_native(partition) for partition in partitions)))

    def position(self, partition: Partition) -> int:
        offset: int = run(self._consumer.position(to_native(partition)))
        return offset

    def pause(self, partitions: Collection[Partition]) -> None:
        async def pause() -> None:
            self._consumer.pause(*(to_native(partition) for partition in partitions))

        run(pause())

    def resume(self, partitions: Collection[Partition]) -> None:
        async def resume() -> None:
            self._consumer.resume(*(to_native(partition) for partition in partitions))

        run(resume())

    def commit(self, offsets: Mapping[Partition, Committed] | None = None) -> None:
        try:
            run(self._consumer.commit(None if offsets is None else to_native_commits(offsets)))
        except KafkaError as error:
            raise CommitFailed(str(error)) from error

    def commit_soon(self, offsets: Mapping[Partition, Committed]) -> Callable[[], bool]:
        async def begin() -> asyncio.Task[None]:
            return asyncio.create_task(self._consumer.commit(to_native_commits(offsets)))

        task = run(begin())

        def is_confirmed() -> bool:
            if task.done():
                task.result()
            return task.done()

        return is_confirmed

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        found: dict[Partition, Committed | None] = {}
        for partition in partitions:
            offset = run(self._consumer.committed(to_native(partition)))
            found[partition] = None if offset is None else Committed(offset, metadata=None)
        return found

    def bounds(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
        natives = [to_native(partition) for partition in partitions]
        first = run(self._consumer.beginning_offsets(natives))
        end = run(self._consumer.end_offsets(natives))
        return {from_native(native): (first[native], end[native]) for native in natives}

    def find_times(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int | None]:
        asked = {to_native(partition): time for partition, time in times_ms.items()}
        found = run(self._consumer.offsets_for_times(asked))
        return {from_native(native): entry and entry.offset for native, entry in found.items()}

    def partitions_of(self, topic: str) -> set[int]:
        # The consumer knows topics that it is assigned; the admin client asks.
        admin = AioKafkaAdmin(self._address)
        try:
            return {partition.number for partition in admin.describe_topic(topic)}
        finally:
            admin.close()

    def close(self) -> None:
        run(self._close())

    async def _close(self) -> None:
        self._owner_is_busy.release()
        await self._consumer.stop()


class AioKafka(Client):
    name = "aiokafka"
    version = aiokafka.__version__

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
        options: dict[str, Any] = {
            "bootstrap_servers": address,
            "acks": ACKS[acks],
            "compression_type": None if codec == "none" else codec,
            "enable_idempotence": idempotent,
            "linger_ms": linger_ms,
        }
        if batch_bytes_max is not None:
            options["max_batch_size"] = batch_bytes_max
        if request_bytes_max is not None:
            options["max_request_size"] = request_bytes_max
        return AioKafkaProducer(options)

    def transactional_producer(
        self, address: str, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> TransactionalProducer:
        return AioKafkaTransactionalProducer(
            {
                "bootstrap_servers": address,
                "transactional_id": transactional_id,
                "transaction_timeout_ms": timeout_ms,
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
        if cooperative:
            not_offered("it has no cooperative assignor")
        if new_protocol:
            not_offered("it does not know the consumer groups of KIP-848")
        if may_create_topics is False:
            not_offered("its requests for a topic's metadata always create it")
        options: dict[str, Any] = {
            "bootstrap_servers": address,
            "group_id": group,
            "group_instance_id": instance_id,
            "auto_offset_reset": reset,
            "enable_auto_commit": auto_commit,
            "fetch_max_wait_ms": FETCH_WAIT_MS,
            "isolation_level": "read_committed" if committed_only else "read_uncommitted",
            "partition_assignment_strategy": [RangePartitionAssignor],
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
        }
        if fetch_bytes_max is not None:
            options["max_partition_fetch_bytes"] = fetch_bytes_max
        if metadata_age_ms is not None:
            options["metadata_max_age_ms"] = metadata_age_ms
        return AioKafkaConsumer(options)

    def admin(self, address: str) -> Admin:
        return AioKafkaAdmin(address)


def to_native(partition: Partition) -> Any:
    return TopicPartition(partition.topic, partition.number)


def from_native(partition: Any) -> Partition:
    return Partition(partition.topic, partition.partition)


def to_native_commits(offsets: Mapping[Partition, Committed]) -> dict[Any, tuple[int, str]]:
    return {
        to_native(partition): (committed.offset, committed.metadata or "")
        for partition, committed in offsets.items()
    }
