"""A library of another language behind the interface of the scenarios."""

import base64
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from compat.scenarios.python.client import (
    Admin,
    Client,
    Committed,
    Consumer,
    Partition,
    PartitionsHandler,
    Place,
    Producer,
    Record,
    TakenRecord,
    TransactionalProducer,
)
from compat.scenarios.python.share_client import ShareConsumer, SharedRecord
from compat.scenarios.remote.admin import RemoteAdmin
from compat.scenarios.remote.process import RemoteObject, RemoteProcess


class RemoteProducer(RemoteObject, Producer):
    def send(self, topic: str, records: Sequence[Record]) -> list[Place]:
        places = self.call("send", topic=topic, records=[record_out(record) for record in records])
        return [Place(*place) for place in places]

    def close(self) -> None:
        self.call("close")


class RemoteTransactionalProducer(RemoteProducer, TransactionalProducer):
    def begin(self) -> None:
        self.call("begin")

    def send_offsets(self, group: str, offsets: Mapping[Partition, int], consumer: Consumer) -> None:
        assert isinstance(consumer, RemoteConsumer)
        self.call("send_offsets", group=group, offsets=list(offsets.items()), consumer=consumer.target)

    def commit(self) -> None:
        self.call("commit")

    def abort(self) -> None:
        self.call("abort")


class RemoteConsumer(RemoteObject, Consumer):
    def __init__(self, process: RemoteProcess, target: int) -> None:
        super().__init__(process, target)
        self._gained: PartitionsHandler = lambda _: None
        self._lost: PartitionsHandler = lambda _: None

    def note(self, events: list[tuple[str, list[tuple[str, int]]]]) -> None:
        for kind, partitions in events:
            handler = self._gained if kind == "gained" else self._lost
            handler({Partition(*partition) for partition in partitions})

    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        gained: PartitionsHandler = lambda _: None,
        lost: PartitionsHandler = lambda _: None,
    ) -> None:
        self._gained, self._lost = gained, lost
        self.call("subscribe", topics=list(topics), pattern=pattern)

    def assign(self, partitions: Collection[Partition]) -> None:
        self.call("assign", partitions=list(partitions))

    def poll(self, wait_seconds: float = 0.1, records_max: int = 5000) -> list[TakenRecord]:
        records = self.call("poll", wait_ms=round(1000 * wait_seconds), records_max=records_max)
        return [record_in(record) for record in records]

    def seek(self, partition: Partition, offset: int) -> None:
        self.call("seek", partition=partition, offset=offset)

    def seek_to_beginning(self, partitions: Collection[Partition]) -> None:
        self.call("seek_to_beginning", partitions=list(partitions))

    def seek_to_end(self, partitions: Collection[Partition]) -> None:
        self.call("seek_to_end", partitions=list(partitions))

    def position(self, partition: Partition) -> int:
        return int(self.call("position", partition=partition))

    def pause(self, partitions: Collection[Partition]) -> None:
        self.call("pause", partitions=list(partitions))

    def resume(self, partitions: Collection[Partition]) -> None:
        self.call("resume", partitions=list(partitions))

    def commit(self, offsets: Mapping[Partition, Committed] | None = None) -> None:
        self.call("commit", offsets=None if offsets is None else list(offsets.items()))

    def commit_soon(self, offsets: Mapping[Partition, Committed]) -> Callable[[], bool]:
        number = self.call("commit_soon", offsets=list(offsets.items()))
        return lambda: bool(self.call("is_confirmed", commit=number))

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        found = self.call("committed", partitions=list(partitions))
        return {Partition(*key): None if each is None else Committed(*each) for key, each in found}

    def bounds(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
        found = self.call("bounds", partitions=list(partitions))
        return {Partition(*key): (first, end) for key, (first, end) in found}

    def find_times(self, times_ms: Mapping[Partition, int]) -> dict[Partition, int | None]:
        found = self.call("find_times", times=list(times_ms.items()))
        return {Partition(*key): offset for key, offset in found}

    def partitions_of(self, topic: str) -> set[int]:
        return set(self.call("partitions_of", topic=topic))

    def close(self) -> None:
        self.call("close")


class RemoteShareConsumer(RemoteObject, ShareConsumer):
    def subscribe(self, topics: Sequence[str]) -> None:
        self.call("subscribe", topics=list(topics))

    def poll(self, wait_seconds: float = 0.1) -> list[SharedRecord]:
        records = self.call("poll", wait_ms=round(1000 * wait_seconds))
        return [SharedRecord(record_in(record), record["delivery_count"]) for record in records]

    def acknowledge(self, record: TakenRecord, how: str) -> None:
        partition = Partition(record.topic, record.place.partition)
        self.call("acknowledge", partition=partition, offset=record.place.offset, how=how)

    def renew(self, records: Sequence[TakenRecord]) -> None:
        places = [(Partition(each.topic, each.place.partition), each.place.offset) for each in records]
        self.call("renew", records=places)

    def commit(self) -> None:
        self.call("commit")

    def close(self) -> None:
        self.call("close")


class RemoteClient(Client):
    """Speaks with a program that has been started."""

    def __init__(self, process: RemoteProcess) -> None:
        self.name = process.client
        self.version = process.version
        self.process = process
        self.library = RemoteObject(process, 0)

    def _open(
        self, operation: str, like: Callable[..., Any], address: str, options: dict[str, Any], **more: Any
    ) -> int:
        """The number of a new object, opened with all that ``like`` takes, and ``more``."""
        given = inspect.signature(like).bind(self, address, **options)
        given.apply_defaults()
        given.arguments.pop("self")
        return int(self.library.call(operation, **given.arguments, **more))

    # Typed loosely: the arguments are those of ``Client``.
    def producer(self, address: str, **options: Any) -> Producer:
        return RemoteProducer(self.process, self._open("producer", Client.producer, address, options))

    def transactional_producer(
        self, address: str, transactional_id: str, **options: Any
    ) -> TransactionalProducer:
        options["transactional_id"] = transactional_id
        opened = self._open("transactional_producer", Client.transactional_producer, address, options)
        return RemoteTransactionalProducer(self.process, opened)

    def consumer(self, address: str, **options: Any) -> Consumer:
        return RemoteConsumer(self.process, self._open("consumer", Client.consumer, address, options))

    def share_consumer(self, address: str, group: str, **options: Any) -> ShareConsumer:
        options["group"] = group
        opened = self._open("share_consumer", Client.share_consumer, address, options)
        return RemoteShareConsumer(self.process, opened)

    def admin(self, address: str) -> Admin:
        return RemoteAdmin(self.process, self._open("admin", Client.admin, address, {}))


def bytes_out(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def bytes_in(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def record_out(record: Record) -> dict[str, Any]:
    return {
        "key": bytes_out(record.key),
        "value": bytes_out(record.value),
        "headers": [(name, bytes_out(value)) for name, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
        "partition": record.partition,
    }


def record_in(fields: dict[str, Any]) -> TakenRecord:
    return TakenRecord(
        topic=fields["topic"],
        place=Place(fields["partition"], fields["offset"]),
        key=bytes_in(fields["key"]),
        value=bytes_in(fields["value"]),
        headers=[(name, bytes_in(value)) for name, value in fields["headers"]],
        timestamp_ms=fields["timestamp_ms"],
    )
