"""The smallest client there is: bytes made by hand, for questions asked before any library is loaded."""

import socket

API_VERSIONS_V0 = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
"""Length, key 18, version 0, correlation id 7, no client id."""


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` as the pair that sockets want."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """``size`` bytes, or fewer if the peer closes first."""
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            break
        received += part
    return bytes(received)


def receive_frame(connection: socket.socket) -> bytes:
    """One answer without its length, or ``b""`` if the peer closes first."""
    size = receive_exactly(connection, 4)
    if len(size) < 4:
        return b""
    return receive_exactly(connection, int.from_bytes(size, "big"))


def answers_api_versions(address: str, *, timeout_seconds: float = 2) -> bool:
    """Whether a broker at ``address`` answers the first question of every client."""
    try:
        with socket.create_connection(split_address(address), timeout=timeout_seconds) as connection:
            connection.sendall(API_VERSIONS_V0)
            return receive_frame(connection)[:6] == bytes.fromhex("00000007 0000")
    except OSError:
        return False
