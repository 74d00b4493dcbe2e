"""How the broker's own failures reach a peer: as a number of the protocol, or as a closed connection."""

from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError, EncodeError, KafkaError

__all__ = ["CloseConnection", "DecodeError", "EncodeError", "ErrorCode", "KafkaError"]


class CloseConnection(Exception):
    """Raised by a handler: this request has no answer, and the connection ends.

    Requests before it are still answered.  ``reason`` is for the log; ``None`` closes without a line, for
    closings that are the protocol's ordinary course.
    """

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason)
        self.reason = reason
