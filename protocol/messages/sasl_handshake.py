"""SaslHandshake (17): choose a SASL mechanism."""

from protocol.primitives import INT16, STRING, Array
from protocol.schema import Message, wire


class SaslHandshakeRequest(Message, api_key=17, versions="0-1", flexible="none"):
    mechanism: str = wire(STRING, "0+", default="")


class SaslHandshakeResponse(Message, api_key=17, versions="0-1", flexible="none"):
    error_code: int = wire(INT16, "0+", default=0)
    mechanisms: list[str] = wire(Array(STRING), "0+", factory=list)
