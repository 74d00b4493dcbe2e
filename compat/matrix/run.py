"""Runs drivers, each a process of its own, and collects what they report."""

import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import repeat
from pathlib import Path

from compat.broker_process import ROOT, running_broker
from compat.matrix.drivers import Driver
from compat.oracle.kafka import kafka_node
from compat.scenarios.outcome import FAILED, Outcome, from_line

DRIVER_SECONDS_MAX = 300
DRIVERS_AT_A_TIME = 4
"""They wait more than they compute."""

SHOWN = 400


@contextmanager
def ottla_address(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    with running_broker(folder, settings) as broker:
        yield broker.address


@contextmanager
def kafka_address(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Raises KafkaMissing."""
    with kafka_node(folder, settings) as node:
        yield node.bootstrap


Start = Callable[[Path, Mapping[str, str]], AbstractContextManager[str]]
"""Runs a broker in a folder, with settings, and gives its address."""


def run_on_brokers(
    drivers: Sequence[Driver], start: Start, names: Collection[str] | None = None
) -> dict[str, dict[str, Outcome]]:
    """As ``run_drivers``, with a broker for all drivers that want the same settings."""
    found: dict[str, dict[str, Outcome]] = {}
    left = list(drivers)
    while left:
        settings = left[0].settings
        some = [driver for driver in left if driver.settings == settings]
        left = [driver for driver in left if driver.settings != settings]
        with tempfile.TemporaryDirectory() as folder, start(Path(folder), settings) as address:
            found |= run_drivers(some, address, names)
    return found


def run_drivers(
    drivers: Sequence[Driver], address: str, names: Collection[str] | None = None
) -> dict[str, dict[str, Outcome]]:
    """Outcomes of scenarios, all or those named that a client is played with, by client and name.

    Raises ClientMissing before anything runs.
    """
    commands = [driver.command() for driver in drivers]
    found: dict[str, dict[str, Outcome]] = {driver.client: {} for driver in drivers}
    for alone, drivers_at_a_time in ((False, DRIVERS_AT_A_TIME), (True, 1)):
        batches = [scenarios_of(driver, names, alone=alone) for driver in drivers]
        with ThreadPoolExecutor(drivers_at_a_time) as pool:
            outcomes = pool.map(run_driver, drivers, commands, repeat(address), batches)
        for driver, by_name in zip(drivers, outcomes, strict=True):
            found[driver.client] |= by_name
    return found


def scenarios_of(driver: Driver, names: Collection[str] | None = None, *, alone: bool) -> list[str]:
    """What a client is played with, all or those named: what runs alone, or what does not."""
    return [
        name
        for name, scenario in driver.catalogue().scenarios.items()
        if scenario.alone == alone and (names is None or name in names)
    ]


def run_driver(
    driver: Driver, command: Sequence[str], address: str, names: Sequence[str]
) -> dict[str, Outcome]:
    """Outcomes by name; a scenario that the driver says nothing about has failed."""
    if not names:
        return {}
    arguments = ["--bootstrap", address, "--scenarios", ",".join(names)]
    late = ""
    # Files and not pipes, whose end a process that a driver leaves behind would put off for ever.
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complained:
        try:
            subprocess.run(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complained,
                cwd=ROOT,
                timeout=DRIVER_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            late = f" it was stopped after {DRIVER_SECONDS_MAX} s"
        printed.seek(0)
        complained.seek(0)
        lines, complaint = printed.read().splitlines(), complained.read() + late
    reported = {outcome.scenario: outcome for outcome in map(from_line, lines)}
    silent = f"the driver says nothing: {' '.join(complaint.split())[-SHOWN:]}"
    return {name: reported.get(name, Outcome(name, driver.client, "", FAILED, silent)) for name in names}
