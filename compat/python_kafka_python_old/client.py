"""An old kafka-python behind the interface of the scenarios."""

from collections.abc import Collection, Mapping
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor

from compat.python_kafka_python.common import (
    TIMEOUT_MS,
    KafkaPythonConsumer,
    KafkaPythonProducer,
    consumer_options,
    from_native,
    producer_options,
    refusals,
    to_native,
)
from compat.scenarios.python.client import (
    Admin,
    Client,
    Committed,
    Consumer,
    GroupDescription,
    MemberDescription,
    Partition,
    Producer,
    Refused,
    not_offered,
)


class OldConsumer(KafkaPythonConsumer):
    def committed(self, partitions: Collection[Partition]) -> dict[Partition, Committed | None]:
        found: dict[Partition, Committed | None] = {}
        for partition in partitions:
            with refusals():
                offset = self._consumer.committed(to_native(partition))
            found[partition] = None if offset is None else Committed(offset, metadata=None)
        return found


class OldAdmin(Admin):
    def __init__(self, address: str) -> None:
        self._address = address
        self._admin = KafkaAdminClient(bootstrap_servers=address)

    def create_topic(
        self,
        name: str,
        partition_count: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        replication_factor: int = 1,
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, partition_count, replication_factor, topic_configs=dict(settings or {}))
        with refusals():
            self._admin.create_topics([topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        with refusals():
            self._admin.delete_topics([name], timeout_ms=TIMEOUT_MS)

    def list_topics(self) -> set[str]:
        # The admin client leaves it to the consumer.
        consumer = KafkaConsumer(bootstrap_servers=self._address)
        try:
            return set(consumer.topics())
        finally:
            consumer.close()

    def create_partitions(self, topic: str, total_count: int) -> None:
        with refusals():
            self._admin.create_partitions({topic: NewPartitions(total_count)}, timeout_ms=TIMEOUT_MS)

    def describe_settings(self, kind: str, name: str) -> dict[str, str | None]:
        answer = self._admin.describe_configs([ConfigResource(ConfigResourceType[kind.upper()], name)])
        ((error, text, _, _, entries),) = answer.resources
        if error:
            raise Refused(error, text)
        return {entry[0]: entry[1] for entry in entries}

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        answer = self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))])
        ((error, text, _, _),) = answer.resources
        if error:
            raise Refused(error, text)

    def list_groups(self) -> set[str]:
        return {group for group, _ in self._admin.list_consumer_groups()}

    def describe_group(self, group: str) -> GroupDescription:
        with refusals():
            (answer,) = self._admin.describe_consumer_groups([group])
        _, _, state, _, protocol, members = answer
        described = [
            MemberDescription(member_id, client_id, host, instance_id=None, assigned=None)
            for member_id, client_id, host, _, _ in members
        ]
        return GroupDescription(state, protocol, described)

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        with refusals():
            found: dict[Any, Any] = self._admin.list_consumer_group_offsets(group)
        return {
            from_native(native): Committed(entry.offset, entry.metadata) for native, entry in found.items()
        }

    def close(self) -> None:
        self._admin.close()


class OldKafkaPython(Client):
    name = "kafka-python (old)"
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
        if idempotent:
            not_offered("its producer is never idempotent")
        if codec == "zstd":
            not_offered("it does not know zstd")
        options = producer_options(
            acks=acks,
            codec=codec,
            linger_ms=linger_ms,
            batch_bytes_max=batch_bytes_max,
            request_bytes_max=request_bytes_max,
        )
        return KafkaPythonProducer(address, options)

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
        if instance_id is not None:
            not_offered("it has no static members")
        if cooperative:
            not_offered("it has no cooperative assignor")
        if new_protocol:
            not_offered("it does not know the consumer groups of KIP-848")
        if committed_only:
            not_offered("it has no isolation level")
        if may_create_topics is False:
            not_offered("its requests for metadata always create topics")
        options = consumer_options(
            group=group,
            reset=reset,
            auto_commit=auto_commit,
            fetch_bytes_max=fetch_bytes_max,
            metadata_age_ms=metadata_age_ms,
        )
        options["partition_assignment_strategy"] = [RangePartitionAssignor]
        return OldConsumer(address, options)

    def admin(self, address: str) -> Admin:
        return OldAdmin(address)
