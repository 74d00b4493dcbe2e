"""The other end of a connection: a non-blocking socket and Trio's way of waiting for it.

``trio.socket`` would cost about twice the processor time of the raw socket.
"""

import errno
import os
import socket
from typing import Final, Protocol

from trio.lowlevel import checkpoint, wait_readable, wait_writable

from broker import limits

_MORE = getattr(socket, "MSG_MORE", 0)
"""Tells Linux that the next bytes follow at once, so that a header travels with the records behind it."""


_GONE: Final = frozenset(
    {
        errno.EPIPE,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.ENOTCONN,
        errno.ETIMEDOUT,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
    }
)


class PeerGone(Exception):
    """The peer has closed, reset or lost the connection: nothing more can be sent or received."""


class Peer(Protocol):
    """What a connection needs from its other end.  Every method may raise ``PeerGone``.

    ``transfers`` counts the times that bytes have moved in either direction: while it stands still,
    the peer is idle.
    """

    transfers: int

    sends_files: bool
    """Whether ``send_file`` works: it does not where bytes have to be encrypted on their way."""

    def receive_nowait(self, space: memoryview) -> int | None:
        """Fill the beginning of ``space``.  How many bytes; 0 when the peer sends no more; None when
        nothing is there yet."""

    async def wait_readable(self) -> None:
        """Wait until ``receive_nowait`` may have something."""

    async def send(self, data: bytes | bytearray, *, more: bool = False) -> None:
        """Send all of ``data``.  ``more`` says that further bytes follow immediately."""

    async def send_file(self, descriptor: int, position: int, size: int) -> None:
        """Send ``size`` bytes of an open file without reading them.  ``EOFError`` if it is shorter."""

    def close(self) -> None:
        """Close at once.  Nobody may be waiting for this peer any more."""


class SocketPeer:
    """A peer behind a plain TCP socket, which it owns from now on."""

    __slots__ = ("_socket", "transfers")

    sends_files = True

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self.transfers = 0

    def receive_nowait(self, space: memoryview) -> int | None:
        try:
            count = self._socket.recv_into(space)
        except BlockingIOError:
            return None
        except OSError as error:
            raise PeerGone(_reason(error)) from error
        self.transfers += 1
        return count

    async def wait_readable(self) -> None:
        await wait_readable(self._socket)

    async def send(self, data: bytes | bytearray, *, more: bool = False) -> None:
        flags = _MORE if more else 0
        try:
            sent = self._socket.send(data, flags)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise PeerGone(_reason(error)) from error
        self.transfers += 1
        if sent == len(data):
            return
        with memoryview(data) as view:
            while sent < len(view):
                await wait_writable(self._socket)
                try:
                    sent += self._socket.send(view[sent:], flags)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise PeerGone(_reason(error)) from error
                self.transfers += 1

    async def send_file(self, descriptor: int, position: int, size: int) -> None:
        target = self._socket.fileno()
        end = position + size
        while position < end:
            try:
                sent = os.sendfile(
                    target, descriptor, position, min(end - position, limits.SENDFILE_BYTES_MAX)
                )
            except BlockingIOError:
                await wait_writable(self._socket)
                continue
            except OSError as error:
                if error.errno in _GONE:
                    raise PeerGone(_reason(error)) from error
                raise  # the file cannot be read
            if sent == 0:
                raise EOFError(f"{end - position} of {size} bytes are missing in the file")
            position += sent
            self.transfers += 1
            await checkpoint()  # a peer that takes everything at once must not starve the others

    def close(self) -> None:
        self._socket.close()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
