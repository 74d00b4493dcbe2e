"""The versions of Kafka that sarama is told to expect are all that it knows."""

import pytest

from compat.broker_process import BrokerProcess
from compat.go_driver.client import SARAMA
from compat.go_sarama.versions import CLIENT, known_versions, versions_catalogue
from compat.matrix import results
from compat.matrix.drivers import DRIVERS
from compat.matrix.run import run_driver
from compat.scenarios.missing import ClientMissing
from compat.scenarios.outcome import FAILED
from compat.scenarios.remote.process import RemoteObject, RemoteProcess


@pytest.mark.slow
def test_the_list_is_that_of_sarama() -> None:
    try:
        process = RemoteProcess(SARAMA.command())
    except ClientMissing as missing:
        pytest.skip(str(missing))
    library = RemoteObject(process, 0)
    versions = RemoteObject(process, library.call("versions"))
    assert versions.call("list") == known_versions()
    process.stop()


@pytest.mark.slow
def test_versions_that_kafka_does_not_serve_fail_alike(ottla: BrokerProcess) -> None:
    try:
        command = DRIVERS[CLIENT].command()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    cells = results.load()[CLIENT].cells
    reasons = {name: cell.kafka.reason for name, cell in cells.items() if cell.kafka.result == FAILED}
    assert len(reasons) >= 18
    outcomes = run_driver(DRIVERS[CLIENT], command, ottla.address, list(reasons))
    assert {name: outcome.reason for name, outcome in outcomes.items()} == reasons


def test_a_version_is_a_scenario_and_a_major_one_an_area() -> None:
    catalogue = versions_catalogue()
    assert list(catalogue.scenarios) == known_versions()
    assert catalogue.scenarios["2.8.0"].area == "2"
    assert [area.name for area in catalogue.areas] == ["0", "1", "2", "3", "4"]
