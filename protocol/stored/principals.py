"""A principal as one broker sends it to another (Envelope)."""

from protocol.primitives import BOOL, STRING
from protocol.schema import Message, wire


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: str = wire(STRING, "0+", default="")
    name: str = wire(STRING, "0+", default="")
    token_authenticated: bool = wire(BOOL, "0+", default=False)
