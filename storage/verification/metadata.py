"""Checks what is special about the metadata log: its records, its snapshots, the quorum's state."""

import os
from collections.abc import Sequence

from protocol.errors import DecodeError
from protocol.records.batch import RecordBatch
from protocol.records.control import ControlType, read_control_message, read_control_type
from protocol.schema import Message
from protocol.stored.metadata_records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_metadata_record,
)
from storage import paths
from storage.errors import CorruptFile, StorageError
from storage.filesystem import FileSystem
from storage.node_files import QuorumState, read_quorum_state
from storage.verification.batch_reader import Unreadable, read_leniently
from storage.verification.facts import ReplicaFacts, Topic
from storage.verification.findings import Findings
from storage.verification.read_only import open_to_read, reason_of
from storage.verification.records import find_faults

_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4
_POLICIES = {_TOPIC_RESOURCE: "cleanup.policy", _BROKER_RESOURCE: "log.cleanup.policy"}

_CONTROL_TYPES = frozenset(ControlType) - {ControlType.ABORT, ControlType.COMMIT}

_BOOTSTRAP = (0, 0)


class Cluster:
    """What the metadata log says of topics."""

    def __init__(self) -> None:
        self.directory_ids: dict[int, list[bytes]] = {}
        """Log directories by node, as each registered last."""
        self._ids: dict[str, bytes] = {}
        self._partition_counts: dict[bytes, int] = {}
        self._policies: dict[tuple[int, str], str] = {}
        self._directories: dict[tuple[bytes, int], tuple[list[int], list[bytes]]] = {}
        """Of each partition its replicas, and the directories where these lie."""

    def apply(self, record: Message) -> None:
        """Take note of a record, in the order of the log."""
        if isinstance(record, TopicRecord):
            self._ids[record.name] = record.topic_id
            self._partition_counts[record.topic_id] = 0
        elif isinstance(record, RemoveTopicRecord):
            for name in [name for name, topic_id in self._ids.items() if topic_id == record.topic_id]:
                del self._ids[name]
            self._partition_counts.pop(record.topic_id, None)
        elif isinstance(record, RegisterBrokerRecord):
            self.directory_ids[record.broker_id] = record.log_dirs
        elif isinstance(record, PartitionRecord):
            known = self._partition_counts.get(record.topic_id, 0)
            self._partition_counts[record.topic_id] = max(known, record.partition_id + 1)
            self._directories[record.topic_id, record.partition_id] = record.replicas, record.directories
        elif isinstance(record, PartitionChangeRecord):
            replicas, directories = self._directories.get((record.topic_id, record.partition_id), ([], []))
            self._directories[record.topic_id, record.partition_id] = (
                replicas if record.replicas is None else record.replicas,
                directories if record.directories is None else record.directories,
            )
        elif isinstance(record, ConfigRecord) and _POLICIES.get(record.resource_type) == record.name:
            self._policies[record.resource_type, record.resource_name] = record.value or ""

    def topic(self, name: str) -> Topic | None:
        """The topic of this name, if there is one."""
        topic_id = self._ids.get(name)
        if topic_id is None:
            return None
        policy = self._policies.get((_TOPIC_RESOURCE, name), "")
        return Topic(topic_id, self._partition_counts[topic_id], "compact" in policy)

    def home(self, topic_id: bytes, partition: int, node_id: int) -> bytes | None:
        """The id of the log directory that a node's replica lies in; None if nothing says so."""
        replicas, directories = self._directories.get((topic_id, partition), ([], []))
        for replica, directory in zip(replicas, directories, strict=False):
            if replica == node_id:
                return directory
        return None

    @property
    def may_compact_any(self) -> bool:
        """Whether a setting of brokers makes logs compacted whose topic does not say so."""
        return any(
            kind == _BROKER_RESOURCE and "compact" in policy for (kind, _), policy in self._policies.items()
        )


