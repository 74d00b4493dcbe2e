"""Everything that one partition of ``__consumer_offsets`` keeps: its groups, and their offsets."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from broker.coordination.decision import Decision, Moment, StoredRecord, in_batches
from broker.coordination.record_codec import RecordCodec
from broker.coordination.tickets import Ticket
from broker.coordination.timers import Timers
from broker.groups.classic import ClassicGroup
from broker.groups.cluster import Cluster
from broker.groups.group import Group, tickets_of
from broker.groups.kinds import KINDS, kind_of, kind_told_of
from broker.groups.offsets import OffsetTable, offset_tombstones
from broker.groups.requests import GroupDescription, Listed
from broker.groups.retention import TOMBSTONES_PER_BATCH, Retention
from broker.groups.settings import GroupSettings
from broker.groups.states import ANSWERS, GroupState
from protocol.error_codes import ErrorCode
from protocol.schema import Message
from protocol.stored.group_records import (
    KEY_TYPES,
    VALUE_TYPES,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

_SERVED: Final[tuple[type[Message], ...]] = (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    *(key for kind in KINDS for key in kind.keys),
)

CODEC: Final = RecordCodec(
    keys={key.api_key: KEY_TYPES[key.api_key] for key in _SERVED},
    values={key.api_key: VALUE_TYPES[key.api_key] for key in _SERVED},
)
"""The record types that this machine understands; others stay in the log untouched."""


class GroupMachine:
    """The machine of one shard.  Commands name a group; ``apply`` is what makes and removes groups.

    A group comes into being with its first member, by a record, or with its first offset, without one.
    Commands that most kinds of groups answer are in modules beside this one, each with the requests of
    one subject: ``member_requests``, ``offset_requests``, and those that ``kinds`` names.
    """

    def __init__(self, settings: GroupSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.cluster = cluster
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetTable()
        self._is_live = False
        self._timers: Timers[str] = Timers()
        self._retention = Retention(settings, self.groups, self.offsets)

    # What a shard wants of a machine

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._apply_offset(key, value, offset, producer_id)
        elif isinstance(key, LegacyOffsetCommitKey):
            assert value is None or isinstance(value, LegacyOffsetCommitValue)
            now_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
            self._apply_offset(now_key, value, offset, producer_id)
        else:
            self._apply_to_group(record)

    def _apply_offset(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        offset: int,
        producer_id: int,
    ) -> None:
        self.offsets.apply(key, value, offset, producer_id)
        if value is not None:
            self._make_for_offsets(key.group)

    def _apply_to_group(self, record: StoredRecord) -> None:
        kind = kind_told_of(record.key)
        group_id = _group_id_in(record)
        known = self.groups.get(group_id)
        is_end = record.value is None and isinstance(record.key, kind.ended_by)
        if is_end and (isinstance(known, kind.group) or _is_simple(known)):
            # A simple group is the one that ends here, too, if what told of its kind was compacted away or
            # left out: then only its offsets have been read.
            del self.groups[group_id]
            self._timers.forget(group_id)
            return
        if not isinstance(known, kind.group):
            if record.value is None:
                return  # the end of a group that has gone, or is of another kind by now
            known = None  # offsets that were read before have made a classic group without members
        if known is None or (kind.is_told_whole and not self._is_live):
            known = self.groups[group_id] = kind.make(group_id, self.settings, self.cluster)
        known.apply(record.key, record.value)

    def _make_for_offsets(self, group_id: str) -> None:
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, self.settings)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for group_id in self.offsets.end_transaction(producer_id, is_commit=is_commit):
            self._make_for_offsets(group_id)

    def loaded(self, now: Moment) -> Decision:
        self._is_live = True
        for group_id in self.offsets.group_ids():
            # What made the group may have been replaced, and left out when the log was read.
            self._make_for_offsets(group_id)
        self._retention.begin(now)
        decision = Decision()
        for group in self.groups.values():
            started = group.start_afresh(now)
            decision.records += started.records
            decision.replies += started.replies
            self.watch(group)
        return decision

    def deadline_ms(self) -> int | None:
        group_ms, retention_ms = self._timers.earliest_ms(), self._retention.deadline_ms()
        if group_ms is None or retention_ms is None:
            return retention_ms if group_ms is None else group_ms
        return min(group_ms, retention_ms)

    def advance(self, now: Moment) -> Decision:
        group_id = self._timers.take_due(now.steady_ms)
        if group_id is None:
            return self._retention.advance(now)
        group = self.groups.get(group_id)
        if group is None:
            return Decision()
        decision = kind_of(group).advance(self, group, now)
        self.watch(group)
        return decision

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        return tickets_of(self.groups.values())

    def watch(self, group: Group) -> None:
        """See that the group is woken in time."""
        if group.wake_ms is not None:
            self._timers.wake_by(group.group_id, group.wake_ms)

    # Operators

    def list_groups(
        self,
        states: Collection[str],
        kinds: Collection[str],
        ticket: Ticket[Listed],
    ) -> Decision:
        """ListGroups; an empty filter lets everything through, and names are in lower case."""
        decision = Decision()
        listed = tuple(
            group.summarize()
            for group in self.groups.values()
            if (not states or group.is_in_state(states)) and (not kinds or group.kind in kinds)
        )
        decision.reply(ticket, Listed(groups=listed))
        return decision

    def describe(self, group_id: str, ticket: Ticket[GroupDescription]) -> Decision:
        """DescribeGroups, one of them."""
        group = self.groups.get(group_id)
        decision = Decision()
        if group is None:
            missing = GroupDescription(
                group_id,
                ErrorCode.GROUP_ID_NOT_FOUND,
                GroupState.DEAD.value,
                message=f"Group {group_id} not found.",
            )
            decision.reply(ticket, missing)
        else:
            decision.reply(ticket, group.describe())
        return decision

    def delete(self, group_id: str, ticket: Ticket[ErrorCode]) -> Decision:
        """DeleteGroups, one of them: its offsets first, so that they are never without their group."""
        group = self.groups.get(group_id)
        error = ANSWERS[GroupState.DEAD].delete_group if group is None else group.check_delete()
        decision = Decision(tentative=True, asked_by=ticket)
        decision.reply(ticket, error)
        if group is None or error is not ErrorCode.NONE:
            return decision
        decision.records += group.tombstones()
        tombstones = offset_tombstones(group_id, self.offsets.partitions_of(group_id))
        return in_batches(tombstones, TOMBSTONES_PER_BATCH, decision)

    def topics_deleted(self, topics: Mapping[bytes, str], ticket: Ticket[None]) -> Decision:
        """These topics (names by id) are gone: their offsets mean nothing any more, whoever made them."""
        tombstones: list[StoredRecord] = []
        last = Decision(tentative=True, asked_by=ticket)
        for group_id, topic, partition in self.offsets.of_topics(topics):
            tombstones += offset_tombstones(group_id, [(topic, partition)])
        for group in self.groups.values():
            group.forget_topics(topics.keys(), last)
        last.reply(ticket, None)
        return in_batches(tombstones, TOMBSTONES_PER_BATCH, last)


def _is_simple(group: Group | None) -> bool:
    return isinstance(group, ClassicGroup) and group.is_simple


def _group_id_in(record: StoredRecord) -> str:
    """The group that a record tells of: Kafka has two names for the field."""
    key: Any = record.key
    group_id: str = key.group if isinstance(key, GroupMetadataKey) else key.group_id
    return group_id
