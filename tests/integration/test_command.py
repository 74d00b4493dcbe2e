"""The command with clients and directories around it; ``tests/ottla`` has what it needs none for."""

import os
import signal
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from compat.broker_process import BrokerProcess
from compat.probe import answers_api_versions
from compat.raw_client import RawClient
from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow

CLIENT_COUNT = 50


def refusal(broker: BrokerProcess) -> str:
    """The one line with which a broker refuses to start."""
    with pytest.raises(RuntimeError, match=r"the broker ended with [1-9]"):
        broker.start()
    lines = broker.log().splitlines()
    assert len(lines) == 1, broker.log()
    return lines[0]


def test_ready_means_ready(start_broker: StartBroker) -> None:
    broker = start_broker()
    assert answers_api_versions(broker.address)
    assert broker.address in broker.log()
    assert len(broker.log().splitlines()) <= 3, broker.log()


def test_nothing_is_logged_per_request(start_broker: StartBroker) -> None:
    broker = start_broker(ephemeral=True)
    before = broker.log()
    with RawClient(broker.address) as client:
        for _ in range(20):
            client.greet()
    assert broker.log() == before


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_it_with_clients_connected(how: signal.Signals, start_broker: StartBroker) -> None:
    broker = start_broker()
    clients = [RawClient(broker.address) for _ in range(CLIENT_COUNT)]
    for client in clients:
        client.greet()
    assert broker.stop(how) == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    for client in clients:
        client.close()


def test_a_second_signal_does_not_cut_the_stop_short(start_broker: StartBroker) -> None:
    """As ``timeout`` sends it, first to the process and then to its group."""
    broker = start_broker()
    os.kill(broker.pid, signal.SIGINT)
    assert broker.stop(signal.SIGTERM) == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()


def test_a_locked_directory_is_named(start_broker: StartBroker, new_broker: StartBroker) -> None:
    first = start_broker()
    second = new_broker(name="second")
    second.data = first.data
    assert str(first.data) in refusal(second)
    assert answers_api_versions(first.address)


def test_the_directory_of_another_node_is_refused(start_broker: StartBroker, new_broker: StartBroker) -> None:
    first = start_broker({"node.id": "1"})
    first.stop()
    second = new_broker({"node.id": "2"}, name="second")
    second.data = first.data
    line = refusal(second)
    assert "1" in line
    assert "2" in line


def test_a_directory_of_something_else_is_refused(new_broker: StartBroker) -> None:
    broker = new_broker()
    broker.data.mkdir()
    (broker.data / "meta.properties").write_text("version=77\n")
    assert "meta.properties" in refusal(broker)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.segment.bytes", "many"),
        ("num.partitions", "0"),
        ("listeners", "PLAINTEXT"),
        ("process.roles", "boss"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_setting(
    name: str, value: str, new_broker: StartBroker
) -> None:
    assert name in refusal(new_broker({name: value}))


def test_an_unknown_name_in_a_properties_file_is_a_warning(new_broker: StartBroker, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("# a comment\nnum.partitions = 7\nno.such.setting: 5\n")
    broker = new_broker(arguments=[str(properties)])
    broker.start()
    assert "no.such.setting" in broker.log()
    assert setting(broker.address, "num.partitions") == "7"


def setting(address: str, name: str) -> str:
    """A setting of the broker as DescribeConfigs shows it."""
    admin = AdminClient({"bootstrap.servers": address})
    (node,) = admin.list_topics(timeout=30).brokers
    resource = ConfigResource(ConfigResource.Type.BROKER, str(node))
    (future,) = admin.describe_configs([resource]).values()
    value = future.result(30)[name].value
    assert isinstance(value, str)
    return value
