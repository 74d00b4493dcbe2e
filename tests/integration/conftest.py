"""Real broker processes for tests that meet them as clients do."""

import os
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from compat.broker_process import BrokerProcess, running_broker
from storage.verification.findings import Finding, Severity, Totals
from storage.verification.read_only import ReadOnlyFileSystem
from storage.verification.verify import check_one, verify

BOOTSTRAP_VARIABLE = "OTTLA_TEST_BOOTSTRAP"
"""Names a broker to run the client tests against, such as Kafka's own: a test that fails there is wrong."""

OPEN_FILES = 8192

StartBroker = Callable[..., BrokerProcess]


@pytest.fixture(scope="session", autouse=True)
def many_open_files() -> None:
    """Allow this process and the brokers that it starts some thousands of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that tests share: each uses topics and groups of its own."""
    given = os.environ.get(BOOTSTRAP_VARIABLE)
    if given:
        yield given
        return
    with running_broker(tmp_path_factory.mktemp("shared-broker"), ephemeral=True) as broker:
        yield broker.address


def damages(broker: BrokerProcess) -> list[Finding]:
    """What is damaged in the log directories of a broker that does not run any more."""
    given = broker.settings.get("log.dirs", str(broker.data)).split(",")
    directories = [path for path in given if os.path.exists(os.path.join(path, "meta.properties"))]
    file_system = ReadOnlyFileSystem()
    found: list[Finding] = []
    for some in verify(
        file_system,
        directories,
        lambda replicas: [check_one(file_system, facts, lambda count: None) for facts in replicas],
        Totals(),
    ):
        found += some
    return [finding for finding in found if finding.severity is Severity.DAMAGE]


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Makes brokers, not started yet, that are stopped after the test; what they leave must be sound."""
    made: list[BrokerProcess] = []

    def make(
        settings: Mapping[str, str] | None = None,
        *,
        name: str = "broker",
        arguments: Sequence[str] = (),
        ephemeral: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> BrokerProcess:
        broker = BrokerProcess(
            tmp_path / name, settings, arguments=arguments, ephemeral=ephemeral, environment=environment
        )
        made.append(broker)
        return broker

    yield make
    for broker in made:
        if broker.is_running:
            broker.kill()
    for broker in made:
        if broker.address:  # it has been ready
            assert damages(broker) == []


@pytest.fixture
def start_broker(new_broker: StartBroker) -> StartBroker:
    """Makes brokers that are ready; the arguments are those of ``new_broker``."""

    def start(*values: object, **options: object) -> BrokerProcess:
        broker = new_broker(*values, **options)
        broker.start()
        return broker

    return start
