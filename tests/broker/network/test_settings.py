import pytest

from broker import limits
from broker.config.broker_config import BrokerConfig
from broker.config.value_types import ConfigError
from broker.network.settings import NetworkSettings
from broker.quotas.connections import ConnectionLimits, ListenerLimits
from broker.quotas.rates import Windows

LIMITS = ConnectionLimits(4, per_address_max=5, per_address_overrides={"127.0.0.1": 6, "10.0.0.7": 0})


def test_the_defaults_are_those_of_the_configuration() -> None:
    assert NetworkSettings.from_config(BrokerConfig({})) == NetworkSettings()


def test_settings_are_taken_over() -> None:
    settings = NetworkSettings.from_config(
        BrokerConfig(
            {
                "socket.request.max.bytes": "1000",
                "queued.max.request.bytes": "2000",
                "connections.max.idle.ms": "3000",
                "max.connections": "4",
                "max.connections.per.ip": "5",
                "max.connections.per.ip.overrides": "127.0.0.1:6, 10.0.0.7:0",
                "quota.window.num": "12",
                "quota.window.size.seconds": "2",
                "socket.listen.backlog.size": "7",
                "socket.send.buffer.bytes": "8000",
                "socket.receive.buffer.bytes": "9000",
            }
        )
    )
    assert settings == NetworkSettings(
        1000,
        2000,
        3000,
        LIMITS._replace(listeners={"PLAINTEXT": ListenerLimits(4)}),
        LIMITS._replace(listeners={"CONTROLLER": ListenerLimits(4)}),
        Windows(12, 2000),
        7,
        send_buffer_bytes=8000,
        receive_buffer_bytes=9000,
    )


def test_listeners_have_limits_of_their_own() -> None:
    config = BrokerConfig(
        {
            "listeners": "PLAINTEXT://:1,INTERNAL://:2,CONTROLLER://:3",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "controller.listener.names": "CONTROLLER",
            "max.connections": "10",
            "max.connection.creation.rate": "20",
            "listener.name.internal.max.connections": "30",
            "listener.name.internal.max.connection.creation.rate": "40",
            "listener.name.CONTROLLER.max.connections": "50",
        }
    )
    config.apply_dynamic({"listener.name.internal.max.connections": "60"}, {})
    settings = NetworkSettings.from_config(config)
    assert settings.connections == ConnectionLimits(
        10,
        20,
        listeners={"PLAINTEXT": ListenerLimits(10, 20), "INTERNAL": ListenerLimits(60, 40)},
        protected="INTERNAL",
    )
    assert settings.connections_of_controllers == ConnectionLimits(
        10, 20, listeners={"CONTROLLER": ListenerLimits(10, 20)}
    )


def test_the_system_sizes_buffers_of_minus_one() -> None:
    config = BrokerConfig({"socket.send.buffer.bytes": "-1", "socket.receive.buffer.bytes": "-1"})
    settings = NetworkSettings.from_config(config)
    assert (settings.send_buffer_bytes, settings.receive_buffer_bytes) == (None, None)


def test_memory_has_a_bound_of_our_own_where_kafka_has_none() -> None:
    settings = NetworkSettings.from_config(BrokerConfig({"queued.max.request.bytes": "-1"}))
    assert settings.queued_request_bytes_max == limits.UNFINISHED_REQUEST_BYTES_MAX


@pytest.mark.parametrize("text", ["no-such-host.invalid:5", "127.0.0.1:many", "127.0.0.1"])
def test_overrides_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        NetworkSettings.from_config(BrokerConfig({"max.connections.per.ip.overrides": text}))
