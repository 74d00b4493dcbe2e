"""How this node and others reach each other: the one place where connections are opened and ports taken."""

import os
import socket
from collections.abc import Sequence
from typing import Protocol

import trio

from broker.network.binding import Binding, Door, bind_listeners
from broker.network.call import Address
from broker.network.peer import Peer, SocketPeer
from broker.network.settings import NetworkSettings


class Transport(Protocol):
    """Opens connections to other nodes, and ports for them.  A simulation has one without sockets."""

    async def connect(self, address: Address, *, receive_buffer_bytes: int | None = None) -> Peer:
        """A connected peer.  Raises OSError if nobody is there.

        Its receive buffer is sized by the system as it needs, if nobody says otherwise.
        """

    def listen(self, bindings: Sequence[Binding], settings: NetworkSettings) -> Sequence[Door]:
        """Take all ports, or none and raise ``ListenError``."""


class SocketTransport:
    """Plain TCP.  TLS would wrap the socket here, and SASL follow it."""

    async def connect(self, address: Address, *, receive_buffer_bytes: int | None = None) -> Peer:
        last: OSError | None = None
        try:
            found = await trio.socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except ValueError as error:  # others say where they are, and may say what can be no name
            raise OSError("that can be no host's name") from error
        for family, kind, protocol, _, name in found:
            opened = trio.socket.socket(family, kind, protocol)
            try:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if receive_buffer_bytes is not None:
                    # Before connecting: the window that a connection can have is settled when it begins.
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
                await opened.connect(name)
            except OSError as error:
                opened.close()
                last = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
            except BaseException:
                opened.close()
                raise
            else:
                return SocketPeer(socket.socket(fileno=opened.detach()))
        raise last or OSError(f"{address} has no address")

    def listen(self, bindings: Sequence[Binding], settings: NetworkSettings) -> Sequence[Door]:
        return bind_listeners(bindings, settings)
