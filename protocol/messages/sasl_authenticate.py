"""SaslAuthenticate (36): one step of a SASL exchange."""

from protocol.primitives import BYTES, INT16, INT64, STRING
from protocol.schema import Message, wire


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes = wire(BYTES, "0+", default=b"")


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    error_code: int = wire(INT16, "0+", default=0)
    error_message: str | None = wire(STRING, "0+", default="", nullable="0+")
    auth_bytes: bytes = wire(BYTES, "0+", default=b"")
    session_lifetime_ms: int = wire(INT64, "1+", default=0, ignorable=True)
