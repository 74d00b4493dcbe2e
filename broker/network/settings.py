"""The settings of the network, as Kafka names them, in the form in which connections use them."""

import functools
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Self

from broker import limits

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

    connections_max: int = 2_147_483_647
    """``max.connections`` of the broker: those beyond wait in the backlog."""

    connections_per_address_max: int = 2_147_483_647
    """``max.connections.per.ip``: those beyond are closed at once."""

    connections_per_address_overrides: Mapping[str, int] = _NOBODY
    """``max.connections.per.ip.overrides``, by address."""

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
            connections_max=config.get("max.connections"),
            connections_per_address_max=config.get("max.connections.per.ip"),
            connections_per_address_overrides=_read_overrides(config.get("max.connections.per.ip.overrides")),
            backlog=_backlog(config),
            send_buffer_bytes=_size_if_set(config, "socket.send.buffer.bytes"),
            receive_buffer_bytes=_size_if_set(config, "socket.receive.buffer.bytes"),
        )


def _backlog(config: "BrokerConfig") -> int:
    name = "socket.listen.backlog.size"
    return int(config.get(name)) if config.is_set(name) else NetworkSettings._field_defaults["backlog"]


def _size_if_set(config: "BrokerConfig", name: str) -> int | None:
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
            address = socket.getaddrinfo(host, None)[0][4][0]
            overrides[str(address)] = int(count)
        except (OSError, ValueError) as error:
            raise ConfigError(f"Invalid value {text} for configuration {name}: {host}:{count}") from error
    return overrides
