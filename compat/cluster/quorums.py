"""Quorums of Apache Kafka's controllers, whose nodes may be brokers as well."""

import base64
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat.oracle.java import run_tool
from compat.oracle.kafka import START_TIMEOUT_SECONDS, KafkaNode, kept_addresses
from compat.probe import answers_api_versions

FIRST_ID = 101
"""Of Kafka's nodes, so that Ottla's have the small numbers."""


class KafkaQuorum:
    """``count`` Kafka nodes that elect a controller among them (kraft.version 1)."""

    def __init__(
        self,
        folder: Path,
        count: int,
        settings: Mapping[str, str] | None = None,
        *,
        roles: str = "broker,controller",
    ) -> None:
        places = {node_id: folder / f"kafka-{node_id}" for node_id in range(FIRST_ID, FIRST_ID + count)}
        self.controllers = ",".join(kept_addresses(place)[1] for place in places.values())
        self.nodes: dict[int, KafkaNode] = {}
        for node_id, place in places.items():
            self.nodes[node_id] = KafkaNode(
                place,
                settings,
                node_id=node_id,
                roles=roles,
                controllers=self.controllers,
                heap_mebibytes=300,
            )
        voters = [f"{node_id}@{node.controller}:{_new_id()}" for node_id, node in self.nodes.items()]
        self.cluster_id = run_tool("kafka-storage", "random-uuid").output.strip()
        for node in self.nodes.values():
            node.format("--initial-controllers", ",".join(voters), cluster_id=self.cluster_id)

    @property
    def bootstrap(self) -> str:
        """Of the brokers that run."""
        return ",".join(node.bootstrap for node in self.nodes.values() if node.is_running)

    def start(self) -> None:
        """Return when all nodes answer: alone, none of them would."""
        for node in self.nodes.values():
            node.launch()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        for node in self.nodes.values():
            while not answers_api_versions(node.bootstrap if "broker" in node.roles else node.controller):
                if not node.is_running or time.monotonic() > deadline:
                    raise RuntimeError(f"Kafka did not start:\n{node.log.read_text()[-4000:]}")
                time.sleep(0.1)

    def make_topic(self, name: str, partitions: int = 1) -> None:
        """On Kafka's side."""
        arguments = ("--create", "--topic", name, "--partitions", str(partitions))
        done = run_tool("kafka-topics", "--bootstrap-server", self.bootstrap, *arguments)
        assert done.exit_code == 0, done

    def kill_all(self) -> None:
        for node in self.nodes.values():
            node.kill()


@contextmanager
def kafka_quorum(
    folder: Path,
    count: int,
    settings: Mapping[str, str] | None = None,
    *,
    roles: str = "broker,controller",
) -> Iterator[KafkaQuorum]:
    """Formatted and running; killed behind the block.  Raises KafkaMissing."""
    quorum = KafkaQuorum(folder, count, settings, roles=roles)
    try:
        quorum.start()
        yield quorum
    finally:
        quorum.kill_all()


def _new_id() -> str:
    """A directory id: 16 bytes as Kafka writes them, and not with a dash in front."""
    while (text := base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")).startswith("-"):
        pass
    return text
