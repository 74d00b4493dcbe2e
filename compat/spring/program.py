"""The program that runs applications of Spring Kafka."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from compat.java_programs import program_command
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.scenarios.remote.process import RemoteObject, RemoteProcess
from compat.spring.jars import VERSION, find_spring_jars

CLIENT: Final = "spring-kafka"
SOURCES = Path(__file__).with_name("program")


def command() -> list[str]:
    """Fetches and compiles what is not there yet.  Raises ClientMissing."""
    try:
        jars = find_spring_jars()
        return program_command(SOURCES, "Applications", VERSION, libraries=jars, jars=jars)
    except KafkaMissing as missing:
        raise ClientMissing(f"no Spring Kafka: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.spring"]


class Applications:
    """A process with applications; see ``program/Applications.java``."""

    def __init__(self) -> None:
        self._process = RemoteProcess(command())
        self.version = self._process.version

    def call(self, operation: str, application: str, **arguments: Any) -> Any:
        return RemoteObject(self._process, 0).call(operation, application=application, **arguments)

    def kill(self) -> None:
        """End all applications as a crash would."""
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()


@contextmanager
def running_applications() -> Iterator[Applications]:
    """They are stopped when the block is left, unless they were killed."""
    applications = Applications()
    try:
        yield applications
    finally:
        applications.stop()
