"""What passes against Apache Kafka passes against Ottla, with every client.

Clients whose rows take long and say little of their own are played with OTTLA_TEST_ALL_CLIENTS=1 only.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from compat.broker_process import BrokerProcess
from compat.matrix import results
from compat.matrix.drivers import DRIVERS
from compat.matrix.run import DRIVERS_AT_A_TIME, run_driver
from compat.scenarios.catalogue import scenarios
from compat.scenarios.missing import ClientMissing
from compat.scenarios.outcome import NOT_OFFERED, PASSED, Outcome

pytestmark = pytest.mark.slow

Outcomes = Mapping[str, Outcome]

CLIENTS = [
    driver.client
    for driver in DRIVERS.values()
    if driver.always or os.environ.get("OTTLA_TEST_ALL_CLIENTS") == "1"
]
TOGETHER = [name for name, scenario in scenarios().items() if not scenario.alone]
ALONE = [name for name, scenario in scenarios().items() if scenario.alone]


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
    commands: Mapping[str, list[str] | ClientMissing], ottla: BrokerProcess
) -> Iterator[dict[str, Future[dict[str, Outcome]]]]:
    """All clients that can be had, some at the same time, against one broker."""
    with ThreadPoolExecutor(DRIVERS_AT_A_TIME) as pool:
        yield {
            client: pool.submit(run_driver, DRIVERS[client], command, ottla.address, TOGETHER)
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


@pytest.mark.parametrize("client", CLIENTS)
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
    outcomes = run_driver(DRIVERS[client], command, ottla.address, offered(client, ALONE))
    assert what_is_wrong(client, outcomes) == []


def offered(client: str, names: Collection[str]) -> list[str]:
    cells = results.load()[client].cells
    return [name for name in names if cells[name].kafka.result != NOT_OFFERED]


def what_is_wrong(client: str, outcomes: Outcomes) -> list[str]:
    expected = {name: cell.kafka.result for name, cell in results.load()[client].cells.items()}
    return [
        f"{name}: {outcome.result}: {outcome.reason}"
        for name, outcome in outcomes.items()
        if expected[name] in {PASSED, NOT_OFFERED} and outcome.result != expected[name]
    ]
