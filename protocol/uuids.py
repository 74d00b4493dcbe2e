"""Kafka's 16-byte UUIDs and the 22 characters that people read (base64url without padding)."""

import binascii
from typing import Final

ZERO_UUID: Final = bytes(16)
"""Stands for "none"; also the directory id MIGRATING."""

ONE_UUID: Final = bytes(15) + b"\x01"
"""The topic id of ``__cluster_metadata``; also the directory id UNASSIGNED."""

LOST_DIRECTORY: Final = bytes(15) + b"\x02"
"""The directory id of a replica whose log directory went offline."""

MIGRATING_DIRECTORY: Final = ZERO_UUID
UNASSIGNED_DIRECTORY: Final = ONE_UUID


def uuid_to_text(uuid: bytes) -> str:
    """The text that Kafka's files and tools show."""
    text = binascii.b2a_base64(uuid, newline=False)[:22]
    return text.translate(_TO_URL_ALPHABET).decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of ``text``, which may be padded; ``ValueError`` if it is not the text of a UUID."""
    try:
        raw = text.removesuffix("==").encode("ascii").translate(_FROM_URL_ALPHABET)
        uuid = binascii.a2b_base64(raw + b"==", strict_mode=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError(f"not a UUID in base64: {text!r}") from error
    if len(uuid) != 16:
        raise ValueError(f"not 16 bytes in base64: {text!r}")
    return uuid


def is_reserved(uuid: bytes) -> bool:
    """Whether Kafka keeps this UUID for a meaning of its own (the first hundred)."""
    return uuid[:15] == ZERO_UUID[:15] and uuid[15] < 100


_TO_URL_ALPHABET = bytes.maketrans(b"+/", b"-_")
_FROM_URL_ALPHABET = bytes.maketrans(b"-_+/", b"+/!!")
"""The two signs of the other alphabet become none at all."""
