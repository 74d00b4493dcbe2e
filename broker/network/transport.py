"""How this node reaches others: the one place where outgoing connections are opened."""

import socket
from typing import Protocol

import trio

from broker.network.call import Address
from broker.network.peer import Peer, SocketPeer


class Transport(Protocol):
    """Opens connections to other nodes.  A simulation has one without sockets."""

    async def connect(self, address: Address) -> Peer:
        """A connected peer.  Raises OSError if nobody is there."""


class SocketTransport:
    """Plain TCP.  TLS would wrap the socket here, and SASL follow it."""

    async def connect(self, address: Address) -> Peer:
        last: OSError | None = None
        found = await trio.socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, name in found:
            opened = trio.socket.socket(family, kind, protocol)
            try:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await opened.connect(name)
            except OSError as error:
                opened.close()
                last = error
            except BaseException:
                opened.close()
                raise
            else:
                return SocketPeer(socket.socket(fileno=opened.detach()))
        raise last or OSError(f"{address} has no address")
