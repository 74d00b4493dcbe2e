"""Taking the ports of a broker's listeners, before anything else can fail."""

import errno
import os
import socket
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from trio.lowlevel import wait_readable

from broker.network.call import Address, Listener
from broker.network.peer import Peer, SocketPeer
from broker.network.settings import NetworkSettings

_EVERY_ADDRESS: Final = ("", "::")


class ListenError(Exception):
    """A listener cannot be opened; the text is one clear line for the user."""


class Binding(NamedTuple):
    """Where a listener is to be opened.  Port 0 lets the system choose; host ``""`` is every address."""

    listener: Listener
    host: str
    port: int


class Accepted(NamedTuple):
    """Somebody who has connected."""

    peer: Peer
    address: Address
    local_address: Address


class Door(Protocol):
    """A listener whose port is taken: clients can connect, and wait until they are accepted."""

    @property
    def listener(self) -> Listener: ...

    @property
    def address(self) -> Address:
        """The address with the port that was really bound."""

    def accept(self) -> Accepted | None:
        """Let somebody in; None if nobody waits.  Raises OSError, see accept(2)."""

    async def wait(self) -> None:
        """Return when somebody waits."""

    def close(self) -> None:
        """Let nobody in any more."""


class BoundListener(NamedTuple):
    """A door in the network of the operating system."""

    listener: Listener
    socket: socket.socket

    @property
    def address(self) -> Address:
        """The address with the port that was really bound; ``::`` or ``0.0.0.0`` for every address."""
        return address_of(self.socket.getsockname())

    def accept(self) -> Accepted | None:
        try:
            connected, name = self.socket.accept()
        except BlockingIOError:
            return None
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            local_address = address_of(connected.getsockname())
        except OSError as error:
            connected.close()
            raise ConnectionAbortedError("it has left already") from error
        return Accepted(SocketPeer(connected), address_of(name), local_address)

    async def wait(self) -> None:
        await wait_readable(self.socket)

    def close(self) -> None:
        self.socket.close()


def bind_listeners(bindings: Sequence[Binding], settings: NetworkSettings) -> list[BoundListener]:
    """Take all ports, or none and raise ``ListenError``."""
    bound: list[BoundListener] = []
    try:
        for binding in bindings:
            bound.append(BoundListener(binding.listener, _listen(binding, settings)))
    except BaseException:
        for opened in bound:
            opened.close()
        raise
    return bound


def address_of(name: tuple[str, int] | tuple[str, int, int, int]) -> Address:
    """The address that a socket gives, an IPv4 one as such even where an IPv6 socket serves it."""
    host, port = name[:2]
    return Address(host.removeprefix("::ffff:") if "." in host else host, port)


def _listen(binding: Binding, settings: NetworkSettings) -> socket.socket:
    where = f"listener {binding.listener.name}: port {binding.port}"
    try:
        if binding.host in _EVERY_ADDRESS:
            return _open_everywhere(binding.port, settings)
        family, address = _resolve(binding.host, binding.port)
        return _open(family, address, settings)
    except socket.gaierror as error:
        raise ListenError(
            f"listener {binding.listener.name}: the host {binding.host} is unknown ({error.strerror})"
        ) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ListenError(f"{where} is in use by another process") from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise ListenError(
                f"listener {binding.listener.name}: {binding.host} is not an address of this machine"
            ) from error
        raise ListenError(f"{where} cannot be opened: {error.strerror or error}") from error


def _resolve(host: str, port: int) -> tuple[int, tuple[str, int]]:
    """The first address of ``host``, and IPv4 before IPv6, as Java chooses."""
    # As bytes: text would load Python's codec for international names, a tenth of the start-up time.
    name = host.encode("ascii") if host.isascii() else host
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]


def _open_everywhere(port: int, settings: NetworkSettings) -> socket.socket:
    """One socket for every address, of both families where the system knows both."""
    try:
        return _open(socket.AF_INET6, ("::", port), settings)
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
        return _open(socket.AF_INET, ("0.0.0.0", port), settings)


def _open(family: int, address: tuple[str, int], settings: NetworkSettings) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        if os.name == "posix":  # on Windows this option would let two brokers share the port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        if settings.receive_buffer_bytes is not None:
            # Before listening: the window that a connection can have is settled when it begins.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        if settings.send_buffer_bytes is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
        opened.bind(address)
        opened.listen(settings.backlog)
    except BaseException:
        opened.close()
        raise
    return opened
