"""Ports that were free a moment ago, for servers that cannot take one themselves."""

import random
import socket
from typing import Final

BELOW_CLIENTS: Final = range(10_000, 32_768)
"""The kernel gives none of these to whoever connects or asks for any port: a server finds its own again."""


def free_ports(count: int) -> list[int]:
    """``count`` different ports of 127.0.0.1 that nothing listens on."""
    found: list[int] = []
    chance = random.SystemRandom()
    while len(found) < count:
        port = chance.choice(BELOW_CLIENTS)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            held.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
