"""What clients are told of a cluster."""

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import PartitionMetadata

from compat.waiting import wait_until


class ClusterView:
    """A cluster as brokers of it show it to clients."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def brokers(self) -> set[int]:
        """The ids of those that are not fenced."""
        return set(self.admin.list_topics(timeout=10).brokers)

    def leaders(self, topic: str) -> list[int]:
        """By partition; -1 where there is none."""
        return [partition.leader for partition in self._partitions(topic)]

    def replicas(self, topic: str) -> list[set[int]]:
        """By partition."""
        return [set(partition.replicas) for partition in self._partitions(topic)]

    def in_sync(self, topic: str) -> list[set[int]]:
        """By partition."""
        return [set(partition.isrs) for partition in self._partitions(topic)]

    def wait_for_brokers(self, wanted: set[int]) -> None:
        wait_until(lambda: self.brokers() == wanted, f"the brokers are {wanted}")

    def wait_until_in_sync(self, topic: str, wanted: set[int]) -> None:
        """Return when all partitions have exactly these replicas in sync."""
        wait_until(
            lambda: all(found == wanted for found in self.in_sync(topic)), f"{wanted} are in sync in {topic}"
        )

    def _partitions(self, topic: str) -> list[PartitionMetadata]:
        found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [found[index] for index in sorted(found)]
