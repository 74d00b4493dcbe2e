"""Which partition of a coordinator's topic keeps a group or a transactional id: Kafka's hash, exactly."""

from functools import lru_cache
from typing import Final

_INT32_MIN = -(1 << 31)

HASHES_KEPT_MAX: Final = 4096
"""Of ids of groups and members: the same are asked about with every heartbeat."""


@lru_cache(HASHES_KEPT_MAX)
def java_string_hash(text: str) -> int:
    """What ``String.hashCode`` gives in Java: over UTF-16 code units, as a signed 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFF_FFFF
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(encoded[::2], encoded[1::2], strict=True):
            value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition that keeps everything about ``key``.

    Java's absolute value of the smallest int is negative, so Kafka takes zero for it.
    """
    hash_code = java_string_hash(key)
    return 0 if hash_code == _INT32_MIN else abs(hash_code) % partition_count