class MetadataCheck:
    """The metadata log's own checks, beside those of any log."""

    def __init__(
        self, file_system: FileSystem, facts: ReplicaFacts, findings: Findings, names: Sequence[str]
    ) -> None:
        self.cluster = Cluster()
        self._file_system = file_system
        self._facts = facts
        self._findings = findings
        found = [paths.parse_snapshot_name(name) for name in names]
        self._snapshots = sorted(snapshot for snapshot in found if snapshot is not None)
        self._start = max([end for end, _ in self._snapshots], default=0)
        """Records below stand in the newest snapshot, too."""
        self._quorum: QuorumState | None = None
        self._last_epoch = -1

    @property
    def _quorum_path(self) -> str:
        return os.path.join(self._facts.path, paths.QUORUM_STATE)

    def check_files(self, bases: Sequence[int]) -> None:
        """Look at everything but the log, which begins at the first of ``bases``."""
        try:
            self._quorum = read_quorum_state(self._file_system, self._facts.path)
        except StorageError as error:
            self._findings.damage(self._quorum_path, reason_of(error))
        newest = (
            self._start,
            max([epoch for end, epoch in self._snapshots if end == self._start], default=0),
        )
        for snapshot in self._snapshots:
            self._check_snapshot(snapshot, is_newest=snapshot == newest)
        if bases and bases[0] > self._start:
            self._findings.damage(
                self._facts.path,
                f"records before offset {bases[0]} are missing: the newest snapshot ends at {self._start}",
            )

    def _check_snapshot(self, snapshot: tuple[int, int], *, is_newest: bool) -> None:
        end_offset, epoch = snapshot
        path = os.path.join(self._facts.path, f"{end_offset:020d}-{epoch:010d}{paths.SNAPSHOT}")
        if is_newest and snapshot != _BOOTSTRAP:
            self.cluster = Cluster()
        kinds: list[ControlType | None] = []
        next_offset = 0
        try:
            file = open_to_read(self._file_system, path)
            for piece in read_leniently(file, file.size(), 0):
                if isinstance(piece, Unreadable):
                    self._findings.damage(path, piece.reason, piece.position)
                    continue
                batch = piece.batch
                if batch.base_offset != next_offset:
                    self._findings.damage(
                        path, f"offset {batch.base_offset} where {next_offset} must be", piece.position
                    )
                if batch.partition_leader_epoch != epoch:
                    self._findings.damage(
                        path,
                        f"leader epoch {batch.partition_leader_epoch} in a snapshot of epoch {epoch}",
                        piece.position,
                    )
                next_offset = batch.next_offset
                for _, fault in find_faults(batch):
                    self._findings.damage(path, fault, piece.position)
                try:
                    if batch.is_control:
                        kinds += [read_control_type(record) for record in batch.records()]
                    self._read(batch, applies=is_newest)
                except DecodeError as error:
                    self._findings.damage(path, str(error), piece.position)
        except (CorruptFile, OSError) as error:
            self._findings.damage(path, reason_of(error))
            return
        if kinds[:1] != [ControlType.SNAPSHOT_HEADER]:
            self._findings.damage(path, "it does not begin with a snapshot's header", 0)
        if kinds[-1:] != [ControlType.SNAPSHOT_FOOTER]:
            self._findings.damage(path, "it does not end with a snapshot's footer")

    def look_into(self, batch: RecordBatch) -> None:
        """Read a batch of the log.  Raises DecodeError."""
        self._last_epoch = max(self._last_epoch, batch.partition_leader_epoch)
        self._read(batch, applies=batch.last_offset >= self._start)

    def end(self) -> None:
        """All of the log has been shown."""
        if self._quorum is not None and self._quorum.leader_epoch < self._last_epoch:
            self._findings.damage(
                self._quorum_path,
                f"the last epoch is {self._quorum.leader_epoch}, but the log has records of "
                f"{self._last_epoch}",
            )

    def _read(self, batch: RecordBatch, *, applies: bool) -> None:
        for record in batch.records():
            if batch.is_control:
                if read_control_type(record) not in _CONTROL_TYPES:
                    raise DecodeError(f"the control record at offset {record.offset} does not belong here")
                read_control_message(record)
                continue
            if record.value is None:
                raise DecodeError(f"the record at offset {record.offset} has no value")
            try:
                message, _ = decode_metadata_record(record.value)
            except DecodeError as error:
                raise DecodeError(f"the record at offset {record.offset}: {error}") from error
            if applies:
                self.cluster.apply(message)
