"""The settings of the network, as Kafka names them, in the form in which connections use them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from broker import limits


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

    connections_per_address_overrides: Mapping[str, int] = {}
    """``max.connections.per.ip.overrides``, by address."""

    backlog: int = 50
    """``socket.listen.backlog.size``"""

    send_buffer_bytes: int | None = None
    """``socket.send.buffer.bytes`` if the user has set it; otherwise the system sizes it as it needs."""

    receive_buffer_bytes: int | None = None
    """``socket.receive.buffer.bytes`` if the user has set it; otherwise the system sizes it as it needs."""
