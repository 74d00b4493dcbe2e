"""Error messages quote what the peer sent, and must still fit into their field."""

from protocol.limits import STRING_SIZE_MAX


def fitting(message: str | None) -> str | None:
    """``message``, cut if it is longer than a string of the protocol can be."""
    if message is None or len(message) * 4 <= STRING_SIZE_MAX:
        return message
    return message.encode()[:STRING_SIZE_MAX].decode(errors="ignore")
