"""The program that runs applications of Kafka Streams, and the broker that it wants."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from compat.java_programs import program_command
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.scenarios.remote.process import RemoteObject, RemoteProcess
from compat.streams.jars import find_streams_jars
from compat.waiting import wait_until

CLIENT: Final = "kafka-streams"
SOURCES = Path(__file__).with_name("program")
PATIENCE_SECONDS = 60.0

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""A broker that misses whoever has crashed soon enough for a scenario."""


def command(*arguments: str) -> list[str]:
    """Fetches and compiles what is not there yet.  Raises ClientMissing."""
    try:
        return program_command(SOURCES, "Applications", *arguments, libraries=find_streams_jars())
    except KafkaMissing as missing:
        raise ClientMissing(f"no Kafka Streams: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.streams"]


class Applications:
    """A process with instances of applications; see ``program/Applications.java``."""

    def __init__(self, folder: Path) -> None:
        self._process = RemoteProcess(command(str(folder)))
        self.version = self._process.version

    def call(self, operation: str, instance: str, **arguments: Any) -> Any:
        return RemoteObject(self._process, 0).call(operation, instance=instance, **arguments)

    def kill(self) -> None:
        """End all instances as a crash would."""
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()


class Instance:
    """One instance of an application, which begins to join it."""

    def __init__(
        self,
        applications: Applications,
        name: str,
        application: str,
        topology: str,
        settings: Mapping[str, str],
        when_it_fails: str,
    ) -> None:
        self.name = name
        self._applications = applications
        self._is_there = True
        applications.call(
            "start",
            name,
            application=application,
            topology=topology,
            settings=settings,
            when_it_fails=when_it_fails,
        )

    def look(self) -> dict[str, Any]:
        """Its state in Kafka's words, how many tasks it has, what it restored and how it failed."""
        return dict(self._applications.call("look", self.name))

    def wait_until_it_works(self, *, active: int = 1, standby: int = 0) -> None:
        """Wait until it runs and has as many tasks."""
        wanted = {"state": "RUNNING", "active": active, "standby": standby}
        wait_until(
            lambda: wanted.items() <= self.look().items(),
            f"{self.name} has {active} tasks and {standby} standby tasks",
            patience_seconds=PATIENCE_SECONDS,
        )

    def leave(self) -> None:
        """Give up its tasks and go, if it has not gone yet."""
        if self._is_there:
            self._is_there = False
            if not self._applications.call("close", self.name):
                raise TimeoutError(f"{self.name} does not go")


@contextmanager
def running_applications(folder: Path) -> Iterator[Applications]:
    """They are stopped when the block is left, unless they were killed."""
    applications = Applications(folder)
    try:
        yield applications
    finally:
        applications.stop()
