"""The brokers that are compared, each as its own documentation starts it, and each on 127.0.0.1."""

import re
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from benchmarks.peers import binaries
from compat.broker_process import BrokerProcess
from compat.free_ports import free_ports
from compat.oracle.jars import KAFKA_VERSION
from compat.oracle.kafka import KafkaNode


class Broker(ABC):
    """One broker of its own process, with its files in ``folder``.

    ``prepare`` does what an operator does once, and is not measured; ``launch`` starts the process and does
    not wait.  Both may raise KafkaMissing or PeerMissing, with what this machine lacks.
    """

    name: ClassVar[str]
    keeps: ClassVar[str]
    """Where acknowledged records are."""
    address: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def prepare(self) -> None: ...

    @abstractmethod
    def launch(self) -> None: ...

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @property
    @abstractmethod
    def is_running(self) -> bool: ...

    @abstractmethod
    def end(self) -> None:
        """End the process at once, whatever it is doing: its folder is thrown away."""

    @staticmethod
    @abstractmethod
    def version() -> str: ...


class Ottla(Broker):
    name = "Ottla"
    keeps = "files"

    def prepare(self) -> None:
        self._process = BrokerProcess(self.folder)
        (port,) = free_ports(1)
        self.address = self._process.address = f"127.0.0.1:{port}"

    def launch(self) -> None:
        self._process.launch()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def end(self) -> None:
        if self.is_running:
            self._process.kill()

    @staticmethod
    def version() -> str:
        root = Path(__file__).resolve().parent.parent.parent
        command = ["git", "describe", "--always", "--abbrev=10"]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return "unknown"
        return done.stdout.strip()


class ApacheKafka(Broker):
    name = "Apache Kafka"
    keeps = "files"

    HEAP_MEBIBYTES = 1024
    JAVA_OPTIONS = (
        "-Xms1g",
        "-server",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-XX:MaxInlineLevel=15",
        "-Djava.awt.headless=true",
    )
    """What ``kafka-server-start`` gives it."""

    def prepare(self) -> None:
        self._node = KafkaNode(
            self.folder, heap_mebibytes=self.HEAP_MEBIBYTES, java_options=self.JAVA_OPTIONS
        )
        self.address = self._node.bootstrap
        self._node.format()

    def launch(self) -> None:
        self._node.launch()

    @property
    def pid(self) -> int:
        return self._node.pid

    @property
    def is_running(self) -> bool:
        return self._node.is_running

    def end(self) -> None:
        self._node.kill()

    @staticmethod
    def version() -> str:
        return KAFKA_VERSION


class Executable(Broker):
    """A broker that is one binary and keeps everything in memory."""

    keeps = "memory"
    _process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]: ...

    def prepare(self) -> None:
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self._command = self.command()

    def launch(self) -> None:
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Kfake(Executable):
    name = "kfake"

    def command(self) -> list[str]:
        return [str(binaries.kfake()), "-port", str(self.port)]

    @staticmethod
    def version() -> str:
        return kfake_version((binaries.HERE / "kfake" / "go.mod").read_text())


def kfake_version(go_mod: str) -> str:
    """The day of the pinned commit, and its hash: kfake has no releases."""
    found = re.search(r"/kfake v[0-9.]+-(\d{4})(\d\d)(\d\d)\d{6}-([0-9a-f]+)", go_mod)
    if found is None:
        return "unknown"
    year, month, day, commit = found.groups()
    return f"of {year}-{month}-{day} ({commit[:7]})"


class Tansu(Executable):
    name = "Tansu"

    def command(self) -> list[str]:
        url = f"tcp://{self.address}"
        listener = ("--listener-url", url, "--advertised-listener-url", url)
        return [str(binaries.tansu()), "broker", *listener, "--storage-engine", "memory://tansu/"]

    @staticmethod
    def version() -> str:
        done = subprocess.run(
            [binaries.tansu(), "--version"], capture_output=True, text=True, timeout=10, check=False
        )
        return done.stdout.strip().removeprefix("tansu ") or "unknown"


BROKERS: tuple[type[Broker], ...] = (Ottla, ApacheKafka, Kfake, Tansu)
"""In the order of the table; the first is what the others are compared with."""
