"""Workers of Kafka Connect in distributed mode, each a process of its own that is talked to over HTTP."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from compat.free_ports import free_ports
from compat.java_programs import program_command
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.waiting import wait_until

CLIENT: Final = "kafka-connect"
SOURCES = Path(__file__).with_name("program")
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
HEAP_MEBIBYTES = 384
START_SECONDS_MAX = 240.0
PATIENCE_SECONDS = 80.0
STOP_SECONDS_MAX = 60
CALL_SECONDS_MAX = 30
REBALANCING_PAUSE_SECONDS = 0.2
SHOWN = 2000
REBALANCING = 409
"""What a worker answers while its group decides who does what."""


def command(*arguments: str) -> list[str]:
    """Compiles what is not there yet.  Raises ClientMissing."""
    try:
        return program_command(SOURCES, WORKER, *arguments, heap_mebibytes=HEAP_MEBIBYTES)
    except KafkaMissing as missing:
        raise ClientMissing(f"no Kafka Connect: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.connect"]


class Worker:
    """One worker of the cluster ``cluster``, which begins to start."""

    def __init__(self, folder: Path, address: str, cluster: str) -> None:
        (port,) = free_ports(1)
        self._url = f"http://127.0.0.1:{port}"
        self.id = f"127.0.0.1:{port}"
        self.cluster = cluster
        folder.mkdir(parents=True)
        settings = folder / "worker.properties"
        told = {**settings_of(address, cluster), "listeners": self._url}
        settings.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        self._log = folder / "log"
        self._command = command(str(settings))
        self.start()

    def start(self) -> None:
        """Begin to start, at first or after it was stopped."""
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def version(self) -> str:
        """Of Kafka Connect, once the worker is there."""
        found: list[str] = []

        def is_there() -> bool:
            if self._process.poll() is not None:
                raise RuntimeError(f"the worker ended: {self._log.read_text()[-SHOWN:]}")
            try:
                found.append(self._try("GET", "/")["version"])
            except (OSError, ValueError):  # refused, or not known yet what there is
                return False
            return True

        wait_until(is_there, "the worker is there", patience_seconds=START_SECONDS_MAX)
        return found[0]

    def call(self, method: str, path: str, body: object = None) -> Any:
        """What it answers, once its group is ready."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._try(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code != REBALANCING or time.monotonic() > end:
                    raise RuntimeError(f"{method} {path}: {error.code}: {error.read().decode()}") from error
            time.sleep(REBALANCING_PAUSE_SECONDS)

    def _try(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=CALL_SECONDS_MAX) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def run(self, name: str, connector: str, settings: Mapping[str, str], *, tasks: int) -> None:
        config = {"connector.class": connector, "tasks.max": str(tasks), **settings}
        self.call("POST", "/connectors", {"name": name, "config": config})
        self.wait_for(name, "RUNNING", tasks)

    def wait_for(self, name: str, state: str, tasks: int) -> None:
        """Until the connector and as many tasks are in a state."""

        def is_so() -> bool:
            try:
                status = self.call("GET", f"/connectors/{name}/status")
            except RuntimeError:  # not known yet
                return False
            states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
            return states == [state] * (1 + tasks)

        wait_until(is_so, f"{name} is {state}, with {tasks} tasks", patience_seconds=PATIENCE_SECONDS)

    def places(self, name: str) -> list[str]:
        """Which worker has each task."""
        return [task["worker_id"] for task in self.call("GET", f"/connectors/{name}/status")["tasks"]]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(STOP_SECONDS_MAX)

    def stop(self) -> None:
        """Does nothing if it was killed."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()


def settings_of(address: str, cluster: str) -> dict[str, str]:
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": address,
        "group.id": cluster,
        "exactly.once.source.support": "enabled",
        "key.converter": converter,
        "value.converter": converter,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        **{f"{kind}.storage.topic": f"{cluster}-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "5",
        "offset.flush.interval.ms": "500",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": "0",
        "consumer.auto.offset.reset": "earliest",
    }


@contextmanager
def running_worker(folder: Path, address: str, cluster: str) -> Iterator[Worker]:
    """It is stopped when the block is left."""
    worker = Worker(folder, address, cluster)
    try:
        yield worker
    finally:
        worker.stop()
