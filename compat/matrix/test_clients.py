"""What passes against Apache Kafka passes against Ottla, with every client.

Clients whose rows take long and say little of their own are played with OTTLA_TEST_ALL_CLIENTS=1 only.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from compat.broker_process import BrokerProcess, running_broker
from compat.matrix import results
from compat.matrix.drivers import DRIVERS, Driver
from compat.matrix.run import DRIVERS_AT_A_TIME, run_driver, scenarios_of
from compat.scenarios.missing import ClientMissing
from compat.scenarios.outcome import NOT_OFFERED, PASSED, Outcome

pytestmark = pytest.mark.slow

Outcomes = Mapping[str, Outcome]

CLIENTS = [
    driver.client
    for driver in DRIVERS.values()
    if driver.always or os.environ.get("OTTLA_TEST_ALL_CLIENTS") == "1"
]


@pytest.fixture(scope="module")
def commands() -> dict[str, list[str] | ClientMissing]:
    """How each client is played, or why it cannot be had here."""
    found: dict[str, list[str] | ClientMissing] = {}
    for client in CLIENTS:
        try:
            found[client] = DRIVERS[client].command()
        except ClientMissing as missing:
            found[client] = missing
    return found


@pytest.fixture(scope="module")
def playing(
    commands: Mapping[str, list[str] | ClientMissing],
    ottla: BrokerProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[dict[str, Outcome]]]]:
    """All clients that can be had, some at the same time, against one broker but for who wants another."""

    def play(driver: Driver, command: list[str]) -> dict[str, Outcome]:
        names = with_result(driver.client, {PASSED, NOT_OFFERED}, scenarios_of(driver, alone=False))
        if not driver.settings:
            return run_driver(driver, command, ottla.address, names)
        with running_broker(tmp_path_factory.mktemp("settled"), driver.settings) as settled:
            return run_driver(driver, command, settled.address, names)

    with ThreadPoolExecutor(DRIVERS_AT_A_TIME) as pool:
        yield {
            client: pool.submit(play, DRIVERS[client], command)
            for client, command in commands.items()
            if not isinstance(command, ClientMissing)
        }


@pytest.mark.parametrize("client", CLIENTS)
def test_what_passes_against_kafka_passes_here(
    client: str,
    commands: Mapping[str, list[str] | ClientMissing],
    playing: Mapping[str, Future[dict[str, Outcome]]],
) -> None:
    command = commands[client]
    if isinstance(command, ClientMissing):
        pytest.skip(str(command))
    assert what_is_wrong(client, playing[client].result()) == []


@pytest.mark.parametrize("client", [each for each in CLIENTS if scenarios_of(DRIVERS[each], alone=True)])
def test_what_runs_alone_passes_here_too(
    client: str,
    commands: Mapping[str, list[str] | ClientMissing],
    playing: Mapping[str, Future[dict[str, Outcome]]],
    ottla: BrokerProcess,
) -> None:
    command = commands[client]
    if isinstance(command, ClientMissing):
        pytest.skip(str(command))
    wait(playing.values())
    outcomes = run_driver(
        DRIVERS[client],
        command,
        ottla.address,
        with_result(client, {PASSED}, scenarios_of(DRIVERS[client], alone=True)),
    )
    assert what_is_wrong(client, outcomes) == []


def with_result(client: str, wanted: Collection[str], names: Collection[str]) -> list[str]:
    """Those of the scenarios that have one of these results against Apache Kafka."""
    cells = results.load()[client].cells
    return [name for name in names if cells[name].kafka.result in wanted]


def what_is_wrong(client: str, outcomes: Outcomes) -> list[str]:
    expected = {name: cell.kafka.result for name, cell in results.load()[client].cells.items()}
    return [
        f"{name}: {outcome.result}: {outcome.reason}"
        for name, outcome in outcomes.items()
        if outcome.result != expected[name]
    ]
