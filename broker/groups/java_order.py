"""The order in which Java iterates over a hash table.

Kafka lets it break ties and share out what does not divide evenly.  Whoever does the same gives members the
same protocol and the same partitions as Kafka would.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from broker.coordination.partitioning import java_string_hash

Key = TypeVar("Key")

_TABLE_SIZE_START = 16


def in_java_order(names: Iterable[str]) -> list[str]:
    """Strings in the order of a ``HashMap`` into which they were put one after the other."""
    return _in_order(names, java_string_hash)


def ids_in_java_order(ids: Iterable[bytes]) -> list[bytes]:
    """The same for Kafka's UUIDs."""
    return _in_order(ids, _uuid_hash)


def id_as_java_compares(uuid: bytes) -> tuple[int, int]:
    """A key that sorts UUIDs as Kafka does: by two signed numbers."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)


def _in_order(keys: Iterable[Key], hash_code: Callable[[Key], int]) -> list[Key]:
    ordered = list(keys)
    size = _TABLE_SIZE_START
    while len(ordered) > size * 3 // 4:
        size *= 2

    def bucket(key: Key) -> int:
        code = hash_code(key) & 0xFFFF_FFFF
        return (code ^ code >> 16) & (size - 1)

    return sorted(ordered, key=bucket)


def _uuid_hash(uuid: bytes) -> int:
    folded = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return folded >> 32 ^ folded & 0xFFFF_FFFF
