"""The addresses of hosts that have limits of their own."""

import functools
import socket
from typing import TYPE_CHECKING, Final

from broker.quotas.connections import AddressLimits
from broker.quotas.keys import CONNECTION_CREATION_RATE, IP

if TYPE_CHECKING:
    from broker.logs import Log
    from broker.metadata.image import MetadataImage

ADDRESSES_KEPT_MAX: Final = 1000
"""Hosts whose addresses are remembered; further ones are looked up again."""


class UnknownHost(Exception):
    """There is no host of this name."""


@functools.lru_cache(ADDRESSES_KEPT_MAX)
def address_of(host: str) -> str:
    """The first address of ``host``, IPv4 before IPv6.  ``UnknownHost`` is not remembered.

    Blocks for what is no address, unless it is remembered.
    """
    name = host[1:-1] if ":" in host and host[0] == "[" and host[-1] == "]" else host
    if "\0" in name:  # the system would not look behind it
        raise UnknownHost(f"{host} has no address: no name has a null character")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnknownHost(f"{host} has no address: {error}") from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    address = str(found[0][4][0])
    return address.removeprefix("::ffff:") if "." in address else address


def address_limits(image: "MetadataImage", log: "Log") -> AddressLimits:
    """How soon addresses may come again, by the ip entities of an image."""
    rates: dict[str | None, int] = {}
    for entity, quotas in image.quotas.items():
        ((kind, host), *_) = entity
        if kind == IP and CONNECTION_CREATION_RATE in quotas:
            try:
                address = None if host is None else address_of(host)
            except UnknownHost as unknown:
                log.warn(f"the quota of {host} has no effect: {unknown}")
                continue
            rates[address] = int(quotas[CONNECTION_CREATION_RATE])
    return AddressLimits(rates.items())
