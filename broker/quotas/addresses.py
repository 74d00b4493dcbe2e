"""The addresses of hosts that have limits of their own."""

import socket
from collections.abc import Iterable
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


_known: dict[str, str] = {}


def address_of(host: str) -> str:
    """The first address of ``host``, IPv4 before IPv6.  ``UnknownHost`` is not remembered.

    Blocks for what is no address, unless it is remembered.
    """
    return _known.get(host) or _find(host)


def _find(host: str, flags: int = 0) -> str:
    name = host[1:-1] if ":" in host and host[0] == "[" and host[-1] == "]" else host
    if "\0" in name:  # the system would not look behind it
        raise UnknownHost(f"{host} has no address: no name has a null character")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        raise UnknownHost(f"{host} has no address: {error}") from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    address = str(found[0][4][0])
    if "." in address:
        address = address.removeprefix("::ffff:")
    if len(_known) >= ADDRESSES_KEPT_MAX:
        _known.clear()
    _known[host] = address
    return address


def hosts_to_look_up(image: "MetadataImage") -> list[str]:
    """Those among the ip entities of an image whose addresses only the system's resolver can tell."""
    return [host for host in _hosts(image) if host is not None and _address_at_once(host) is None]


def look_up(hosts: Iterable[str], log: "Log") -> None:
    """Remember where these are, or say which are nowhere.  Blocks."""
    for host in hosts:
        try:
            address_of(host)
        except UnknownHost as unknown:
            log.warn(f"the quota of {host} has no effect: {unknown}")


def address_limits(image: "MetadataImage") -> AddressLimits:
    """How soon addresses may come again, by the ip entities of an image whose addresses are known."""
    rates: dict[str | None, int] = {}
    for host, rate in _hosts(image).items():
        address = None if host is None else _address_at_once(host)
        if host is None or address is not None:
            rates[address] = int(rate)
    return AddressLimits(rates.items())


def _hosts(image: "MetadataImage") -> dict[str | None, float]:
    """The hosts that have a limit, None for all others."""
    return {
        host: quotas[CONNECTION_CREATION_RATE]
        for ((kind, host), *_), quotas in image.quotas.items()
        if kind == IP and CONNECTION_CREATION_RATE in quotas
    }


def _address_at_once(host: str) -> str | None:
    """The address, if that is what ``host`` says, or if it is remembered."""
    try:
        return _known.get(host) or _find(host, socket.AI_NUMERICHOST)
    except UnknownHost:
        return None
