"""kafka-python behind the interface of the scenarios."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import BrokerResponseError, ProducerFencedError

from compat.python_kafka_python.admin import KafkaPythonAdmin
from compat.python_kafka_python.common import (
    KafkaPythonConsumer,
    KafkaPythonProducer,
    consumer_options,
    producer_options,
    refusals,
    to_native,
    to_native_offsets,
)
from compat.python_kafka_python.sockets import close_forgotten_sockets
from compat.scenarios.python.client import (
    Admin,
    Client,
    Committed,
    Consumer,
    Fenced,
    Partition,
    PartitionsHandler,
    Producer,
    TransactionalProducer,
    not_offered,
)

close_forgotten_sockets()


class NewConsumer(KafkaPythonConsumer):
    def subscribe(
        self,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        gained: PartitionsHandler = lambda _: None,
        lost: PartitionsHandler = lambda _: None,
    ) -> None:
        super().subscribe(topics, pattern=pattern, gained=gained, lost=lost)
        # A member that joins before it knows the topic joins again when it does; that rebalance is forgotten
        # when a poll ends in the middle of it (3.0.12).
        for topic in topics:
            self._consumer.partitions_for_topic(topic)

    def group_metadata(self) -> Any:
        """What a producer has to know of this member."""
        return self._consumer.group_metadata()

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        found: dict[Partition, Committed | None] = {}
        for partition in partitions:
            with refusals():
                entry: Any = self._consumer.committed(to_native(partition), metadata=True)
            found[partition] = entry and Committed(entry.offset, entry.metadata)
        return found


class KafkaPythonTransactionalProducer(KafkaPythonProducer, TransactionalProducer):
    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        super().__init__(address, options)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send_offsets(self, group: str, offsets: Mapping[Partition, int], consumer: Consumer) -> None:
        assert isinstance(consumer, NewConsumer)
        natives = to_native_offsets({each: Committed(offset) for each, offset in offsets.items()})
        with fencing():
            self._producer.send_offsets_to_transaction(natives, consumer.group_metadata())

    def commit(self) -> None:
        with fencing():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with fencing():
            self._producer.abort_transaction()


@contextmanager
def fencing() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, BrokerResponseError) as error:
        raise Fenced(str(error)) from error


class KafkaPython(Client):
    name = "kafka-python"
    version = kafka.__version__

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
        options = producer_options(
            acks=acks,
            codec=codec,
            linger_ms=linger_ms,
            batch_bytes_max=batch_bytes_max,
            request_bytes_max=request_bytes_max,
        )
        return KafkaPythonProducer(address, {**options, "enable_idempotence": idempotent})

    def transactional_producer(
        self, address: str, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> TransactionalProducer:
        return KafkaPythonTransactionalProducer(
            address, {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
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
        if new_protocol:
            not_offered("it does not know the consumer groups of KIP-848")
        options = consumer_options(
            group=group,
            reset=reset,
            auto_commit=auto_commit,
            fetch_bytes_max=fetch_bytes_max,
            metadata_age_ms=metadata_age_ms,
        )
        assignor = CooperativeStickyAssignor if cooperative else RangePartitionAssignor
        options["partition_assignment_strategy"] = [assignor]
        options["group_instance_id"] = instance_id
        options["isolation_level"] = "read_committed" if committed_only else "read_uncommitted"
        if may_create_topics is not None:
            options["allow_auto_create_topics"] = may_create_topics
        return NewConsumer(address, options)

    def admin(self, address: str) -> Admin:
        return KafkaPythonAdmin(address)
