"""Who a client is, as one node tells another (KIP-590), behind its version."""

import struct
from typing import Final

from protocol.errors import DecodeError
from protocol.primitives import BOOL, STRING, Buffer
from protocol.schema import Message, wire

VERSION: Final = 0

_VERSION: Final = struct.Struct(">h")


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """``type`` is nearly always ``User``; ``token_authenticated`` says that a delegation token was shown."""

    type: str = wire(STRING, "0+", default="")
    name: str = wire(STRING, "0+", default="")
    token_authenticated: bool = wire(BOOL, "0+", default=False)


ANONYMOUS: Final = DefaultPrincipalData(type="User", name="ANONYMOUS")
"""Everybody, where nobody is asked who they are."""


def encode_principal(principal: DefaultPrincipalData) -> bytes:
    """What goes into an Envelope."""
    return _VERSION.pack(VERSION) + principal.encode(VERSION)


def decode_principal(data: Buffer) -> DefaultPrincipalData:
    """What came in one; raises DecodeError."""
    if len(data) < _VERSION.size:
        raise DecodeError("a principal without a version")
    (version,) = _VERSION.unpack_from(data)
    if version != VERSION:
        raise DecodeError(f"a principal of version {version}")
    return DefaultPrincipalData.decode_from(data, _VERSION.size, version)[0]
