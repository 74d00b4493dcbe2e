"""How much of a quota an answer with records takes."""

from typing import Final

from protocol.schema import Message
from storage.file_range import FileRange

FRAME_SIZE_BYTES: Final = 4
"""In front of an answer stands its size; Kafka counts that, and does not count the answer's header."""


def fetched_bytes(response: Message, version: int) -> int:
    """The size of an answer, records included."""
    parts = response.encode_parts(version, bytes(FRAME_SIZE_BYTES))
    return sum(part.size_bytes if isinstance(part, FileRange) else len(part) for part in parts)
