"""The two kinds of batches in the metadata log and its snapshots: KRaft's own notes, and records."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from broker.metadata.records import VersionedRecord
from broker.raft.voters import VoterSet, read_voters, voters_record
from protocol.errors import DecodeError
from protocol.records.batch import RecordBatch
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, control_key, read_control_type
from protocol.schema import Message
from protocol.stored.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from protocol.stored.metadata_records import decode_metadata_record, encode_metadata_record

BATCH_BYTES_MAX: Final = 8 << 20
"""The longest batch of the metadata log (KafkaRaftClient's limit): observers accept no longer one."""

ControlRecord = tuple[ControlType, Message]


class KRaftNotes(NamedTuple):
    """What control batches said so far; None where they said nothing."""

    kraft_version: int | None = None
    voters: VoterSet | None = None
    header: SnapshotHeaderRecord | None = None
    has_footer: bool = False

    def updated(self, batch: RecordBatch) -> "KRaftNotes":
        """With what one control batch adds.  Raises CorruptRecords or DecodeError."""
        notes = self
        for record in batch.records():
            kind = read_control_type(record)
            value = record.value or b""
            if kind is ControlType.KRAFT_VERSION:
                notes = notes._replace(kraft_version=KRaftVersionRecord.decode(value, 0).kraft_version)
            elif kind is ControlType.KRAFT_VOTERS:
                notes = notes._replace(voters=read_voters(VotersRecord.decode(value, 0)))
            elif kind is ControlType.SNAPSHOT_HEADER:
                notes = notes._replace(header=SnapshotHeaderRecord.decode(value, 0))
            elif kind is ControlType.SNAPSHOT_FOOTER:
                notes = notes._replace(has_footer=True)
            elif kind is not ControlType.LEADER_CHANGE:
                raise DecodeError(f"a control record of the metadata log has type {kind}")
        return notes

    def completed_by(self, later: "KRaftNotes") -> "KRaftNotes":
        """What holds after ``later`` notes as well."""
        return self._replace(
            kraft_version=self.kraft_version if later.kraft_version is None else later.kraft_version,
            voters=self.voters if later.voters is None else later.voters,
        )


def leader_change(leader_id: int, voter_ids: Iterable[int]) -> ControlRecord:
    """The first record of an epoch: who leads, and who voted for it."""
    voters = [LeaderChangeMessageVoter(voter_id=voter_id) for voter_id in voter_ids]
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=voters,
        granting_voters=[LeaderChangeMessageVoter(voter_id=leader_id)],
    )
    return ControlType.LEADER_CHANGE, message


def quorum_records(kraft_version: int, voters: VoterSet) -> list[ControlRecord]:
    """The records from which everyone learns the voter set, if it is known; none before kraft.version 1."""
    if kraft_version == 0:
        return []
    records: list[ControlRecord] = [
        (ControlType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=kraft_version))
    ]
    if voters:
        records.append((ControlType.KRAFT_VOTERS, voters_record(voters)))
    return records


def snapshot_header(last_timestamp_ms: int) -> ControlRecord:
    """Opens a snapshot; the time is that of the last batch it covers."""
    return ControlType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp_ms)


def snapshot_footer() -> ControlRecord:
    """Closes a snapshot: one without it was not finished."""
    return ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord()


def build_control_batch(
    records: Sequence[ControlRecord], *, base_offset: int, epoch: int, now_ms: int
) -> bytearray:
    return build_batch(
        [(now_ms, control_key(kind), message.encode(0), ()) for kind, message in records],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        is_control=True,
    )


def build_metadata_batch(
    records: Iterable[VersionedRecord], *, base_offset: int, epoch: int, now_ms: int
) -> bytearray:
    values = [encode_metadata_record(record, version) for record, version in records]
    return build_values_batch(values, base_offset=base_offset, epoch=epoch, now_ms=now_ms)


def build_values_batch(values: Iterable[bytes], *, base_offset: int, epoch: int, now_ms: int) -> bytearray:
    """A batch of metadata records that are encoded already."""
    return build_batch(
        [(now_ms, None, value, ()) for value in values], base_offset=base_offset, partition_leader_epoch=epoch
    )


def read_metadata_batch(batch: RecordBatch) -> list[Message]:
    """The records of one batch.  Raises CorruptRecords, or DecodeError naming an unknown type."""
    messages = []
    for record in batch.records():
        if record.value is None:
            raise DecodeError(f"the metadata record at offset {record.offset} has no value")
        try:
            message, _ = decode_metadata_record(record.value)
        except DecodeError as error:
            raise DecodeError(f"the metadata record at offset {record.offset}: {error}") from error
        messages.append(message)
    return messages
