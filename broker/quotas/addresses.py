"""The addresses of hosts that have limits of their own."""

import functools
import socket
from typing import Final

ADDRESSES_KEPT_MAX: Final = 1000
"""Hosts whose addresses are remembered; further ones are looked up again."""


@functools.lru_cache(ADDRESSES_KEPT_MAX)
def address_of(host: str) -> str:
    """The first address of ``host``, IPv4 before IPv6; ``OSError`` if there is none, which is not remembered.

    Blocks for what is no address, unless it is remembered.
    """
    name = host.removeprefix("[").removesuffix("]") if ":" in host else host
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # no name of a host could look like this
        raise OSError(str(error)) from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    address = str(found[0][4][0])
    return address.removeprefix("::ffff:") if "." in address else address
