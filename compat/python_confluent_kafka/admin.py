"""confluent-kafka's admin client behind the interface of the scenarios."""

from collections.abc import Collection, Mapping

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from compat.python_confluent_kafka.common import SILENT, from_natives, raise_first, result_of, to_natives
from compat.scenarios.python.client import (
    TIMEOUT_SECONDS,
    Admin,
    Cluster,
    Committed,
    Found,
    GroupDescription,
    MemberDescription,
    Partition,
    PartitionDescription,
)

STATES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}


class ConfluentAdmin(Admin):
    def __init__(self, address: str) -> None:
        self._admin = AdminClient({**SILENT, "bootstrap.servers": address})

    def create_topic(
        self,
        name: str,
        partition_count: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        replication_factor: int = 1,
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, partition_count, replication_factor, config=dict(settings or {}))
        result_of(self._admin.create_topics([topic], validate_only=validate_only)[name])

    def delete_topic(self, name: str) -> None:
        result_of(self._admin.delete_topics([name])[name])

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics)

    def describe_topic(self, name: str) -> list[PartitionDescription]:
        found = result_of(self._admin.describe_topics(TopicCollection([name]))[name])
        return [
            PartitionDescription(
                number=partition.id,
                leader=partition.leader.id,
                replicas=[node.id for node in partition.replicas],
                in_sync=[node.id for node in partition.isr],
            )
            for partition in found.partitions
        ]

    def create_partitions(self, topic: str, total_count: int) -> None:
        result_of(self._admin.create_partitions([NewPartitions(topic, total_count)])[topic])

    def describe_cluster(self) -> Cluster:
        found = result_of(self._admin.describe_cluster())
        brokers = {node.id: f"{node.host}:{node.port}" for node in found.nodes}
        return Cluster(found.cluster_id, found.controller.id, brokers)

    def describe_settings(self, kind: str, name: str) -> dict[str, str | None]:
        resource = ConfigResource(kind, name)
        found = result_of(self._admin.describe_configs([resource])[resource])
        return {setting: entry.value for setting, entry in found.items()}

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        resource = ConfigResource("topic", topic, set_config=dict(settings))
        result_of(self._admin.alter_configs([resource])[resource])

    def change_settings(
        self,
        kind: str,
        name: str,
        *,
        put: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        append: Mapping[str, str] | None = None,
    ) -> None:
        changes: list[tuple[str, str | None, AlterConfigOpType]] = [
            *((setting, value, AlterConfigOpType.SET) for setting, value in (put or {}).items()),
            *((setting, None, AlterConfigOpType.DELETE) for setting in remove),
            *((setting, value, AlterConfigOpType.APPEND) for setting, value in (append or {}).items()),
        ]
        entries = [
            ConfigEntry(setting, value, incremental_operation=operation)
            for setting, value, operation in changes
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        result_of(self._admin.incremental_alter_configs([resource])[resource])

    def list_groups(self) -> set[str]:
        found = result_of(self._admin.list_consumer_groups())
        if found.errors:
            raise found.errors[0]
        return {group.group_id for group in found.valid}

    def describe_group(self, group: str) -> GroupDescription:
        found = result_of(self._admin.describe_consumer_groups([group])[group])
        members = [
            MemberDescription(
                member_id=member.member_id,
                client_id=member.client_id,
                host=member.host,
                instance_id=member.group_instance_id,
                assigned=from_natives(member.assignment.topic_partitions),
            )
            for member in found.members
        ]
        return GroupDescription(STATES[found.state], found.partition_assignor, members)

    def delete_group(self, group: str) -> None:
        result_of(self._admin.delete_consumer_groups([group])[group])

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        asked = [ConsumerGroupTopicPartitions(group)]
        found = result_of(self._admin.list_consumer_group_offsets(asked)[group])
        raise_first(found.topic_partitions)
        return {
            Partition(entry.topic, entry.partition): Committed(entry.offset, entry.metadata or "")
            for entry in found.topic_partitions
        }

    def alter_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        asked = [ConsumerGroupTopicPartitions(group, to_natives(offsets))]
        raise_first(result_of(self._admin.alter_consumer_group_offsets(asked)[group]).topic_partitions)

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        return {
            Partition(native.topic, native.partition): result_of(future).low_watermark
            for native, future in self._admin.delete_records(to_natives(before)).items()
        }

    def find_offsets(self, partition: Partition) -> dict[str, Found]:
        specs = {
            "earliest": OffsetSpec.earliest(),  # type: ignore[no-untyped-call]
            "latest": OffsetSpec.latest(),  # type: ignore[no-untyped-call]
            "max-timestamp": OffsetSpec.max_timestamp(),  # type: ignore[no-untyped-call]
        }
        native = TopicPartition(partition.topic, partition.number)
        found: dict[str, Found] = {}
        for name, spec in specs.items():
            (future,) = self._admin.list_offsets({native: spec}).values()
            entry = result_of(future)
            found[name] = Found(entry.offset, entry.timestamp)
        return found

    def close(self) -> None:
        """Nothing to do: the connections go with the object."""
