"""What can be wrong with bytes and with requests: three types, told apart by whose fault it is."""

from protocol.error_codes import ErrorCode


class DecodeError(ValueError):
    """Bytes that a peer sent, or a file holds, are not what the format says.

    The only exception that escapes from a decoder, whatever the bytes are.
    """


class EncodeError(ValueError):
    """A value cannot be written in this version of its message: our own mistake.

    Raised when a field that the version lacks holds something other than its default and is not
    ignorable, when a field is null where it may not be, and when a value does not fit its type.
    """


class KafkaError(Exception):
    """An outcome that the protocol numbers; it becomes an error field of a response.

    ``message`` is the text for the response's ErrorMessage field, where there is one.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code.name if message is None else f"{code.name}: {message}")
        self.code = code
        self.message = message
