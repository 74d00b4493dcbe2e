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
    ordered = list(names)
    return _in_order(ordered, java_string_hash, _grown_size(len(ordered)))


def in_java_order_of_computed(names: Iterable[str], capacity: int) -> list[str]:
    """Strings, once each, in the order of a ``HashMap`` that was asked with ``computeIfAbsent`` for each.

    That grows the table late, and puts a new key before those of the same bucket.  ``capacity``: what the
    map was made for.
    """
    size = _power_of_two(capacity)
    found: dict[str, None] = {}
    for name in names:
        if len(found) > size * 3 // 4:
            size *= 2
        found[name] = None
    return _in_order(list(reversed(found)), java_string_hash, size)


def text_as_java_compares(text: str) -> bytes:
    """A key that sorts strings as Java does: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def ids_in_java_order(ids: Iterable[bytes], *, are_copied: bool = False) -> list[bytes]:
    """The same for Kafka's UUIDs; ``are_copied``: into a ``HashSet`` made of another collection."""
    ordered = list(ids)
    count = len(ordered)
    return _in_order(ordered, _uuid_hash, _copied_size(count) if are_copied else _grown_size(count))


def numbers_in_java_order(numbers: Iterable[int]) -> list[int]:
    """Numbers in the order of a ``HashSet`` made of another collection."""
    ordered = sorted(numbers)
    return _in_order(ordered, int, _copied_size(len(ordered)))


def id_as_java_compares(uuid: bytes) -> tuple[int, int]:
    """A key that sorts UUIDs as Kafka does: by two signed numbers."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)


def _power_of_two(count: int) -> int:
    """The first that is not below ``count``."""
    return 1 << max(count - 1, 0).bit_length()


def _grown_size(count: int) -> int:
    size = _TABLE_SIZE_START
    while count > size * 3 // 4:
        size *= 2
    return size


def _copied_size(count: int) -> int:
    size = _TABLE_SIZE_START
    while count * 4 // 3 + 1 > size:
        size *= 2
    return size


def _in_order(keys: list[Key], hash_code: Callable[[Key], int], table_size: int) -> list[Key]:
    if len(keys) < 2:
        return keys

    def bucket(key: Key) -> int:
        code = hash_code(key) & 0xFFFF_FFFF
        return (code ^ code >> 16) & (table_size - 1)

    return sorted(keys, key=bucket)


def _uuid_hash(uuid: bytes) -> int:
    folded = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return folded >> 32 ^ folded & 0xFFFF_FFFF
