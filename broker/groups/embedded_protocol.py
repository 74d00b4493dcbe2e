"""What consumers of the classic protocol hand to each other through the broker, which has to read it when
their group is, or becomes, a consumer group (KIP-848's online migration)."""

from struct import Struct
from typing import Final

from protocol.errors import DecodeError
from protocol.schema import Message
from protocol.stored.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_INT16 = Struct(">h")

VERSION_MAX: Final = 3


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a member reads and has.  ``DecodeError`` if it cannot be understood."""
    return ConsumerProtocolSubscription.decode_from(metadata, _INT16.size, read_version(metadata))[0]


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """What a leader assigned.  ``DecodeError`` if it cannot be understood."""
    return ConsumerProtocolAssignment.decode_from(assignment, _INT16.size, read_version(assignment))[0]


def read_version(data: bytes) -> int:
    """The version in which something is written; of one that is newer, what is known begins it."""
    if len(data) < _INT16.size:
        raise DecodeError("a consumer's metadata has no version")
    (version,) = _INT16.unpack_from(data)
    if version < 0:
        raise DecodeError(f"a consumer's metadata has version {version}")
    return min(int(version), VERSION_MAX)


def write_assignment(partitions: dict[str, list[int]], version: int) -> bytes:
    """Partitions by topic name, as a member expects them who speaks this version."""
    assignment: Message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in partitions.items()
        ]
    )
    return bytes(assignment.encode_parts(version, _INT16.pack(version))[0])
