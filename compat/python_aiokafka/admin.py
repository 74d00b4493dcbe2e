"""aiokafka's admin client behind the interface of the scenarios."""

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource

from compat.python_aiokafka.loop import run
from compat.scenarios.python.client import (
    Admin,
    Cluster,
    Committed,
    GroupDescription,
    MemberDescription,
    Partition,
    PartitionDescription,
    Refused,
)


class AioKafkaAdmin(Admin):
    def __init__(self, address: str) -> None:
        self._admin = run(started_admin(address))

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
        answer = run(self._admin.create_topics([topic], validate_only=validate_only))
        raise_errors((code, text) for _, code, text in answer.topic_errors)

    def delete_topic(self, name: str) -> None:
        answer = run(self._admin.delete_topics([name]))
        raise_errors((code, "") for _, code in answer.topic_error_codes)

    def list_topics(self) -> set[str]:
        return set(run(self._admin.list_topics()))

    def describe_topic(self, name: str) -> list[PartitionDescription]:
        (topic,) = run(self._admin.describe_topics([name]))
        raise_errors([(topic["error_code"], "")])
        described = [
            PartitionDescription(
                number=partition["partition"],
                leader=partition["leader"],
                replicas=list(partition["replicas"]),
                in_sync=list(partition["isr"]),
            )
            for partition in topic["partitions"]
        ]
        return sorted(described)

    def create_partitions(self, topic: str, total_count: int) -> None:
        run(self._admin.create_partitions({topic: NewPartitions(total_count)}))

    def describe_cluster(self) -> Cluster:
        found = run(self._admin.describe_cluster())
        brokers = {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in found["brokers"]}
        return Cluster(found["cluster_id"], found["controller_id"], brokers)

    def describe_settings(self, kind: str, name: str) -> dict[str, str | None]:
        (answer,) = run(self._admin.describe_configs([ConfigResource(kind, name)]))
        ((code, text, _, _, entries),) = answer.resources
        raise_errors([(code, text)])
        return {entry[0]: entry[1] for entry in entries}

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        (answer,) = run(self._admin.alter_configs([ConfigResource("topic", topic, dict(settings))]))
        raise_errors((code, text) for code, text, _, _ in answer.resources)

    def list_groups(self) -> set[str]:
        return {group for group, _ in run(self._admin.list_consumer_groups())}

    def describe_group(self, group: str) -> GroupDescription:
        (answer,) = run(self._admin.describe_consumer_groups([group]))
        ((code, _, state, _, protocol, members, *_),) = answer.groups
        raise_errors([(code, "")])
        described = [
            MemberDescription(member_id, client_id, host, instance_id=None, assigned=None)
            for member_id, client_id, host, *_ in members
        ]
        return GroupDescription(state, protocol, described)

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        found = run(self._admin.list_consumer_group_offsets(group))
        return {
            Partition(native.topic, native.partition): Committed(entry.offset, entry.metadata)
            for native, entry in found.items()
        }

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        wanted = {
            TopicPartition(each.topic, each.number): RecordsToDelete(offset)
            for each, offset in before.items()
        }
        found = run(self._admin.delete_records(wanted))
        return {Partition(native.topic, native.partition): offset for native, offset in found.items()}

    def close(self) -> None:
        run(self._admin.close())


async def started_admin(address: str) -> Any:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    return admin


def raise_errors(answers: Iterable[tuple[int, str | None]]) -> None:
    for code, text in answers:
        if code:
            raise Refused(code, text or "")
