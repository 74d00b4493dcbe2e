"""Clusters of three nodes, of which the first is broker and controller: of Ottla, and of Apache Kafka."""

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.peers.brokers import ApacheKafka, Ottla
from benchmarks.storage.brokers import StoredBroker
from compat.broker_process import clean_environment
from compat.oracle.java import run_tool
from compat.oracle.kafka import KafkaNode
from compat.processes import cpu_seconds
from compat.waiting import wait_until
from ottla.cluster import Cluster, Node

NODES: Final = 3

SETTINGS: Final = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}

ADMIN: Final = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "log_level": 0}


class ThreeNodes(StoredBroker):
    """A cluster whose nodes can be killed and started again.  ``pid`` and ``data`` are those of the first."""

    def wait_alive(self) -> None:
        """Wait until all nodes are registered and serve."""
        admin = AdminClient({**ADMIN, "bootstrap.servers": self.address})

        def all_there() -> bool:
            try:
                return len(admin.list_topics(timeout=5).brokers) == NODES
            except KafkaException:
                return False

        wait_until(all_there, "all nodes are there", patience_seconds=120)

    def wait_in_sync(self, topic: str) -> None:
        """Wait until all replicas of the topic are in sync."""
        admin = AdminClient({**ADMIN, "bootstrap.servers": self.address})

        def in_sync() -> bool:
            try:
                partitions = admin.list_topics(topic, timeout=5).topics[topic].partitions.values()
            except KafkaException:
                return False
            return bool(partitions) and all(len(each.isrs) == NODES for each in partitions)

        wait_until(in_sync, "all replicas are in sync", patience_seconds=180)

    def cpu_seconds(self) -> float:
        """Processor time of all nodes so far."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Of the nodes that run."""

    @abstractmethod
    def kill_node(self, number: int) -> None:
        """``kill -9``."""

    @abstractmethod
    def start_node(self, number: int) -> None:
        """Start it again, and do not wait."""


class ThreeOttla(ThreeNodes):
    name = Ottla.name

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._cluster = Cluster(
            folder / "cluster",
            NODES,
            settings={**SETTINGS, **(settings or {})},
            environment=clean_environment(),
        )
        self.address = self._cluster.bootstrap_servers
        self.data = self._node(1).data

    def _node(self, number: int) -> Node:
        return self._cluster.node(f"node-{number}")

    def launch(self) -> None:
        self._cluster.start_all()

    def stop(self) -> None:
        self._cluster.stop_all()

    def kill(self) -> None:
        self._cluster.kill_all()

    @property
    def pid(self) -> int:
        return self.pids[0]

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self._cluster.nodes.values() if node.pid is not None]

    def kill_node(self, number: int) -> None:
        self._node(number).kill()

    def start_node(self, number: int) -> None:
        self._cluster.start(f"node-{number}")


class ThreeKafka(ThreeNodes):
    name = ApacheKafka.name

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        cluster_id = run_tool("kafka-storage", "random-uuid").output.strip()
        self._nodes: list[KafkaNode] = []
        for number in range(1, NODES + 1):
            is_first = number == 1
            node = KafkaNode(
                folder / f"node-{number}",
                {**SETTINGS, **(settings or {})},
                heap_mebibytes=ApacheKafka.HEAP_MEBIBYTES,
                java_options=ApacheKafka.JAVA_OPTIONS,
                node_id=number,
                roles="broker,controller" if is_first else "broker",
                controllers=None if is_first else self._nodes[0].controller,
            )
            node.format(*(["--standalone"] if is_first else []), cluster_id=cluster_id)
            self._nodes.append(node)
        self.address = ",".join(node.bootstrap for node in self._nodes)
        self.data = self._nodes[0].data

    def launch(self) -> None:
        for node in self._nodes:
            node.launch()

    def stop(self) -> None:
        for node in reversed(self._nodes):
            node.stop()

    def kill(self) -> None:
        for node in self._nodes:
            if node.is_running:
                node.kill()

    @property
    def pid(self) -> int:
        return self._nodes[0].pid

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self._nodes if node.is_running]

    def kill_node(self, number: int) -> None:
        self._nodes[number - 1].kill()

    def start_node(self, number: int) -> None:
        self._nodes[number - 1].launch()


def seconds_until(holds: Callable[[], None]) -> float:
    """How long something takes that waits."""
    began = time.perf_counter()
    holds()
    return time.perf_counter() - began
