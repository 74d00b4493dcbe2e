"""Brokers that meet a fault each, and what became of it."""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from compat.broker_process import BrokerProcess
from compat.disk_faults.faults import Faults
from compat.disk_faults.trials import (
    BYSTANDER,
    PATIENCE_SECONDS,
    SETTINGS,
    SMALL_SEGMENTS,
    SUBJECT,
    Client,
    Trial,
    all_trials,
)
from compat.free_ports import free_ports
from compat.oracle.kafka import KafkaNode

COORDINATOR_SECONDS: Final = 20.0

RECORDED: Final = Path(__file__).resolve().parent / "recorded.json"

Outcome = dict[str, Any]


class Run(Protocol):
    """A broker that can meet faults."""

    address: str

    def __init__(self, folder: Path, environment: dict[str, str]) -> None: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...

    @property
    def is_running(self) -> bool: ...


class Kafka:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._node = KafkaNode(folder, SETTINGS, environment=environment)
        if not self._node.is_formatted:
            self._node.format()
        self.address = self._node.bootstrap

    def start(self) -> None:
        self._node.start()

    def kill(self) -> None:
        self._node.kill()

    @property
    def is_running(self) -> bool:
        return self._node.is_running


class Ottla:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = BrokerProcess(folder, SETTINGS, environment=environment)
        (port,) = free_ports(1)
        self.address = self._process.address = f"127.0.0.1:{port}"

    def start(self) -> None:
        self._process.start()

    def kill(self) -> None:
        if self._process.is_running:
            self._process.kill()

    @property
    def is_running(self) -> bool:
        return self._process.is_running


def run_all(folder: Path, kind: type[Run], trials: Sequence[Trial] | None = None) -> dict[str, Outcome]:
    """The outcome of each trial, by its name.  A broker that is still well goes on with the next one."""
    outcomes = {}
    for number, trial in enumerate(all_trials() if trials is None else trials):
        place = folder / str(number)
        faults = Faults(place / "faults")
        broker = kind(place / "broker", faults.environment)
        broker.start()
        try:
            outcomes[trial.name] = _run(broker, faults, trial)
        finally:
            broker.kill()
            shutil.rmtree(place)
    return outcomes


def _run(broker: Run, faults: Faults, trial: Trial) -> Outcome:
    client = Client(broker.address)
    try:
        for topic in (SUBJECT, BYSTANDER):
            assert client.create(topic, **SMALL_SEGMENTS) == 0
            client.wait_for_leader(topic)
            assert client.produce_record(topic) == 0
        _until_committed(client)
        trial.prepare(client)
        faults.begin(trial.operation, trial.error_number, trial.path_part)
        outcome: Outcome = {"asked": trial.action(client)}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while broker.is_running and time.monotonic() < deadline:
            time.sleep(0.05)
        outcome["was met"] = faults.hits > 0
        outcome["goes on"] = broker.is_running
        if broker.is_running:
            outcome["another topic meanwhile"] = client.produce_record(BYSTANDER)
        faults.end()
        if broker.is_running:
            outcome["asked again"] = trial.action(client)
        if not broker.is_running:  # it took its time
            outcome = {"asked": outcome["asked"], "was met": outcome["was met"], "goes on": False}
        return outcome
    finally:
        client.close()


def _until_committed(client: Client) -> None:
    """A coordinator has been found, and offsets can be committed."""
    deadline = time.monotonic() + COORDINATOR_SECONDS
    while (client.find_coordinator("first") or client.commit("first")) and time.monotonic() < deadline:
        time.sleep(0.1)


def read() -> dict[str, Outcome]:
    """What Kafka was recorded to do."""
    recorded: dict[str, Outcome] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return recorded


def write(outcomes: dict[str, Outcome]) -> None:
    RECORDED.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")


EXPLAINED: Final = {
    "fetch, device error": "where a record lies that was written lately is known without reading, so reading "
    "fails while the answer is being sent, and the connection ends as Kafka's does then; but Kafka always "
    "reads a header first, and answers -1",
    "metadata, device error": "what is not on the device is not acknowledged; Kafka acknowledges before its "
    "fsync fails",
}
"""Trials in which Ottla is meant to answer something else."""


def differences(recorded: dict[str, Outcome], outcomes: dict[str, Outcome]) -> list[str]:
    """Where Ottla answers with another code, or ends although Kafka goes on.

    Kafka with one directory ends after most faults.  Where it had no answer any more, any that Ottla has will
    do, and so does that Ottla goes on.
    """
    found = []
    for name, outcome in outcomes.items():
        expected = recorded[name]
        is_silent = "closed" in (expected["asked"], *_parts(expected["asked"]))
        if outcome["asked"] != expected["asked"] and not is_silent and name not in EXPLAINED:
            found.append(f"{name}: the answer is {outcome['asked']}, not {expected['asked']}")
        if expected["goes on"] and not outcome["goes on"]:
            found.append(f"{name}: the broker ends")
    return found


def _parts(asked: Any) -> Sequence[Any]:
    return asked if isinstance(asked, list) else ()
