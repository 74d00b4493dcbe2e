"""The order in which Java iterates over a hash table.

Kafka lets it break ties and share out what does not divide evenly.  Whoever does the same gives members the
same protocol and the same partitions as Kafka would.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from broker.coordination.partitioning import java_string_hash

Key = TypeVar("Key")

_TABLE_SIZE_START = 16

_TIMELINE_SIZE_START = 2

_TIMELINE_FACTOR = -7046029254386353131


def in_java_order(names: Iterable[str]) -> list[str]:
    """Strings in the order of a ``HashMap`` into which they were put one after the other."""
    ordered = list(names)
    return _in_order(ordered, java_string_hash, _grown_size(len(ordered)))


def in_java_order_of_computed(names: Iterable[str], capacity: int) -> list[str]:
    """Strings, once each, in the order of a ``HashMap`` that was asked with ``computeIfAbsent`` for each.

    ``capacity``: what the map was made for.
    """
    return computed_in_java_order(names, capacity, java_string_hash)


def computed_in_java_order(keys: Iterable[Key], capacity: int, hash_code: Callable[[Key], int]) -> list[Key]:
    """The same for keys of any kind.  Such a table grows late, and a new key is first in its bucket."""
    size = _power_of_two(capacity)
    found: dict[Key, None] = {}
    for key in keys:
        if len(found) > size * 3 // 4:
            size *= 2
        found[key] = None
    return _in_order(list(reversed(found)), hash_code, size)


def put_in_java_order(keys: Iterable[Key], hash_code: Callable[[Key], int]) -> list[Key]:
    """Keys of any kind in the order of a ``HashMap`` into which they were put one after the other."""
    ordered = list(keys)
    return _in_order(ordered, hash_code, _grown_size(len(ordered)))


def copied_in_java_order(names: Iterable[str]) -> list[str]:
    """Strings in the order of a ``HashSet`` made of another collection."""
    ordered = list(names)
    return _in_order(ordered, java_string_hash, _copied_size(len(ordered)))


def members_in_kafka_order(members: Iterable[str], known: Iterable[str]) -> list[str]:
    """Members as Kafka looks at them for a new assignment; ``known`` are those that the group has already.

    Kafka keeps the latter in a hash table of its own (``TimelineHashMap``), and puts them into a ``HashMap``
    from there, before all others.  Both tables have the size that they have without members that have left.
    """
    by_id = dict.fromkeys(members)
    table = _in_timeline_order(list(known), java_string_hash)
    there = set(table)
    old = [name for name in table if name in by_id]
    return in_java_order([*old, *(name for name in by_id if name not in there)])


def counted_in_timeline_order(count: int) -> list[int]:
    """The numbers from 0 on as Kafka finds them in such a table: the partitions of a topic."""
    return _in_timeline_order(list(range(count)), int)


def _in_timeline_order(keys: list[Key], hash_code: Callable[[Key], int]) -> list[Key]:
    size = _TIMELINE_SIZE_START
    for count in range(1, len(keys) + 1):
        if count * 3 / 4 > size:
            size *= 2
    shift = 65 - size.bit_length()

    def slot(key: Key) -> int:
        return (hash_code(key) * _TIMELINE_FACTOR & 0xFFFF_FFFF_FFFF_FFFF) >> shift

    ordered = keys[::-1]  # what came last to a slot comes first out of it
    ordered.sort(key=slot)
    return ordered


def text_as_java_compares(text: str) -> bytes:
    """A key that sorts strings as Java does: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def ids_in_java_order(ids: Iterable[bytes], *, are_copied: bool = False) -> list[bytes]:
    """The same for Kafka's UUIDs; ``are_copied``: into a ``HashSet`` made of another collection."""
    ordered = list(ids)
    count = len(ordered)
    return _in_order(ordered, uuid_hash, _copied_size(count) if are_copied else _grown_size(count))


def uuid_hash(uuid: bytes) -> int:
    """What Java's ``Uuid.hashCode`` gives, as a number of 32 bits without a sign."""
    folded = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return folded >> 32 ^ folded & 0xFFFF_FFFF


def numbers_in_java_order(numbers: Iterable[int]) -> list[int]:
    """Numbers in the order of a ``HashSet`` made of another collection."""
    ordered = sorted(numbers)
    return _in_order(ordered, int, _copied_size(len(ordered)))


def joined_numbers_in_java_order(copied: Iterable[int], added: Iterable[int]) -> list[int]:
    """Numbers, once each, in the order of a ``HashSet`` made of a collection, to which others were added."""
    first = dict.fromkeys(copied)
    joined = list(dict.fromkeys((*first, *added)))
    return _in_order(joined, int, max(_copied_size(len(first)), _grown_size(len(joined))))


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
