"""Who asks, and through which door: what a handler knows about a request beside its body."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.quotas.desk import Meter
    from broker.services import Services


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener(NamedTuple):
    """The named door through which a connection came in."""

    name: str
    is_controller: bool = False


class RequestHeader(NamedTuple):
    """What every request begins with."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


class ConnectionState:
    """What is known about a connection for as long as it lasts.  Handlers may read and write it.

    ``client_software_name`` and ``client_software_version`` are what ApiVersions v3+ told (KIP-511), or
    empty.  ``deaf_until`` is Trio's time up to which nothing more is read (KIP-219).  ``is_forwarded``: this
    stands for a connection to another broker, which passes on what came over it (KIP-590).
    """

    __slots__ = (
        "_when_closed",
        "client_software_name",
        "client_software_version",
        "deaf_until",
        "is_forwarded",
        "listener",
        "local_address",
        "number",
        "peer",
    )

    def __init__(self, number: int, listener: Listener, peer: Address, local_address: Address) -> None:
        self.number = number
        self.listener = listener
        self.peer = peer
        self.local_address = local_address
        self.client_software_name = ""
        self.client_software_version = ""
        self.deaf_until = 0.0
        self.is_forwarded = False
        self._when_closed: dict[Hashable, Callable[[], None]] | None = None

    def __str__(self) -> str:
        return f"{self.peer} ({self.listener.name})"

    def mute(self, until: float) -> None:
        """Be deaf until then, or longer if something else has made it so."""
        self.deaf_until = max(self.deaf_until, until)

    def when_closed(self, key: Hashable, callback: Callable[[], None]) -> None:
        """Call this when the connection ends, in the place of what was given under the same key."""
        if self._when_closed is None:
            self._when_closed = {}
        self._when_closed[key] = callback

    def closed(self) -> None:
        """The connection has ended."""
        callbacks, self._when_closed = self._when_closed, None
        for callback in (callbacks or {}).values():
            callback()


class Call:
    """One request on its way through a handler.

    ``received_ms`` is the wall time at which its last byte was read.
    """

    meter: "Meter | None" = None
    """What the request uses of its client's quotas; None while nobody has any."""

    __slots__ = ("api_key", "client_id", "connection", "correlation_id", "received_ms", "services", "version")

    def __init__(
        self,
        services: "Services",
        connection: ConnectionState,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        received_ms: int,
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_ms = received_ms

    @property
    def header(self) -> RequestHeader:
        return RequestHeader(self.api_key, self.version, self.correlation_id, self.client_id)

    @property
    def peer(self) -> Address:
        """Where the request came from."""
        return self.connection.peer

    @property
    def listener(self) -> Listener:
        """The door it came through."""
        return self.connection.listener

    @property
    def local_address(self) -> Address:
        """The address by which the peer reached us."""
        return self.connection.local_address


class MeteredCall(Call):
    """A request whose client may have quotas."""

    __slots__ = ("meter",)

    def __init__(
        self,
        services: "Services",
        connection: ConnectionState,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        received_ms: int,
        meter: "Meter",
    ) -> None:
        super().__init__(services, connection, api_key, version, correlation_id, client_id, received_ms)
        self.meter = meter
