"""The headers that stand before requests and responses.

A request's header has version 2 when the request's version is flexible, else 1; a response's
header 1 or 0 likewise, except that ApiVersions always answers with header version 0, since its
client does not yet know what the broker understands.
"""

import struct

from protocol.errors import DecodeError
from protocol.limits import TAGGED_FIELD_COUNT_MAX
from protocol.primitives import INT16, INT32, STRING, Buffer, read_unsigned_varint
from protocol.schema import Message, wire


class RequestHeader(Message, versions="1-2", flexible="2+"):
    request_api_key: int = wire(INT16, "0+", default=0)
    request_api_version: int = wire(INT16, "0+", default=0)
    correlation_id: int = wire(INT32, "0+", default=0)
    client_id: str | None = wire(STRING, "1+", default="", nullable="1+", flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: int = wire(INT32, "0+", default=0)


_START = struct.Struct(">hhi")
_CLIENT_ID_SIZE = struct.Struct(">h")


def read_request_start(frame: Buffer) -> tuple[int, int, int]:
    """Key, version and correlation id of the request in ``frame``: what is the same in every version."""
    if len(frame) < _START.size:
        raise DecodeError(f"a request of {len(frame)} bytes has no whole header")
    return _START.unpack_from(frame)


def read_client_id(frame: Buffer, *, flexible: bool) -> tuple[str | None, int]:
    """The rest of the header: the client id, and where the request's body begins."""
    position = _START.size + _CLIENT_ID_SIZE.size
    if len(frame) < position:
        raise DecodeError("a request's header ends before the client id")
    (size,) = _CLIENT_ID_SIZE.unpack_from(frame, _START.size)
    client_id = None
    if size >= 0:
        end = position + size
        if end > len(frame):
            raise DecodeError("a request's header ends inside the client id")
        client_id = str(frame[position:end], "utf-8", "replace")
        position = end
    if flexible:
        if position < len(frame) and not frame[position]:
            return client_id, position + 1
        position = _skip_tagged_fields(frame, position)
    return client_id, position


def _skip_tagged_fields(frame: Buffer, position: int) -> int:
    count, position = read_unsigned_varint(frame, position)
    if count > TAGGED_FIELD_COUNT_MAX:
        raise DecodeError(f"a request's header has {count} tagged fields")
    for _ in range(count):
        _, position = read_unsigned_varint(frame, position)
        size, position = read_unsigned_varint(frame, position)
        position += size
        if position > len(frame):
            raise DecodeError("a request's header ends inside a tagged field")
    return position
