"""Envelope (58): a broker forwards a client's request to the controller."""

from protocol.primitives import BYTES, INT16
from protocol.schema import Message, wire


class EnvelopeRequest(Message, api_key=58, versions="0", flexible="0+"):
    request_data: bytes = wire(BYTES, "0+", default=b"")
    request_principal: bytes | None = wire(BYTES, "0+", default=b"", nullable="0+")
    client_host_address: bytes = wire(BYTES, "0+", default=b"")


class EnvelopeResponse(Message, api_key=58, versions="0", flexible="0+"):
    response_data: bytes | None = wire(BYTES, "0+", default=None, nullable="0+")
    error_code: int = wire(INT16, "0+", default=0)
