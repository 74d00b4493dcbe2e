"""The addresses a broker listens on and those it tells clients, as ``listeners`` and its kin say."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from broker.config.value_types import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_PROTECTED = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")

_ADDRESS = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


class ListenerAddress(NamedTuple):
    """One entry of ``listeners`` or ``advertised.listeners``.

    ``host`` is empty for "every interface" (listening) or "not said" (advertised); ``port`` 0 asks for a free
    one. The name is in capitals, whatever the properties file says.
    """

    name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def protocols_by_listener(
    texts: str, *, is_set: bool, listeners: Sequence[str], controller_names: Sequence[str]
) -> dict[str, str]:
    """``listener.security.protocol.map``: which protocol each listener name speaks.

    While the map is not set and nothing else asks for protection, controller listeners speak PLAINTEXT.
    """
    setting = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for name, protocol in read_pairs(setting, texts):
        known = protocol.upper()
        if known not in SECURITY_PROTOCOLS:
            raise ConfigError(f"Invalid security protocol `{protocol}` defined in {setting}")
        protocols[normalised(name)] = known
    if is_set or not _PROTECTED_NAMES.isdisjoint((*controller_names, *map(_name_of, listeners))):
        return protocols
    for name in controller_names:
        if name != "PLAINTEXT":
            protocols[name] = "PLAINTEXT"
    return protocols


_PROTECTED_NAMES = frozenset(_PROTECTED)


def read_pairs(setting: str, text: str) -> Iterable[tuple[str, str]]:
    """``name:value`` pairs with commas between them; a name may hold colons, a value not.

    Commas at the end mean nothing, as in Java.
    """
    text = text.rstrip(", ")
    for entry in text.split(","):
        name, colon, value = entry.strip().rpartition(":")
        if not colon:
            if text:
                reason = f"'{entry}' is not of the form name:value"
                raise ConfigError(f"Error parsing configuration property '{setting}': {reason}")
            return
        yield name.strip(), value.strip()


def read_addresses(
    entries: Sequence[str], protocols: Mapping[str, str], *, distinct_ports: bool
) -> list[ListenerAddress]:
    """Parse ``name://host:port`` entries; names, and ports where asked, must differ.

    One port may serve twice if one address is IPv4 and the other IPv6.
    """
    try:
        addresses = [_read_address(entry, protocols) for entry in entries]
        _check_distinct(entries, addresses, distinct_ports=distinct_ports)
    except ConfigError as error:
        shown = f"[{', '.join(entries)}]"
        raise ConfigError(f"Error creating broker listeners from '{shown}': {error.message}") from None
    return addresses


def _read_address(entry: str, protocols: Mapping[str, str]) -> ListenerAddress:
    match = _ADDRESS.fullmatch(entry)
    if match is None:
        raise ConfigError(f"Unable to parse {entry} to a broker endpoint")
    name = normalised(match[1])
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(f"No security protocol defined for listener {name}")
    return ListenerAddress(name, protocol, match[2], int(match[3]))


def _check_distinct(
    entries: Sequence[str], addresses: Sequence[ListenerAddress], *, distinct_ports: bool
) -> None:
    shown = f"[{', '.join(entries)}]"
    if len({address.name for address in addresses}) != len(addresses):
        raise ConfigError(f"Each listener must have a different name, listeners: {shown}")
    if not distinct_ports:
        return
    by_port: dict[int, list[ListenerAddress]] = {}
    for address in addresses:
        if address.port:
            by_port.setdefault(address.port, []).append(address)
    for port, sharing in by_port.items():
        if len(sharing) == 1:
            continue
        families = sorted(_family(address.host) for address in sharing)
        named = families.count(0)  # by a host's name, or every interface
        if named > 1 or (named == 1 and len(sharing) > 2):
            raise ConfigError(f"Each listener must have a different port, listeners: {shown}")
        if named == 1 or len(sharing) > 2:
            raise ConfigError(
                "Each listener must have a different port unless exactly one listener has an IPv4 address "
                f"and the other IPv6 address, listeners: {shown}, port: {port}"
            )
        if families != [4, 6]:
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
                f"listeners: {shown}, port: {port}"
            )


def _family(host: str) -> int:
    """4 or 6 for an IP address, 0 for anything else."""
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isdigit() and int(part) < 256 for part in parts) else 0


def _name_of(entry: str) -> str:
    name, colon, _ = entry.partition(":")
    if not colon:
        reason = f"Unable to parse a listener name from {entry}"
        raise ConfigError(f"{reason} in listeners", wire_message=reason)
    return name.upper()


def normalised(name: str) -> str:
    """A listener's name as it is compared.  Raises ConfigError if there is none."""
    if not name:
        raise ConfigError("The provided listener name is null or empty string")
    return name.upper()
