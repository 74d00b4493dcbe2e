"""What a scenario plays on: one client, one broker, and names that nobody else uses."""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from compat.scenarios.python.client import (
    Admin,
    Client,
    Consumer,
    Partition,
    Place,
    Producer,
    Record,
    TakenRecord,
    TransactionalProducer,
)
from compat.scenarios.python.members import POLL_SECONDS, Member
from compat.scenarios.python.pipeline import Pipeline
from compat.scenarios.python.share_client import ShareConsumer
from compat.scenarios.python.stored import is_served
from compat.waiting import wait_until

PATIENCE_SECONDS = 30.0


class Stage:
    """Opens clients and closes them, last first, when the block is left."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        self._opened = ExitStack()
        self._admin: Admin | None = None

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def new_name(self, kind: str) -> str:
        return f"{kind}-{uuid.uuid4()}"

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = self.client.admin(self.address)
            self._opened.callback(self._admin.close)
        return self._admin

    def topic(
        self,
        partition_count: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
    ) -> str:
        """A new topic, once it is served."""
        topic = name or self.new_name("topic")
        self.admin.create_topic(topic, partition_count, settings)
        self.wait_until_served(topic, partition_count)
        return topic

    def wait_until_served(self, topic: str, partition_count: int) -> None:
        wait_for(
            lambda: is_served(self.address, topic, partition_count), f"the partitions of {topic} are led"
        )

    # Typed loosely: the arguments are those of ``Client``.
    def producer(self, **options: Any) -> Producer:
        producer = self.client.producer(self.address, **options)
        self._opened.callback(producer.close)
        return producer

    def transactional_producer(self, transactional_id: str, **options: Any) -> TransactionalProducer:
        producer = self.client.transactional_producer(self.address, transactional_id, **options)
        self._opened.callback(producer.close)
        return producer

    def pipeline(self, group: str, topic: str, **options: Any) -> Pipeline:
        """A member of ``group`` with a transactional id of its own."""
        identity = self.new_name("transaction")
        pipeline = self.client.pipeline(self.address, identity, group, topic, **options)
        self._opened.callback(pipeline.close)
        return pipeline

    def consumer(self, **options: Any) -> Consumer:
        consumer = self.client.consumer(self.address, **options)
        self._opened.callback(consumer.close)
        return consumer

    def share_consumer(self, group: str, **options: Any) -> ShareConsumer:
        """A member of a share group, once it subscribes."""
        consumer = self.client.share_consumer(self.address, group, **options)
        self._opened.callback(consumer.close)
        return consumer

    def member(
        self,
        group: str,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        **options: Any,
    ) -> Member:
        """A member of a group that has begun to join."""
        consumer = self.client.consumer(self.address, group=group, **options)
        member = Member(consumer, topics, pattern=pattern, poll_seconds=poll_seconds)
        self._opened.callback(member.leave)
        member.start()
        return member

    def send(self, topic: str, records: Sequence[Record], **options: Any) -> list[Place]:
        """Produce with a producer of its own."""
        with closing(self.client.producer(self.address, **options)) as producer:
            return producer.send(topic, records)

    def take(
        self,
        topic: str,
        count: int,
        *,
        partition_count: int = 1,
        patience_seconds: float = PATIENCE_SECONDS,
        **options: Any,
    ) -> list[TakenRecord]:
        """The first ``count`` records of a topic, by a consumer without a group."""
        partitions = partitions_of(topic, partition_count)
        with closing(self.client.consumer(self.address, **options)) as consumer:
            consumer.assign(partitions)
            consumer.seek_to_beginning(partitions)
            return take(consumer, count, patience_seconds=patience_seconds)


def partitions_of(topic: str, count: int) -> list[Partition]:
    return [Partition(topic, number) for number in range(count)]


def take(consumer: Consumer, count: int, *, patience_seconds: float = PATIENCE_SECONDS) -> list[TakenRecord]:
    """The next ``count`` records that the consumer gets, or more if they came together."""
    taken: list[TakenRecord] = []

    def enough() -> bool:
        taken.extend(consumer.poll(0.5))
        return len(taken) >= count

    wait_until(enough, f"{count} records are consumed", patience_seconds=patience_seconds)
    return taken


def take_nothing(consumer: Consumer, polls: int = 4) -> list[TakenRecord]:
    """What comes although nothing should, in a few polls."""
    return [record for _ in range(polls) for record in consumer.poll(0.1)]


def values(records: Collection[TakenRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def wait_for(holds: Callable[[], object], what: str, *members: Member) -> None:
    """Return when ``holds()`` is true; fail if that does not come, or if one of the members fails."""

    def holds_or_failed() -> object:
        for member in members:
            if member.failure is not None:
                raise member.failure
        return holds()

    wait_until(holds_or_failed, what, patience_seconds=PATIENCE_SECONDS)
