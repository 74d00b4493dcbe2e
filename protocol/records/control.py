"""Control records: what brokers write into logs for each other, and clients skip.

End-of-transaction markers stand in user partitions; the other types belong to the metadata log and
its snapshots (KIP-595, KIP-630, KIP-853).
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from protocol.records.builder import build_batch
from protocol.records.errors import CorruptRecords
from protocol.records.record import Record


class ControlType(IntEnum):
    """What a control record says; its number stands in the record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The outcome of one producer's transaction in one partition."""

    is_commit: bool
    coordinator_epoch: int
    """Leader epoch of the transaction log's partition: an older coordinator's marker is refused."""


_KEY = Struct(">hh")
_MARKER = Struct(">hi")


def control_key(type: ControlType) -> bytes:
    """The key of a control record: version 0 and the type."""
    return _KEY.pack(0, type)


def read_control_type(record: Record) -> ControlType | None:
    """The type of a record from a control batch; None for one that a newer Kafka may have added."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptRecords(f"a control record's key is {record.key!r}")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptRecords(f"a control record's key has version {version}")
    try:
        return ControlType(number)
    except ValueError:
        return None


def read_end_transaction_marker(record: Record) -> EndTransactionMarker | None:
    """The marker in a record from a control batch, or None if the record is of another type."""
    type = read_control_type(record)
    if type is not ControlType.COMMIT and type is not ControlType.ABORT:
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise CorruptRecords(f"an end-of-transaction marker is {record.value!r}")
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise CorruptRecords(f"an end-of-transaction marker has version {version}")
    return EndTransactionMarker(type is ControlType.COMMIT, coordinator_epoch)


def build_end_transaction_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """The control batch that ends ``producer_id``'s transaction in one partition."""
    type = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
    value = _MARKER.pack(0, marker.coordinator_epoch)
    return build_batch(
        [(timestamp, control_key(type), value, ())],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
