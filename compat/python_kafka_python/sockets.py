"""kafka-python 3.0 forgets the socket of a connection attempt when its client is closed meanwhile.

It would be found unclosed at any time later, and fail whatever test runs then.
"""

import socket
from typing import Any

from kafka.net.inet import KafkaNetSocket


class _Socket(socket.socket):
    """Closes itself when nobody has it any more."""

    def __del__(self) -> None:
        self.close()


def _opened(_: Any, family: int, kind: int, protocol: int) -> socket.socket:
    return _Socket(family, kind, protocol)


def close_forgotten_sockets() -> None:
    """From now on in this process."""
    KafkaNetSocket.socket = _opened
