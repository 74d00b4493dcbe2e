"""How a member's address is written where clients and logs have always seen Java write it."""

import socket

_IPV4_MAPPED = bytes(10) + b"\xff\xff"


def java_address(host: str) -> str:
    """``InetAddress.toString`` of a numeric address: a slash, and an IPv6 address without any shortening."""
    address, percent, zone = host.partition("%")
    if ":" not in address:
        return f"/{host}"
    packed = socket.inet_pton(socket.AF_INET6, address)
    if packed.startswith(_IPV4_MAPPED):
        return "/" + ".".join(str(byte) for byte in packed[12:])
    groups = (packed[start : start + 2].hex().lstrip("0") or "0" for start in range(0, 16, 2))
    return f"/{':'.join(groups)}{percent}{zone}"
