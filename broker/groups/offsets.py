"""How far groups have read: the offsets that one partition of ``__consumer_offsets`` keeps."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.coordination.decision import StoredRecord
from protocol.records.batch import NO_PRODUCER_ID
from protocol.stored.group_records import (
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from protocol.uuids import ZERO_UUID

OFFSET_VERSION: Final = 4
OFFSET_VERSION_WITH_EXPIRY: Final = 1
"""The only one that can carry the retention that clients before OffsetCommit v5 could ask for."""

NO_EXPIRY: Final = -1


class CommittedOffset(NamedTuple):
    """Where a group goes on reading one partition."""

    offset: int
    leader_epoch: int
    """Of the last record that was read; -1 if unknown."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    """When it goes, whatever the group does; -1 if the group's rules decide."""
    topic_id: bytes
    """Zero if it was committed by a version that did not know it."""
    record_offset: int
    """Of the record that says so."""


PartitionOffsets = Mapping[int, CommittedOffset]
_NOTHING: Final[Mapping[str, dict[int, CommittedOffset]]] = MappingProxyType({})


class OffsetTable:
    """Committed offsets by group, topic and partition, changed by ``apply`` and ``end_transaction`` alone.

    Offsets committed in a transaction are pending until its marker: then they count, unless a newer
    record for the same partition has come meanwhile.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        """By producer id."""

    def group_ids(self) -> Iterator[str]:
        """Every group that has offsets here."""
        return iter(self._groups)

    def of_group(self, group_id: str) -> Mapping[str, PartitionOffsets]:
        """A group's offsets, by topic and partition."""
        return self._groups.get(group_id, _NOTHING)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, _NOTHING).get(topic, {}).get(partition)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an undecided transaction may change this offset."""
        key = (group_id, topic, partition)
        return any(key in offsets for offsets in self._pending.values())

    def pending_partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Topic and partition of every offset of the group that a transaction may change."""
        for offsets in self._pending.values():
            for group, topic, partition in offsets:
                if group == group_id:
                    yield topic, partition

    def partitions_of(self, group_id: str) -> Iterable[tuple[str, int]]:
        """Topic and partition of every offset of the group, and of those which a transaction may make."""
        found = dict.fromkeys(
            (topic, partition)
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        )
        found.update(dict.fromkeys(self.pending_partitions(group_id)))
        return found

    def of_topics(self, topics: Mapping[bytes, str]) -> Iterable[tuple[str, str, int]]:
        """Group, topic and partition of every offset of these topics, by id and name; pending ones as well.

        An offset that knows the id of its topic is not that of another topic of the same name.
        """
        names = dict.fromkeys(topics.values())

        def is_meant(topic: str, committed: CommittedOffset) -> bool:
            if committed.topic_id == ZERO_UUID:
                return topic in names
            return topics.get(committed.topic_id) == topic

        found = {
            (group_id, topic, partition): None
            for group_id, of_group in self._groups.items()
            for topic in names
            for partition, committed in of_group.get(topic, {}).items()
            if is_meant(topic, committed)
        }
        for offsets in self._pending.values():
            for (group_id, topic, partition), committed in offsets.items():
                if is_meant(topic, committed):
                    found[group_id, topic, partition] = None
        return found

    def apply(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        record_offset: int,
        producer_id: int,
    ) -> None:
        """Take over a record; None removes the offset, also from transactions that are under way."""
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            pending_key = (key.group, key.topic, key.partition)
            for producer, offsets in list(self._pending.items()):
                if offsets.pop(pending_key, None) is not None and not offsets:
                    del self._pending[producer]
            return
        if isinstance(value, OffsetCommitValue):
            committed = CommittedOffset(
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                value.topic_id,
                record_offset,
            )
        else:
            committed = CommittedOffset(
                value.offset, -1, value.metadata, value.commit_timestamp, NO_EXPIRY, ZERO_UUID, record_offset
            )
        if producer_id != NO_PRODUCER_ID:
            offsets = self._pending.setdefault(producer_id, {})
            offsets[key.group, key.topic, key.partition] = committed
        else:
            self._put(key.group, key.topic, key.partition, committed)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> Collection[str]:
        """The marker is there: what is pending counts now, or never.  Returns the groups that it changes."""
        offsets = self._pending.pop(producer_id, {})
        if not is_commit:
            return ()
        for (group_id, topic, partition), committed in offsets.items():
            known = self.get(group_id, topic, partition)
            if known is None or known.record_offset < committed.record_offset:
                self._put(group_id, topic, partition, committed)
        return dict.fromkeys(group_id for group_id, _, _ in offsets)

    def _put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        partitions[partition] = committed

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._groups.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None or partitions.pop(partition, None) is None:
            return
        if not partitions:
            del topics[topic]
            if not topics:
                del self._groups[group_id]


def offset_value(committed: CommittedOffset) -> tuple[OffsetCommitValue, int]:
    """The record's value that says so, and the version in which it is written."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return value, OFFSET_VERSION if committed.expire_timestamp_ms == NO_EXPIRY else OFFSET_VERSION_WITH_EXPIRY


def is_expired(committed: CommittedOffset, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    """Whether an offset may go; ``since_ms`` is when its retention began to count."""
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms


def offset_tombstones(group_id: str, partitions: Iterable[tuple[str, int]]) -> list[StoredRecord]:
    """What removes a group's offsets of these topics and partitions."""
    return [
        StoredRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
        for topic, partition in partitions
    ]
