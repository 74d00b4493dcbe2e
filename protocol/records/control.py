"""Control records: what brokers write into logs for each other, and clients skip.

End-of-transaction markers stand in user partitions; the other types belong to the metadata log and
its snapshots (KIP-595, KIP-630, KIP-853).  Their values are messages of ``protocol.stored``, which is
imported only by whoever handles such records.
"""

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from protocol.records.builder import build_batch
from protocol.records.errors import CorruptRecords
from protocol.records.record import Record

if TYPE_CHECKING:
    from protocol.schema import Message


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


def control_key(control_type: ControlType) -> bytes:
    """The key of a control record: version 0 and the type."""
    return _KEY.pack(0, control_type)


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
    control_type = read_control_type(record)
    if control_type is not ControlType.COMMIT and control_type is not ControlType.ABORT:
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise CorruptRecords(f"an end-of-transaction marker is {record.value!r}")
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise CorruptRecords(f"an end-of-transaction marker has version {version}")
    return EndTransactionMarker(control_type is ControlType.COMMIT, coordinator_epoch)


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
    control_type = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
    value = _MARKER.pack(0, marker.coordinator_epoch)
    return build_batch(
        [(timestamp, control_key(control_type), value, ())],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def build_control_batch(
    messages: Iterable["Message"],
    *,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytearray:
    """One control batch with a record for each of the metadata log's ``messages``, at least one.

    Their type decides the records' keys: LeaderChangeMessage, SnapshotHeaderRecord,
    SnapshotFooterRecord, KRaftVersionRecord, VotersRecord.
    """
    types = {message: control_type for control_type, message in _message_classes().items()}
    return build_batch(
        [(timestamp, control_key(types[type(message)]), message.encode(0), ()) for message in messages],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        is_control=True,
    )


def read_control_message(record: Record) -> "Message | None":
    """The message in a control record of the metadata log; None for markers and unknown types.

    Raises DecodeError.
    """
    control_type = read_control_type(record)
    message_class = _message_classes().get(control_type) if control_type is not None else None
    if message_class is None:
        return None
    if record.value is None:
        raise CorruptRecords("a control record of the metadata log has no value")
    # Version 0 whatever the value's first field says: newer ones add only what may be skipped.
    return message_class.decode(record.value, 0)


def _message_classes() -> dict[ControlType, type["Message"]]:
    from protocol.stored import control_records

    return {
        ControlType.LEADER_CHANGE: control_records.LeaderChangeMessage,
        ControlType.SNAPSHOT_HEADER: control_records.SnapshotHeaderRecord,
        ControlType.SNAPSHOT_FOOTER: control_records.SnapshotFooterRecord,
        ControlType.KRAFT_VERSION: control_records.KRaftVersionRecord,
        ControlType.KRAFT_VOTERS: control_records.VotersRecord,
    }
