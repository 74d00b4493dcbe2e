"""Brokers that are stopped, killed and started again on the same files."""

import subprocess
import tarfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import ClassVar

from benchmarks.peers.brokers import ApacheKafka, Ottla
from compat.broker_process import ROOT, BrokerProcess
from compat.free_ports import free_ports
from compat.oracle.kafka import KafkaNode

FIRST_ISSUE = "2fdde10"
"""The commit that appends and fetches are compared with: the broker as it was first complete."""


STOP_TIMEOUT_SECONDS = 300
"""With ten thousand partitions it takes its time."""


class StoredBroker(ABC):
    """A broker with its files in ``folder``."""

    name: ClassVar[str]
    address: str
    data: Path

    @abstractmethod
    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None: ...

    @abstractmethod
    def launch(self) -> None:
        """Start the process and do not wait."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it properly, and return when it has ended."""

    @abstractmethod
    def kill(self) -> None:
        """End it as a crash does; nothing happens if it does not run."""

    @property
    @abstractmethod
    def pid(self) -> int: ...


class StoredOttla(StoredBroker):
    name = Ottla.name

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self._process = BrokerProcess(folder, settings)
        self._process.stop_timeout_seconds = STOP_TIMEOUT_SECONDS
        (port,) = free_ports(1)
        self.address = self._process.address = f"127.0.0.1:{port}"
        self.data = self._process.data

    def launch(self) -> None:
        self._process.launch()

    def stop(self) -> None:
        if code := self._process.stop():
            raise RuntimeError(f"the broker ended with {code}: {self._process.log()[-500:]}")

    def kill(self) -> None:
        if self._process.is_running:
            self._process.kill()

    @property
    def pid(self) -> int:
        return self._process.pid


class EarlierOttla(StoredOttla):
    """The broker of the first issue's last commit."""

    name = "Ottla before"

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, settings)
        tree = folder / "tree"
        archive = subprocess.run(
            ["git", "archive", FIRST_ISSUE], cwd=ROOT, capture_output=True, check=True, timeout=60
        )
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as packed:
            packed.extractall(tree, filter="data")
        self._process.root = tree


class StoredKafka(StoredBroker):
    name = ApacheKafka.name

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self._node = KafkaNode(
            folder,
            settings,
            heap_mebibytes=ApacheKafka.HEAP_MEBIBYTES,
            java_options=ApacheKafka.JAVA_OPTIONS,
        )
        self._node.stop_timeout_seconds = STOP_TIMEOUT_SECONDS
        self._node.format()
        self.address = self._node.bootstrap
        self.data = self._node.data

    def launch(self) -> None:
        self._node.launch()

    def stop(self) -> None:
        self._node.stop()

    def kill(self) -> None:
        self._node.kill()

    @property
    def pid(self) -> int:
        return self._node.pid


def version_of(name: str) -> str:
    """The version of a broker, as results name it."""
    if name == StoredKafka.name:
        return ApacheKafka.version()
    return Ottla.version() if name == StoredOttla.name else FIRST_ISSUE


def timed(action: Callable[[], object]) -> float:
    """Seconds that something took."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
