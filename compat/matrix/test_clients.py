"""What passes against Apache Kafka passes against Ottla, with every client."""

from collections.abc import Mapping

import pytest

from compat.broker_process import BrokerProcess
from compat.matrix import results
from compat.matrix.drivers import DRIVERS, Driver
from compat.matrix.run import run_drivers
from compat.scenarios.missing import ClientMissing
from compat.scenarios.outcome import NOT_OFFERED, PASSED, Outcome

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def missing() -> dict[str, str]:
    """Why a client cannot be had here."""
    found = {}
    for driver in DRIVERS.values():
        try:
            driver.command()
        except ClientMissing as reason:
            found[driver.client] = str(reason)
    return found


@pytest.fixture(scope="module")
def outcomes(missing: Mapping[str, str], ottla: BrokerProcess) -> dict[str, dict[str, Outcome]]:
    """All scenarios with all clients that can be had, at the same time, against one broker."""
    drivers: list[Driver] = [driver for driver in DRIVERS.values() if driver.client not in missing]
    return run_drivers(drivers, ottla.address)


@pytest.mark.parametrize("client", DRIVERS)
def test_what_passes_against_kafka_passes_here(
    client: str, missing: Mapping[str, str], outcomes: Mapping[str, Mapping[str, Outcome]]
) -> None:
    if client in missing:
        pytest.skip(missing[client])
    expected = {name: cell.kafka.result for name, cell in results.load()[client].cells.items()}
    wrong = [
        f"{name}: {outcome.result}: {outcome.reason}"
        for name, outcome in outcomes[client].items()
        if expected[name] in {PASSED, NOT_OFFERED} and outcome.result != expected[name]
    ]
    assert wrong == []
