"""kafka-python's admin client behind the interface of the scenarios."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient
from kafka.admin import (
    AbortTransactionSpec,
    AlterConfigOp,
    ConfigResource,
    MemberToRemove,
    OffsetSpec,
)
from kafka.structs import OffsetAndMetadata

from compat.python_kafka_python.common import TIMEOUT_MS, from_native, refusals, to_native
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
    Refused,
    TransactionDescription,
)
from compat.waiting import wait_until

FIND = {
    "earliest": OffsetSpec.EARLIEST,
    "latest": OffsetSpec.LATEST,
    "max-timestamp": OffsetSpec.MAX_TIMESTAMP,
}


class KafkaPythonAdmin(Admin):
    def __init__(self, address: str) -> None:
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
        topic = {
            "num_partitions": partition_count,
            "replication_factor": replication_factor,
            "configs": dict(settings or {}),
        }
        with refusals():
            self._admin.create_topics({name: topic}, timeout_ms=TIMEOUT_MS, validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        with refusals():
            self._admin.delete_topics([name], timeout_ms=TIMEOUT_MS)

    def list_topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def describe_topic(self, name: str) -> list[PartitionDescription]:
        (topic,) = self._admin.describe_topics([name])
        if topic["error_code"]:
            raise Refused(topic["error_code"])
        return sorted(partition_description(partition) for partition in topic["partitions"])

    def describe_topic_by_pages(self, name: str, page_size: int) -> list[list[PartitionDescription]]:
        pages: list[list[PartitionDescription]] = []
        cursor = None
        while cursor is not None or not pages:
            page = self._admin.describe_topic_partitions(
                [name], response_partition_limit=page_size, cursor=cursor
            )
            (topic,) = page["topics"]
            pages.append([partition_description(partition) for partition in topic["partitions"]])
            cursor = page["next_cursor"]
        return pages

    def create_partitions(self, topic: str, total_count: int) -> None:
        with refusals():
            self._admin.create_partitions({topic: total_count}, timeout_ms=TIMEOUT_MS)

    def describe_cluster(self) -> Cluster:
        found = self._admin.describe_cluster()
        brokers = {broker["broker_id"]: f"{broker['host']}:{broker['port']}" for broker in found["brokers"]}
        return Cluster(found["cluster_id"], found["controller_id"], brokers)

    def describe_settings(self, kind: str, name: str) -> dict[str, str | None]:
        with refusals():
            found = self._admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return {setting: entry["value"] for setting, entry in found[kind][name].items()}

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        # The library adds what is set already, so that nothing is reset: that takes a call of its own, which
        # asks for what is set, and so has to wait until that is told as it was set.
        set_before = self._admin.describe_configs([ConfigResource("topic", topic)], config_filter="modified")
        others = [name for name in set_before["topic"][topic] if name not in settings]
        self._alter("topic", topic, settings, incremental=False)
        wait_until(lambda: self._has_settings(topic, settings), "the settings are told as they were set")
        resource = ConfigResource("topic", topic, others)
        raise_text(self._admin.reset_configs([resource], incremental=False)["topic"][topic])

    def _has_settings(self, topic: str, settings: Mapping[str, str]) -> bool:
        return settings.items() <= self.describe_settings("topic", topic).items()

    def change_settings(
        self,
        kind: str,
        name: str,
        *,
        put: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        append: Mapping[str, str] | None = None,
    ) -> None:
        changes: dict[str, Any] = {
            **{setting: (AlterConfigOp.SET, value) for setting, value in (put or {}).items()},
            **dict.fromkeys(remove, (AlterConfigOp.DELETE, None)),
            **{setting: (AlterConfigOp.APPEND, value) for setting, value in (append or {}).items()},
        }
        self._alter(kind, name, changes, incremental=True)

    def _alter(self, kind: str, name: str, changes: Mapping[str, Any], *, incremental: bool) -> None:
        resource = ConfigResource(kind, name, dict(changes))
        raise_text(self._admin.alter_configs([resource], incremental=incremental)[kind][name])

    def list_config_resources(self) -> dict[str, set[str]]:
        with refusals():
            found = self._admin.list_config_resources()
        return {kind: set(names) for kind, names in found.items()}

    def list_groups(self) -> set[str]:
        return {group["group_id"] for group in self._admin.list_groups()}

    def describe_group(self, group: str) -> GroupDescription:
        found = self._admin.describe_groups([group])[group]
        if found["error"]:
            raise RuntimeError(found["error"])
        members = [
            MemberDescription(
                member_id=member["member_id"],
                client_id=member["client_id"],
                host=member["client_host"],
                instance_id=member["group_instance_id"],
                assigned=assigned_partitions(member["member_assignment"]),
            )
            for member in found["members"]
        ]
        return GroupDescription(found["group_state"], found["protocol_data"], members)

    def delete_group(self, group: str) -> None:
        result = self._admin.delete_groups([group])[group]
        if result != "OK":
            raise Refused(getattr(kafka.errors, result).errno)

    def remove_member(self, group: str, instance_id: str) -> None:
        with refusals():
            results = self._admin.remove_group_members(group, [MemberToRemove(group_instance_id=instance_id)])
        raise_all(results)

    def group_offsets(self, group: str) -> dict[Partition, Committed]:
        with refusals():
            found = self._admin.list_group_offsets(group)[group]
        return {
            from_native(native): Committed(entry.offset, entry.metadata) for native, entry in found.items()
        }

    def alter_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        wanted = {
            to_native(partition): OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()
        }
        raise_all(self._admin.alter_group_offsets(group, wanted))

    def delete_group_offsets(self, group: str, partitions: Collection[Partition]) -> None:
        with refusals():
            results = self._admin.delete_group_offsets(group, [to_native(each) for each in partitions])
        raise_all(results)

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        with refusals():
            found = self._admin.delete_records({to_native(each): offset for each, offset in before.items()})
        return {from_native(native): entry["low_watermark"] for native, entry in found.items()}

    def find_offsets(self, partition: Partition) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for name, spec in FIND.items():
            with refusals():
                (entry,) = self._admin.list_partition_offsets({to_native(partition): spec}).values()
            found[name] = Found(entry.offset, entry.timestamp)
        return found

    def log_sizes(self, topic: str) -> dict[int, int]:
        (broker,) = self._admin.describe_log_dirs([topic])
        return {
            partition["partition_index"]: partition["partition_size"]
            for directory in broker["log_dirs"]
            for found in directory["topics"]
            for partition in found["partitions"]
        }

    def describe_producers(self, partition: Partition) -> list[ProducerState]:
        with refusals():
            found = self._admin.describe_producers([to_native(partition)])[to_native(partition)]
        return [
            ProducerState(state.producer_id, state.producer_epoch, state.last_sequence)
            for state in found.active_producers
        ]

    def list_transactions(self) -> dict[str, str]:
        return {
            found.transactional_id: found.state.value
            for of_broker in self._admin.list_transactions().values()
            for found in of_broker
        }

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        with refusals():
            found = self._admin.describe_transactions([transactional_id])[transactional_id]
        return TransactionDescription(
            state=found.state.value,
            timeout_ms=found.transaction_timeout_ms,
            partitions={from_native(each) for each in found.topic_partitions},
        )

    def abort_transaction(self, partition: Partition) -> None:
        native = to_native(partition)
        with refusals():
            (state,) = self._admin.describe_producers([native])[native].active_producers
            self._admin.abort_transaction(
                AbortTransactionSpec(native, state.producer_id, state.producer_epoch)
            )

    def api_versions(self) -> dict[int, tuple[int, int]]:
        # Its ``api_versions`` stumbles over keys that are newer than itself.
        (broker_id,) = self.describe_cluster().brokers
        announced = self._admin.get_broker_version_data(broker_id).api_versions
        return {int(key): (first, last) for key, (first, last) in announced.items()}

    def close(self) -> None:
        self._admin.close()


def partition_description(partition: Mapping[str, Any]) -> PartitionDescription:
    return PartitionDescription(
        number=partition["partition_index"],
        leader=partition["leader_id"],
        replicas=list(partition["replica_nodes"]),
        in_sync=list(partition["isr_nodes"]),
    )


def assigned_partitions(assignment: Any) -> set[Partition]:
    """Out of what the library decoded of a member's assignment; nothing before it has one."""
    if not assignment:
        return set()
    return {
        Partition(part["topic"], number)
        for part in assignment["assigned_partitions"]
        for number in part["partitions"]
    }


def raise_all(results: Mapping[Any, Any]) -> None:
    """Raise the first error class out of results for partitions or members."""
    for error in results.values():
        if error is not kafka.errors.NoError:
            raise Refused(error.errno, error.message)


def raise_text(result: str) -> None:
    """Raise what the library gives as text: ``OK``, or ``[Error 40] InvalidConfigurationError: …``."""
    if numbered := re.match(r"\[Error (\d+)\]", result):
        raise Refused(int(numbered[1]), result)
    if result != "OK":
        raise RuntimeError(result)
