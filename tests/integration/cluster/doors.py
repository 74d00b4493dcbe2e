"""Doors between processes that can be shut: all that passes through one is cut, and nobody gets in."""

import socket
import threading
from typing import Final

HOST: Final = "127.0.0.1"
PIECE: Final = 1 << 16


class Door:
    """A port of this machine that leads to another one, while it is open."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._lock = threading.Lock()
        self._inside: set[socket.socket] = set()
        self._is_open = True
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Cut every connection, and let nobody in."""
        with self._lock:
            self._is_open = False
            inside, self._inside = self._inside, set()
        for connected in inside:
            _cut(connected)

    def open(self) -> None:
        """Let everybody in again."""
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        """For ever."""
        self.shut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                outer, _ = self._listener.accept()
            except OSError:
                return
            try:
                inner = socket.create_connection((HOST, self.target))
            except OSError:
                outer.close()
                continue
            try:
                for each in (outer, inner):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                outer.close()
                inner.close()
                continue
            with self._lock:
                is_open = self._is_open
                if is_open:
                    self._inside |= {outer, inner}
            if not is_open:
                _cut(outer)
                _cut(inner)
                continue
            for source, sink in ((outer, inner), (inner, outer)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(PIECE):
                sink.sendall(piece)
        except OSError:
            pass
        with self._lock:
            self._inside -= {source, sink}
        _cut(source)
        _cut(sink)


def _cut(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connected.close()
