"""Administrative calls of a library of another language."""

from collections.abc import Collection, Mapping
from typing import Any

from compat.scenarios.python.client import (
    Admin,
    Cluster,
    Committed,
    Found,
    GroupDescription,
    MemberDescription,
    Partition,
    PartitionDescription,
    ProducerState,
    TransactionDescription,
)
from compat.scenarios.remote.process import RemoteObject


class RemoteAdmin(RemoteObject, Admin):
    def create_topic(
        self,
        name: str,
        partition_count: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        replication_factor: int = 1,
        validate_only: bool = False,
    ) -> None:
        self.call(
            "create_topic",
            name=name,
            partition_count=partition_count,
            settings=dict(settings or {}),
            replication_factor=replication_factor,
            validate_only=validate_only,
        )

    def delete_topic(self, name: str) -> None:
        self.call("delete_topic", name=name)

    def list_topics(self) -> set[str]:
        return set(self.call("list_topics"))

    def describe_topic(self, name: str) -> list[PartitionDescription]:
        return [PartitionDescription(*each) for each in self.call("describe_topic", name=name)]

    def describe_topic_by_pages(self, name: str, page_size: int) -> list[list[PartitionDescription]]:
        pages = self.call("describe_topic_by_pages", name=name, page_size=page_size)
        return [[PartitionDescription(*each) for each in page] for page in pages]

    def create_partitions(self, topic: str, total_count: int) -> None:
        self.call("create_partitions", topic=topic, total_count=total_count)

    def describe_cluster(self) -> Cluster:
        cluster_id, controller_id, brokers = self.call("describe_cluster")
        return Cluster(cluster_id, controller_id, dict(brokers))

    def describe_settings(self, kind: str, name: str) -> dict[str, str | None]:
        return dict(self.call("describe_settings", kind=kind, name=name))

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        self.call("replace_settings", topic=topic, settings=dict(settings))

    def change_settings(
        self,
        kind: str,
        name: str,
        *,
        put: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        append: Mapping[str, str] | None = None,
    ) -> None:
        self.call(
            "change_settings",
            kind=kind,
            name=name,
            put=dict(put or {}),
            remove=list(remove),
            append=dict(append or {}),
        )

    def list_config_resources(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for kind, name in self.call("list_config_resources"):
            found.setdefault(kind, set()).add(name)
        return found

    def list_groups(self) -> set[str]:
        return set(self.call("list_groups"))

    def list_group_kinds(self) -> dict[str, str]:
        return dict(self.call("list_group_kinds"))

    def describe_group(self, group: str) -> GroupDescription:
        return group_in(self.call("describe_group", group=group))

    def delete_group(self, group: str) -> None:
        self.call("delete_group", group=group)

    def remove_member(self, group: str, instance_id: str) -> None:
        self.call("remove_member", group=group, instance_id=instance_id)

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        found = self.call("group_offsets", group=group)
        return {Partition(*key): Committed(*each) for key, each in found}

    def alter_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        self.call("alter_group_offsets", group=group, offsets=list(offsets.items()))

    def delete_group_offsets(self, group: str, partitions: Collection[Partition]) -> None:
        self.call("delete_group_offsets", group=group, partitions=list(partitions))

    def describe_share_group(self, group: str) -> GroupDescription:
        return group_in(self.call("describe_share_group", group=group))

    def share_group_offsets(self, group: str) -> dict[Partition, int]:
        found = self.call("share_group_offsets", group=group)
        return {Partition(*key): offset for key, offset in found}

    def alter_share_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        self.call("alter_share_group_offsets", group=group, offsets=list(offsets.items()))

    def delete_share_group_offsets(self, group: str, topic: str) -> None:
        self.call("delete_share_group_offsets", group=group, topic=topic)

    def delete_share_group(self, group: str) -> None:
        self.call("delete_share_group", group=group)

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        found = self.call("delete_records", before=list(before.items()))
        return {Partition(*key): offset for key, offset in found}

    def find_offsets(self, partition: Partition) -> dict[str, Found]:
        found = self.call("find_offsets", partition=partition)
        return {name: Found(*each) for name, each in found.items()}

    def log_sizes(self, topic: str) -> dict[int, int]:
        return dict(self.call("log_sizes", topic=topic))

    def describe_producers(self, partition: Partition) -> list[ProducerState]:
        return [ProducerState(*each) for each in self.call("describe_producers", partition=partition)]

    def list_transactions(self) -> dict[str, str]:
        return dict(self.call("list_transactions"))

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        found = self.call("describe_transaction", transactional_id=transactional_id)
        state, timeout_ms, partitions = found
        return TransactionDescription(state, timeout_ms, {Partition(*each) for each in partitions})

    def fence_producer(self, transactional_id: str) -> None:
        self.call("fence_producer", transactional_id=transactional_id)

    def abort_transaction(self, partition: Partition) -> None:
        self.call("abort_transaction", partition=partition)

    def api_versions(self) -> dict[int, tuple[int, int]]:
        return {key: (first, last) for key, first, last in self.call("api_versions")}

    def close(self) -> None:
        self.call("close")


def group_in(fields: dict[str, Any]) -> GroupDescription:
    members = [
        MemberDescription(
            member_id=member["member_id"],
            client_id=member["client_id"],
            host=member["host"],
            instance_id=member["instance_id"],
            assigned={Partition(*each) for each in member["assigned"]},
        )
        for member in fields["members"]
    ]
    return GroupDescription(fields["state"], fields.get("protocol"), members)
