"""Listener addresses.  What Kafka refuses among them stands in the recorded checks."""

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import ConfigError
from broker.config.listeners import ListenerAddress, read_pairs


def listeners(**settings: str) -> list[str]:
    config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
    return [str(address) for address in config.listeners]


def test_without_settings_clients_have_a_port_and_the_controller_a_free_one_on_loopback() -> None:
    assert listeners() == ["PLAINTEXT://:9092", "CONTROLLER://127.0.0.1:0"]


def test_the_controller_gets_its_own_port_unless_its_listener_is_named() -> None:
    assert listeners(listeners="PLAINTEXT://:1")[1:] == ["CONTROLLER://127.0.0.1:0"]
    assert listeners(listeners="PLAINTEXT://:1,CONTROLLER://:2") == ["PLAINTEXT://:1", "CONTROLLER://:2"]
    # Who names the controller's listener says everything.
    assert listeners(listeners="PLAINTEXT://:1", controller_listener_names="C") == ["PLAINTEXT://:1"]


def test_names_are_in_capitals_and_hosts_as_they_are() -> None:
    (address, *_) = BrokerConfig({"listeners": "plaintext://[::1]:9092"}).listeners
    assert address == ListenerAddress("PLAINTEXT", "PLAINTEXT", "::1", 9092)
    assert str(address) == "PLAINTEXT://[::1]:9092"


def test_listeners_for_clients_and_for_the_controller() -> None:
    config = BrokerConfig(
        {
            "listeners": "A://a:1,B://b:2,C://c:3,D://d:4",
            "controller.listener.names": "C,D",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT,D:PLAINTEXT",
            "advertised.listeners": "A://x:1,B://y:2",
            "inter.broker.listener.name": "b",
        }
    )
    assert [address.name for address in config.broker_listeners] == ["A", "B"]
    assert [address.name for address in config.controller_listeners] == ["C", "D"]
    assert [str(address) for address in config.advertised_listeners or ()] == ["A://x:1", "B://y:2"]
    assert config.inter_broker_listener_name == "B"


def test_a_controller_that_listens_everywhere_is_where_the_voters_say_it_is() -> None:
    settings = {
        "node.id": "2",
        "controller.quorum.voters": "1@a:1,2@[::1]:7",
        "listeners": "PLAINTEXT://:9092,C://0.0.0.0:9093,D://:9094",
        "controller.listener.names": "C,D",
    }

    def registered(more: dict[str, str]) -> list[str]:
        return [str(address) for address in BrokerConfig({**settings, **more}).advertised_controllers]

    assert registered({}) == ["C://[::1]:7", "D://:9094"]
    assert registered({"node.id": "3"}) == ["C://0.0.0.0:9093", "D://:9094"]
    assert registered({"listeners": "C://b:9093,D://:9094"}) == ["C://b:9093", "D://:9094"]
    assert registered({"advertised.listeners": "C://x:1"}) == ["C://x:1", "D://:9094"]


def test_nothing_is_advertised_unless_it_is_said() -> None:
    assert BrokerConfig({}).advertised_listeners is None
    assert BrokerConfig({}).inter_broker_listener_name == "PLAINTEXT"


def test_a_controller_speaks_plaintext_while_nothing_asks_for_protection() -> None:
    assert BrokerConfig({}).listener_protocols["CONTROLLER"] == "PLAINTEXT"
    assert "CONTROLLER" not in BrokerConfig({"listeners": "SSL://:1"}).listener_protocols
    mapped = BrokerConfig({"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"})
    assert mapped.listener_protocols == {"PLAINTEXT": "PLAINTEXT"}


def test_pairs_split_at_the_last_colon() -> None:
    assert list(read_pairs("x", "::1:5, a : 6")) == [("::1", "5"), ("a", "6")]
    assert list(read_pairs("x", "")) == []
    with pytest.raises(ConfigError, match="Error parsing configuration property 'x': 'b' is not of the form"):
        list(read_pairs("x", "a:1,b"))


def test_each_role_registers_its_own_addresses() -> None:
    config = BrokerConfig(
        {
            "listeners": "A://x:1,C://:2,D://z:3",
            "controller.listener.names": "C,D",
            "listener.security.protocol.map": "A:PLAINTEXT,C:PLAINTEXT,D:PLAINTEXT",
        }
    )
    assert [str(address) for address in config.advertised_brokers] == ["A://x:1"]
    assert [str(address) for address in config.advertised_controllers] == ["C://:2", "D://z:3"]
    config = BrokerConfig({**config.static, "advertised.listeners": "A://outside:4,C://outside:5"})
    assert [str(address) for address in config.advertised_brokers] == ["A://outside:4"]
    assert [str(address) for address in config.advertised_controllers] == ["C://outside:5", "D://z:3"]
