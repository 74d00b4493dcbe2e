"""The numbers by which Kafka notices that topics have changed under a group: XXH3 over what matters of them.

They are stored with a group's epoch, so both sides must come to the same.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final

import xxhash

if TYPE_CHECKING:
    from broker.metadata.image import BrokerImage, TopicImage

_LAYOUT_VERSION: Final = b"\x00"
_INT32 = Struct("<i")
_INT64 = Struct("<q")


def topic_hash(topic: "TopicImage", brokers: "Mapping[int, BrokerImage]") -> int:
    """Of one topic: its id, name and partitions, and the racks of each partition's replicas."""
    pieces = [
        _LAYOUT_VERSION,
        topic.id[7::-1],  # two numbers, each with its last byte first
        topic.id[:7:-1],
        _string(topic.name),
        _INT32.pack(len(topic.partitions)),
    ]
    for index, partition in enumerate(topic.partitions):
        pieces.append(_INT32.pack(index))
        racks = (brokers[replica].rack for replica in partition.replicas if replica in brokers)
        for rack in sorted(rack for rack in racks if rack is not None):
            pieces += (_INT32.pack(_length(rack)), _string(rack))
    return _hash(b"".join(pieces))


def group_hash(topic_hashes: Iterable[int]) -> int:
    """Of all topics that a group reads, given in the order of their names; 0 if there are none."""
    packed = b"".join(_INT64.pack(value) for value in topic_hashes)
    return _hash(packed) if packed else 0


def _hash(data: bytes) -> int:
    value: int = xxhash.xxh3_64_intdigest(data)
    return value - (1 << 64) if value >> 63 else value


def _length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _string(text: str) -> bytes:
    """UTF-16 units and, behind them, their number."""
    units = text.encode("utf-16-le")
    return units + _INT32.pack(len(units) // 2)
