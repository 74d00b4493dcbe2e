"""Ports that were free a moment ago, for servers that cannot take one themselves."""

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """``count`` different ports of 127.0.0.1 that nothing listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [held.getsockname()[1] for held in sockets]
