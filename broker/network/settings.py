"""The settings of the network, as Kafka names them, in the form in which connections use them."""

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Self

from broker import limits
from broker.quotas.addresses import UnknownHost, address_of
from broker.quotas.connections import NO_LIMITS, ConnectionLimits, ListenerLimits
from broker.quotas.rates import Windows

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig

_NOBODY: Mapping[str, int] = MappingProxyType({})


class NetworkSettings(NamedTuple):
    """Limits of connections.  Every default is Kafka's, except where its line says more."""

    request_bytes_max: int = 104_857_600
    """``socket.request.max.bytes``: a longer request closes the connection as soon as it is announced."""

    queued_request_bytes_max: int = limits.UNFINISHED_REQUEST_BYTES_MAX
    """``queued.max.request.bytes``; Kafka sets no bound by default."""

    idle_ms_max: int = 600_000
    """``connections.max.idle.ms``; negative: connections may be idle for ever."""

    connections: ConnectionLimits = ConnectionLimits()
    """How many connections there may be, and how soon new ones may come: those beyond wait, or are closed."""

    connections_of_controllers: ConnectionLimits = ConnectionLimits()
    """The same for the listeners of the controller, which are counted by themselves."""

    windows: Windows = Windows(11, 1000)
    """``quota.window.num`` and ``quota.window.size.seconds``: over what time rates are taken."""

    backlog: int = 1024
    """``socket.listen.backlog.size`` if the user has set it.  Kafka's 50 would make most clients of a large
    burst wait for a second or more before they try again."""

    send_buffer_bytes: int | None = None
    """``socket.send.buffer.bytes`` if the user has set it; otherwise the system sizes it as it needs."""

    receive_buffer_bytes: int | None = None
    """``socket.receive.buffer.bytes`` if the user has set it; otherwise the system sizes it as it needs."""

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> Self:
        """What the broker's settings say; ``ConfigError`` for an override whose host is unknown."""
        queued: int = config.get("queued.max.request.bytes")
        return cls(
            request_bytes_max=config.get("socket.request.max.bytes"),
            queued_request_bytes_max=queued if queued > 0 else limits.UNFINISHED_REQUEST_BYTES_MAX,
            idle_ms_max=config.get("connections.max.idle.ms"),
            connections=_limits(config, [address.name for address in config.broker_listeners]),
            connections_of_controllers=_limits(
                config, [address.name for address in config.controller_listeners]
            ),
            windows=Windows(config.get("quota.window.num"), config.get("quota.window.size.seconds") * 1000),
            backlog=_backlog(config),
            send_buffer_bytes=size_if_set(config, "socket.send.buffer.bytes"),
            receive_buffer_bytes=size_if_set(config, "socket.receive.buffer.bytes"),
        )


def _limits(config: "BrokerConfig", listeners: Sequence[str]) -> ConnectionLimits:
    protected = config.inter_broker_listener_name
    of_listeners = {
        name: ListenerLimits(
            config.of_listener(name, "max.connections"),
            config.of_listener(name, "max.connection.creation.rate"),
        )
        for name in listeners
    }
    return ConnectionLimits(
        connections_max=config.get("max.connections"),
        rate_max=config.get("max.connection.creation.rate"),
        per_address_max=config.get("max.connections.per.ip"),
        per_address_overrides=_read_overrides(config.get("max.connections.per.ip.overrides")),
        listeners={name: own for name, own in of_listeners.items() if own != NO_LIMITS},
        protected=protected if protected in listeners and len(listeners) > 1 else None,
    )


def _backlog(config: "BrokerConfig") -> int:
    name = "socket.listen.backlog.size"
    return int(config.get(name)) if config.is_set(name) else NetworkSettings._field_defaults["backlog"]


def size_if_set(config: "BrokerConfig", name: str) -> int | None:
    """The size of a buffer of the system's, in bytes; None leaves it to the system, as -1 does."""
    size: int = config.get(name)
    return size if config.is_set(name) and size > 0 else None


@functools.cache
def _read_overrides(text: str) -> Mapping[str, int]:
    """``host:count`` pairs; hosts are looked up once, as in Kafka."""
    if not text:
        return _NOBODY
    from broker.config.listeners import read_pairs
    from broker.config.value_types import ConfigError

    name = "max.connections.per.ip.overrides"
    overrides = {}
    for host, count in read_pairs(name, text):
        try:
            overrides[address_of(host)] = int(count)
        except (UnknownHost, ValueError) as error:
            raise ConfigError(f"Invalid value {text} for configuration {name}: {host}:{count}") from error
    return overrides
