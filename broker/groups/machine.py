"""Everything that one partition of ``__consumer_offsets`` keeps: its groups, and their offsets."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from broker.coordination.decision import Decision, Moment, StoredRecord, Writer, in_batches
from broker.coordination.record_codec import RecordCodec
from broker.coordination.tickets import Ticket
from broker.coordination.timers import Timers
from broker.groups import consumer_requests as consumers
from broker.groups.classic import GROUP_METADATA_VERSION, ClassicGroup
from broker.groups.cluster import Cluster
from broker.groups.consumer import ConsumerGroup
from broker.groups.group import Group, tickets_of
from broker.groups.offsets import (
    NO_EXPIRY,
    CommittedOffset,
    OffsetTable,
    is_expired,
    offset_value,
)
from broker.groups.requests import (
    NO_MEMBER_ID,
    Committing,
    CommittingInTransaction,
    Fetched,
    FetchedOffset,
    FetchedTopic,
    GroupDescription,
    Joined,
    Joining,
    Leaving,
    Left,
    Listed,
    OffsetsDeleted,
    OffsetToCommit,
    Synced,
    Syncing,
    TopicOffsets,
)
from broker.groups.settings import GroupSettings
from broker.groups.states import ANSWERS, GroupState
from broker.share import group_commands as sharing
from broker.share.group import ShareGroup, ShareGroupKey
from protocol.error_codes import ErrorCode
from protocol.schema import Message
from protocol.stored.group_records import (
    KEY_TYPES,
    VALUE_TYPES,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from protocol.uuids import ZERO_UUID
from storage.transaction_verification import Verification

ConsumerGroupKey = (
    ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupRegularExpressionKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupTargetAssignmentMetadataKey
)
"""Keys of records that tell of a consumer group."""

_SERVED: Final = (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    GroupMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
    ShareGroupMetadataKey,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)

CODEC: Final = RecordCodec(
    keys={key.api_key: KEY_TYPES[key.api_key] for key in _SERVED},
    values={key.api_key: VALUE_TYPES[key.api_key] for key in _SERVED},
)
"""The record types that this machine understands; others stay in the log untouched."""

TOMBSTONES_PER_BATCH: Final = 1000
"""What is deleted at once: far below the smallest ``max.message.bytes`` that anybody would set."""

GROUPS_CLEANED_PER_TURN: Final = 100
"""Groups whose offsets are looked through before requests have their turn."""

_GONE: Final = ANSWERS[GroupState.DEAD]


class GroupMachine:
    """The machine of one shard.  Commands name a group; ``apply`` is what makes and removes groups.

    A group comes into being with its first member, by a record, or with its first offset, without one.
    """

    def __init__(self, settings: GroupSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.cluster = cluster
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetTable()
        self._is_live = False
        self._timers: Timers[str] = Timers()
        self._to_clean: deque[str] = deque()
        self._next_cleaning_ms: int | None = None

    # What a shard wants of a machine

    def apply(self, record: StoredRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._apply_offset(key, value, offset, producer_id)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            self._apply_group(key.group, value)
        elif isinstance(key, ConsumerGroupKey):
            self._apply_consumer_group(key, value)
        elif isinstance(key, ShareGroupKey):
            self._apply_share_group(key, value)
        else:
            assert isinstance(key, LegacyOffsetCommitKey)
            assert value is None or isinstance(value, LegacyOffsetCommitValue)
            now_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
            self._apply_offset(now_key, value, offset, producer_id)

    def _apply_offset(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        offset: int,
        producer_id: int,
    ) -> None:
        self.offsets.apply(key, value, offset, producer_id)
        if value is not None and key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group, self.settings)

    def _apply_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        known = self.groups.get(group_id)
        if value is None:
            if isinstance(known, ClassicGroup):
                known.bury()
                self._remove(group_id)
        elif not isinstance(known, ClassicGroup) or not self._is_live:
            # While loading, each record of a group replaces whatever stood there before.
            self.groups[group_id] = ClassicGroup(group_id, self.settings, value)
        else:
            known.apply(value)

    def _apply_consumer_group(self, key: ConsumerGroupKey, value: Message | None) -> None:
        known = self.groups.get(key.group_id)
        if not isinstance(known, ConsumerGroup):
            if value is None:
                return  # the end of a group that has gone, or is of another kind by now
            # Offsets that were read before have made a classic group without members.
            known = ConsumerGroup(key.group_id, self.settings, self.cluster)
            self.groups[key.group_id] = known
        if value is None and isinstance(key, ConsumerGroupMetadataKey):
            self._remove(key.group_id)
        else:
            known.apply(key, value)

    def _apply_share_group(self, key: ShareGroupKey, value: Message | None) -> None:
        known = self.groups.get(key.group_id)
        if not isinstance(known, ShareGroup):
            if value is None:
                return
            known = self.groups[key.group_id] = ShareGroup(key.group_id, self.settings, self.cluster)
        if value is None and isinstance(key, ShareGroupMetadataKey):
            self._remove(key.group_id)
        else:
            known.apply(key, value)

    def _remove(self, group_id: str) -> None:
        del self.groups[group_id]
        self._timers.forget(group_id)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for group_id in self.offsets.end_transaction(producer_id, is_commit=is_commit):
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id, self.settings)

    def loaded(self, now: Moment) -> Decision:
        self._is_live = True
        for group_id in self.offsets.group_ids():
            # What made the group may have been replaced, and left out when the log was read.
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id, self.settings)
        self._next_cleaning_ms = now.steady_ms + self.settings.offsets_retention_check_interval_ms
        decision = Decision()
        for group in self.groups.values():
            started = group.start_afresh(now)
            decision.records += started.records
            decision.replies += started.replies
            self.watch(group)
        return decision

    def deadline_ms(self) -> int | None:
        earliest_ms = self._timers.earliest_ms()
        if self._to_clean:
            return 0 if earliest_ms is None else min(earliest_ms, 0)
        if self._next_cleaning_ms is None or earliest_ms is None:
            return self._next_cleaning_ms if earliest_ms is None else earliest_ms
        return min(earliest_ms, self._next_cleaning_ms)

    def advance(self, now: Moment) -> Decision:
        group_id = self._timers.take_due(now.steady_ms)
        if group_id is None:
            return self._clean(now)
        group = self.groups.get(group_id)
        decision = Decision()
        if isinstance(group, ClassicGroup):
            decision = group.advance(now)
        elif isinstance(group, ConsumerGroup):
            decision = consumers.advance(self, group, now)
        elif isinstance(group, ShareGroup):
            decision = sharing.advance(group, now)
        if group is not None:
            self.watch(group)
        return decision

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        return tickets_of(self.groups.values())

    def watch(self, group: Group) -> None:
        """See that the group is woken in time."""
        if group.wake_ms is not None:
            self._timers.wake_by(group.group_id, group.wake_ms)

    # Members

    def join(self, group_id: str, joining: Joining, ticket: Ticket[Joined], now: Moment) -> Decision:
        """JoinGroup.  A new member may found the group: the record comes first, and then the member."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            decision = group.join(joining, ticket, now)
            self.watch(group)
            return decision
        decision = Decision(tentative=True, asked_by=ticket)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                return consumers.join(self, group, joining, ticket, now)
            decision.records += (
                group.tombstones()
            )  # an empty group is of the kind that its first member is of
        elif group is not None:
            decision.reply(ticket, Joined(NO_MEMBER_ID, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return decision
        if joining.member_id != NO_MEMBER_ID:
            decision.records.clear()
            decision.reply(ticket, Joined(joining.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
            return decision
        empty = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=now.wall_ms)
        decision.write(GroupMetadataKey(group=group_id), empty, GROUP_METADATA_VERSION)
        decision.then = lambda now: self.join(group_id, joining, ticket, now)
        return decision

    def sync(self, group_id: str, syncing: Syncing, ticket: Ticket[Synced], now: Moment) -> Decision:
        """SyncGroup."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            decision = group.sync(syncing, ticket, now)
            self.watch(group)
            return decision
        if isinstance(group, ConsumerGroup):
            return consumers.sync(self, group, syncing, ticket, now)
        decision = Decision()
        decision.reply(ticket, Synced(_GONE.sync))
        return decision

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        ticket: Ticket[ErrorCode],
        now: Moment,
    ) -> Decision:
        """Heartbeat."""
        group = self.groups.get(group_id)
        decision = Decision()
        if isinstance(group, ClassicGroup):
            decision.reply(ticket, group.heartbeat(member_id, instance_id, generation, now))
            self.watch(group)
        elif isinstance(group, ConsumerGroup):
            decision.reply(ticket, consumers.heartbeat(self, group, member_id, instance_id, generation, now))
        else:
            decision.reply(ticket, _GONE.heartbeat)
        return decision

    def leave(self, group_id: str, leaving: list[Leaving], ticket: Ticket[Left], now: Moment) -> Decision:
        """LeaveGroup."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            decision = group.leave(leaving, ticket, now)
            self.watch(group)
            return decision
        if isinstance(group, ConsumerGroup):
            return consumers.leave(self, group, leaving, ticket, now)
        decision = Decision()
        decision.reply(ticket, Left(codes=(ErrorCode.UNKNOWN_MEMBER_ID,) * len(leaving)))
        return decision

    # Offsets

    def commit(
        self, group_id: str, committing: Committing, ticket: Ticket[Sequence[ErrorCode]], now: Moment
    ) -> Decision:
        """OffsetCommit: one code per offset, in order."""
        decision = Decision(tentative=True)
        group = self.groups.get(group_id)
        if group is not None:
            error = group.check_commit(committing)
        elif committing.generation < 0:
            error = ErrorCode.NONE  # the offset makes the group: one without members
        else:
            error = committing.unknown_group
        if error is not ErrorCode.NONE:
            decision.reply(ticket, [error] * len(committing.offsets))
            return decision
        if group is not None:
            group.committed(committing.member_id, now)
            self.watch(group)
        expiry_ms = NO_EXPIRY if committing.retention_ms == -1 else now.wall_ms + committing.retention_ms
        decision.reply(ticket, self._write_offsets(decision, group_id, committing.offsets, expiry_ms, now))
        return decision

    def commit_in_transaction(
        self,
        group_id: str,
        asked: CommittingInTransaction,
        verification: Verification | None,
        ticket: Ticket[Sequence[ErrorCode]],
        now: Moment,
    ) -> Decision:
        """TxnOffsetCommit: the offsets count when the transaction is committed.  One code each, in order."""
        committing = asked.committing
        writer = Writer(asked.producer_id, asked.producer_epoch, verification)
        decision = Decision(tentative=True, writer=writer)
        group = self.groups.get(group_id)
        if group is not None:
            error = group.check_commit(committing, is_transactional=True)
            if error is ErrorCode.STALE_MEMBER_EPOCH and not committing.knows_member_epochs:
                error = ErrorCode.ILLEGAL_GENERATION
        else:
            error = ErrorCode.NONE if committing.generation < 0 else committing.unknown_group
        if error is not ErrorCode.NONE:
            decision.reply(ticket, [error] * len(committing.offsets))
            return decision
        decision.reply(ticket, self._write_offsets(decision, group_id, committing.offsets, NO_EXPIRY, now))
        return decision

    def _write_offsets(
        self,
        decision: Decision,
        group_id: str,
        offsets: Iterable[OffsetToCommit],
        expiry_ms: int,
        now: Moment,
    ) -> list[ErrorCode]:
        codes = []
        for asked in offsets:
            if not self.settings.allows_metadata(asked.metadata):
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            codes.append(ErrorCode.NONE)
            value, version = offset_value(
                CommittedOffset(
                    asked.offset,
                    asked.leader_epoch,
                    asked.metadata,
                    now.wall_ms,
                    expiry_ms,
                    asked.topic_id,
                    record_offset=-1,  # known when it is in the log
                )
            )
            key = OffsetCommitKey(group=group_id, topic=asked.topic, partition=asked.partition)
            decision.write(key, value, version)
        return codes

    def fetch(
        self,
        group_id: str,
        topics: Sequence[TopicOffsets] | None,
        require_stable: bool,
        ticket: Ticket[Fetched],
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> Decision:
        """OffsetFetch for one group; None asks for every offset that it has.

        A group that is not there has no offsets, which is no error.
        """
        group = self.groups.get(group_id)
        error = ErrorCode.NONE if group is None else group.check_fetch(member_id, member_epoch)
        if error is not ErrorCode.NONE:
            decision = Decision()
            decision.reply(ticket, Fetched(error))
            return decision
        if topics is None:
            stored = self.offsets.of_group(group_id)
            topics = [TopicOffsets(topic, ZERO_UUID, tuple(of)) for topic, of in stored.items()]
        decision = Decision()
        fetched = tuple(
            FetchedTopic(
                topic.topic,
                topic.topic_id,
                tuple(
                    self._fetch_one(group_id, topic, partition, require_stable)
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        )
        decision.reply(ticket, Fetched(topics=fetched))
        return decision

    def _fetch_one(
        self, group_id: str, topic: TopicOffsets, partition: int, require_stable: bool
    ) -> FetchedOffset:
        if require_stable and self.offsets.is_pending(group_id, topic.topic, partition):
            return FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = self.offsets.get(group_id, topic.topic, partition)
        if committed is None or _are_different_topics(committed.topic_id, topic.topic_id):
            return FetchedOffset(partition)
        return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[tuple[str, int]], ticket: Ticket[OffsetsDeleted]
    ) -> Decision:
        """OffsetDelete, for topics and partitions that exist."""
        decision = Decision(tentative=True, asked_by=ticket)
        group = self.groups.get(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
        if group is None or error is not ErrorCode.NONE:
            decision.reply(ticket, OffsetsDeleted(error))
            return decision
        codes = []
        found = []
        pending = set(self.offsets.pending_partitions(group_id))
        for topic, partition in partitions:
            if group.is_subscribed_to(topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            codes.append(ErrorCode.NONE)
            if self.offsets.get(group_id, topic, partition) is not None or (topic, partition) in pending:
                found.append((topic, partition))
        decision.reply(ticket, OffsetsDeleted(codes=tuple(codes)))
        return in_batches(_offset_tombstones(group_id, found), TOMBSTONES_PER_BATCH, decision)

    def topics_deleted(self, topics: Collection[str], ticket: Ticket[None]) -> Decision:
        """The offsets of these topics mean nothing any more, whoever committed them."""
        tombstones: list[StoredRecord] = []
        for group_id in self.groups:
            tombstones += _offset_tombstones(
                group_id, (found for found in self._partitions_with_offsets(group_id) if found[0] in topics)
            )
        last = Decision(tentative=True, asked_by=ticket)
        last.reply(ticket, None)
        return in_batches(tombstones, TOMBSTONES_PER_BATCH, last)

    def _partitions_with_offsets(self, group_id: str) -> Iterable[tuple[str, int]]:
        """Topic and partition of every offset of the group, and of those which a transaction may make."""
        found = dict.fromkeys(
            (topic, partition)
            for topic, partitions in self.offsets.of_group(group_id).items()
            for partition in partitions
        )
        found.update(dict.fromkeys(self.offsets.pending_partitions(group_id)))
        return found

    # Operators

    def list_groups(
        self,
        states: Collection[str],
        kinds: Collection[str],
        ticket: Ticket[Listed],
    ) -> Decision:
        """ListGroups; an empty filter lets everything through, and names are in lower case."""
        decision = Decision()
        groups = (group.summarize() for group in self.groups.values())
        listed = tuple(
            group
            for group in groups
            if (not states or group.state.lower() in states) and (not kinds or group.kind in kinds)
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
        error = _GONE.delete_group if group is None else group.check_delete()
        decision = Decision(tentative=True, asked_by=ticket)
        decision.reply(ticket, error)
        if group is None or error is not ErrorCode.NONE:
            return decision
        decision.records += group.tombstones()
        tombstones = _offset_tombstones(group_id, self._partitions_with_offsets(group_id))
        return in_batches(tombstones, TOMBSTONES_PER_BATCH, decision)

    # Retention

    def _clean(self, now: Moment) -> Decision:
        """Drop offsets whose time is over, and groups without members that have none left."""
        if not self._to_clean:
            if self._next_cleaning_ms is None or self._next_cleaning_ms > now.steady_ms:
                return Decision()
            self._next_cleaning_ms = now.steady_ms + self.settings.offsets_retention_check_interval_ms
            self._to_clean.extend(self.groups)
        for _ in range(GROUPS_CLEANED_PER_TURN):
            if not self._to_clean:
                break
            group = self.groups.get(self._to_clean.popleft())
            if group is None:
                continue
            decision = self._clean_group(group, now)
            if decision.records:
                return decision
        return Decision()

    def _clean_group(self, group: Group, now: Moment) -> Decision:
        group_id = group.group_id
        if isinstance(group, ShareGroup):
            return Decision()  # it stays until somebody deletes it
        pending = set(self.offsets.pending_partitions(group_id))
        expired: list[tuple[str, int]] = []
        kept = len(pending)
        for topic, partitions in self.offsets.of_group(group_id).items():
            for partition, committed in partitions.items():
                since_ms = group.retention_began_ms(topic, committed.commit_timestamp_ms)
                if (
                    since_ms is not None
                    and (topic, partition) not in pending
                    and is_expired(committed, since_ms, now.wall_ms, self.settings.offsets_retention_ms)
                ):
                    expired.append((topic, partition))
                else:
                    kept += 1
        last = Decision(tentative=True)
        if not kept and group.is_empty:
            last.records += group.tombstones()
        return in_batches(_offset_tombstones(group_id, expired), TOMBSTONES_PER_BATCH, last)


def _offset_tombstones(group_id: str, partitions: Iterable[tuple[str, int]]) -> list[StoredRecord]:
    return [
        StoredRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
        for topic, partition in partitions
    ]


def _are_different_topics(stored_id: bytes, asked_id: bytes) -> bool:
    return stored_id != asked_id and ZERO_UUID not in (stored_id, asked_id)
