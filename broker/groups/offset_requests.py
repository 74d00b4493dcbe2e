"""What clients ask of committed offsets, whatever the kind of their group: commands of the machine."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from broker.coordination.decision import Decision, Moment, Writer, in_batches
from broker.coordination.tickets import Ticket
from broker.groups.offsets import NO_EXPIRY, CommittedOffset, offset_tombstones, offset_value
from broker.groups.requests import (
    Committing,
    CommittingInTransaction,
    Fetched,
    FetchedOffset,
    FetchedTopic,
    OffsetsDeleted,
    OffsetToCommit,
    TopicOffsets,
)
from broker.groups.retention import TOMBSTONES_PER_BATCH
from protocol.error_codes import ErrorCode
from protocol.stored.group_records import OffsetCommitKey
from protocol.uuids import ZERO_UUID
from storage.transaction_verification import Verification

if TYPE_CHECKING:
    from broker.groups.machine import GroupMachine


def commit(
    machine: "GroupMachine",
    group_id: str,
    committing: Committing,
    ticket: Ticket[Sequence[ErrorCode]],
    now: Moment,
) -> Decision:
    """OffsetCommit: one code per offset, in order."""
    decision = Decision(tentative=True)
    group = machine.groups.get(group_id)
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
        machine.watch(group)
    expiry_ms = NO_EXPIRY if committing.retention_ms == -1 else now.wall_ms + committing.retention_ms
    decision.reply(ticket, _write_offsets(machine, decision, group_id, committing.offsets, expiry_ms, now))
    return decision


def commit_in_transaction(
    machine: "GroupMachine",
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
    group = machine.groups.get(group_id)
    if group is not None:
        error = group.check_commit(committing, is_transactional=True)
        if error is ErrorCode.STALE_MEMBER_EPOCH and not committing.knows_member_epochs:
            error = ErrorCode.ILLEGAL_GENERATION
    else:
        error = ErrorCode.NONE if committing.generation < 0 else committing.unknown_group
    if error is not ErrorCode.NONE:
        decision.reply(ticket, [error] * len(committing.offsets))
        return decision
    decision.reply(ticket, _write_offsets(machine, decision, group_id, committing.offsets, NO_EXPIRY, now))
    return decision


def _write_offsets(
    machine: "GroupMachine",
    decision: Decision,
    group_id: str,
    offsets: Iterable[OffsetToCommit],
    expiry_ms: int,
    now: Moment,
) -> list[ErrorCode]:
    codes = []
    for asked in offsets:
        if not machine.settings.allows_metadata(asked.metadata):
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
    machine: "GroupMachine",
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
    group = machine.groups.get(group_id)
    error = ErrorCode.NONE if group is None else group.check_fetch(member_id, member_epoch)
    if error is not ErrorCode.NONE:
        decision = Decision()
        decision.reply(ticket, Fetched(error))
        return decision
    if topics is None:
        stored = machine.offsets.of_group(group_id)
        topics = [TopicOffsets(topic, ZERO_UUID, tuple(of)) for topic, of in stored.items()]
    decision = Decision()
    fetched = tuple(
        FetchedTopic(
            topic.topic,
            topic.topic_id,
            tuple(
                _fetch_one(machine, group_id, topic, partition, require_stable)
                for partition in topic.partitions
            ),
        )
        for topic in topics
    )
    decision.reply(ticket, Fetched(topics=fetched))
    return decision


def _fetch_one(
    machine: "GroupMachine", group_id: str, topic: TopicOffsets, partition: int, require_stable: bool
) -> FetchedOffset:
    if require_stable and machine.offsets.is_pending(group_id, topic.topic, partition):
        return FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    committed = machine.offsets.get(group_id, topic.topic, partition)
    if committed is None or _are_different_topics(committed.topic_id, topic.topic_id):
        return FetchedOffset(partition)
    return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)


def delete_offsets(
    machine: "GroupMachine",
    group_id: str,
    partitions: Sequence[tuple[str, int]],
    ticket: Ticket[OffsetsDeleted],
) -> Decision:
    """OffsetDelete, for topics and partitions that exist."""
    decision = Decision(tentative=True, asked_by=ticket)
    group = machine.groups.get(group_id)
    error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
    if group is None or error is not ErrorCode.NONE:
        decision.reply(ticket, OffsetsDeleted(error))
        return decision
    codes = []
    found = []
    pending = set(machine.offsets.pending_partitions(group_id))
    for topic, partition in partitions:
        if group.is_subscribed_to(topic):
            codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        codes.append(ErrorCode.NONE)
        if machine.offsets.get(group_id, topic, partition) is not None or (topic, partition) in pending:
            found.append((topic, partition))
    decision.reply(ticket, OffsetsDeleted(codes=tuple(codes)))
    return in_batches(offset_tombstones(group_id, found), TOMBSTONES_PER_BATCH, decision)


def _are_different_topics(stored_id: bytes, asked_id: bytes) -> bool:
    return stored_id != asked_id and ZERO_UUID not in (stored_id, asked_id)
