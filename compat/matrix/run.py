"""Runs drivers, each a process of its own, and collects what they report."""

import subprocess
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

from compat.broker_process import ROOT, running_broker
from compat.matrix.drivers import Driver
from compat.oracle.kafka import kafka_node
from compat.scenarios.catalogue import scenarios
from compat.scenarios.outcome import FAILED, Outcome, from_line

DRIVER_SECONDS_MAX = 300
DRIVERS_AT_A_TIME = 4
"""They wait more than they compute."""

SHOWN = 400


@contextmanager
def ottla_address(folder: Path) -> Iterator[str]:
    """Ottla as it comes: what the matrix says needs no setting."""
    with running_broker(folder) as broker:
        yield broker.address


@contextmanager
def kafka_address(folder: Path) -> Iterator[str]:
    """Raises KafkaMissing."""
    with kafka_node(folder) as node:
        yield node.bootstrap


def run_drivers(
    drivers: Sequence[Driver], address: str, names: Collection[str] | None = None
) -> dict[str, dict[str, Outcome]]:
    """Outcomes of scenarios, all or those named, by client and name.

    Raises ClientMissing before anything runs.
    """
    commands = [driver.command() for driver in drivers]
    wanted = list(scenarios() if names is None else names)
    together = [name for name in wanted if not scenarios()[name].alone]
    alone = [name for name in wanted if scenarios()[name].alone]
    found: dict[str, dict[str, Outcome]] = {driver.client: {} for driver in drivers}
    for batch, drivers_at_a_time in ((together, DRIVERS_AT_A_TIME), (alone, 1)):
        with ThreadPoolExecutor(drivers_at_a_time) as pool:
            outcomes = pool.map(run_driver, drivers, commands, repeat(address), repeat(batch))
        for driver, by_name in zip(drivers, outcomes, strict=True):
            found[driver.client] |= by_name
    return found


def run_driver(
    driver: Driver, command: Sequence[str], address: str, names: Sequence[str]
) -> dict[str, Outcome]:
    """Outcomes by name; a scenario that the driver says nothing about has failed."""
    if not names:
        return {}
    arguments = ["--bootstrap", address, "--scenarios", ",".join(names)]
    with subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            printed, complaint = process.communicate(timeout=DRIVER_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, complaint = process.communicate()
            complaint += f" it was stopped after {DRIVER_SECONDS_MAX} s"
    reported = {outcome.scenario: outcome for outcome in map(from_line, printed.splitlines())}
    silent = f"the driver says nothing: {' '.join(complaint.split())[-SHOWN:]}"
    return {name: reported.get(name, Outcome(name, driver.client, "", FAILED, silent)) for name in names}
