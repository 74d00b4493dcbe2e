"""The program that runs jobs of Flink."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from compat.flink.jars import VERSION, find_flink_jars
from compat.java_programs import program_command
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.scenarios.remote.process import RemoteObject, RemoteProcess

CLIENT: Final = "flink-connector-kafka"
SOURCES = Path(__file__).with_name("program")
HEAP_MEBIBYTES = 512


def command(*arguments: str) -> list[str]:
    """Fetches and compiles what is not there yet.  Raises ClientMissing."""
    try:
        jars = find_flink_jars()
        return program_command(
            SOURCES, "Jobs", *arguments, heap_mebibytes=HEAP_MEBIBYTES, libraries=jars, jars=jars
        )
    except KafkaMissing as missing:
        raise ClientMissing(f"no Flink: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.flink"]


class Cluster:
    """A process with a cluster of Flink, which keeps checkpoints in a folder; see ``program/Jobs.java``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = RemoteProcess(command(VERSION, str(folder)))
        self.version = self._process.version

    def call(self, operation: str, job: str, **arguments: Any) -> Any:
        return RemoteObject(self._process, 0).call(operation, job=job, **arguments)

    def kill(self) -> None:
        """End all jobs as a crash would."""
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """It is stopped when the block is left, unless it was killed."""
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()
