"""A Kafka node of our own: formatted in a folder, started on free ports, stopped by its process id."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat.free_ports import free_ports
from compat.oracle.java import java_command, run_tool
from compat.probe import answers_api_versions

START_TIMEOUT_SECONDS = 90
STOP_TIMEOUT_SECONDS = 60

SMALL_NODE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "16777216",
}
"""What one node needs to work alone, and little memory to do it in."""

SMALL_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Starts soon and stays small; whoever measures Kafka gives it the options of its own scripts instead."""


def kept_addresses(folder: Path) -> tuple[str, str]:
    """Of the broker and the controller of a node there: free ones in a new folder, the same in an old one."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "addresses"
    if not kept.exists():
        kept.write_text(" ".join(f"127.0.0.1:{port}" for port in free_ports(2)))
    bootstrap, controller = kept.read_text().split()
    return bootstrap, controller


class KafkaNode:
    """A running node.  ``bootstrap`` and ``controller`` are its addresses, ``data`` its log directory.

    A folder used again keeps its addresses: the controller's stands in the voters record.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        heap_mebibytes: int = 400,
        java_options: Sequence[str] = SMALL_JAVA,
        environment: Mapping[str, str] | None = None,
        node_id: int = 1,
        roles: str = "broker,controller",
        controllers: str | None = None,
    ) -> None:
        """``controllers`` are the addresses of controllers of the cluster; this node is the only one without.

        A node that is no controller has nobody at its address ``controller``, and one that is no broker none
        at ``bootstrap``.
        """
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "kafka.log"
        self.bootstrap, self.controller = kept_addresses(folder)
        self._heap_mebibytes = heap_mebibytes
        self._java_options = java_options
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.stop_timeout_seconds: float = STOP_TIMEOUT_SECONDS
        self._properties = folder / "server.properties"
        self.roles = roles.split(",")
        at = {"broker": f"PLAINTEXT://{self.bootstrap}", "controller": f"CONTROLLER://{self.controller}"}
        listeners = ",".join(at[role] for role in self.roles)
        self.settings = {
            "process.roles": roles,
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": controllers or self.controller,
            "log.dirs": str(self.data),
            **SMALL_NODE,
            **(settings or {}),
        }
        lines = [f"{name}={value}\n" for name, value in self.settings.items()]
        self._properties.write_text("".join(lines))

    def format(self, *arguments: str, cluster_id: str | None = None) -> None:
        """Format the log directory as ``kafka-storage`` does; once in the life of a folder.

        Without ``cluster_id`` it is the first node of a new cluster.  ``arguments`` say who votes, where that
        is not this node alone.
        """
        is_first = cluster_id is None
        cluster_id = cluster_id or run_tool("kafka-storage", "random-uuid").output.strip()
        options = ["--cluster-id", cluster_id, "--config", str(self._properties)]
        if is_first and not self.settings.get("controller.quorum.voters"):
            options.append("--standalone")
        done = run_tool("kafka-storage", "format", *options, *arguments)
        if done.exit_code:
            raise RuntimeError(f"kafka-storage format failed: {done.output}{done.errors}")

    @property
    def is_formatted(self) -> bool:
        return (self.data / "meta.properties").exists()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        command = java_command(
            "kafka.Kafka",
            str(self._properties),
            heap_mebibytes=self._heap_mebibytes,
            options=self._java_options,
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment,
            )

    def start(self) -> None:
        """Return when the node answers requests."""
        self.launch()
        process = self._process
        assert process is not None
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not answers_api_versions(self.bootstrap if "broker" in self.roles else self.controller):
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"Kafka did not start:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop as an operator would, so that the clean-shutdown marker is written."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.kill(process.pid, how)
        try:
            process.wait(self.stop_timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


@contextmanager
def kafka_node(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    format_arguments: tuple[str, ...] = (),
    heap_mebibytes: int = 400,
) -> Iterator[KafkaNode]:
    """Run a node in ``folder``, formatting it if that was not done yet, until the block is left.

    Raises KafkaMissing where there is no Java or no jars.
    """
    node = KafkaNode(folder, settings, heap_mebibytes=heap_mebibytes)
    if not node.is_formatted:
        node.format(*format_arguments)
    try:
        node.start()
        yield node
    finally:
        node.stop()
