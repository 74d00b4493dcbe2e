"""What clients ask of groups: each command finds the group's shard, and returns a ticket.

The ticket is settled at once unless somebody or something has to be waited for.
"""

from collections.abc import Collection, Sequence
from typing import Any

from broker.coordination.tickets import Ticket
from broker.groups import consumer_requests, member_requests, offset_requests
from broker.groups.kinds import kind_of
from broker.groups.requests import (
    NO_MEMBER_ID,
    Beat,
    Beaten,
    Committing,
    CommittingInTransaction,
    ConsumerGroupDescription,
    Fetched,
    GroupDescription,
    Joined,
    Joining,
    Leaving,
    Left,
    Listed,
    OffsetsDeleted,
    Synced,
    Syncing,
    TopicOffsets,
)
from broker.groups.service import GroupService
from broker.groups.streams import commands as streams_requests
from broker.groups.streams.requests import StreamsBeat, StreamsBeaten
from broker.share import group_commands
from broker.share.group_commands import ShareBeat
from protocol.error_codes import ErrorCode
from protocol.limits import STRING_SIZE_MAX
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from storage.transaction_verification import Verification


def join(groups: GroupService, group_id: str, joining: Joining) -> Ticket[Joined]:
    """JoinGroup."""
    ticket = Ticket(lambda code: Joined(NO_MEMBER_ID, code))
    settings = groups.settings
    timeout_ms = joining.session_timeout_ms
    if not group_id:
        ticket.settle(Joined(joining.member_id, ErrorCode.INVALID_GROUP_ID))
    elif not _can_be_stored(
        group_id,
        joining.instance_id or "",
        joining.client_id,
        joining.new_member_id,
        joining.member_id,
        joining.protocol_type,
        *(name for name, _ in joining.protocols),
    ):
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    elif not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
        ticket.settle(Joined(joining.member_id, ErrorCode.INVALID_SESSION_TIMEOUT))
    else:
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: member_requests.join(machine, group_id, joining, ticket, now),
        )
    return ticket


def sync(groups: GroupService, group_id: str, syncing: Syncing) -> Ticket[Synced]:
    """SyncGroup."""
    ticket = Ticket(Synced)
    if _is_named(group_id, ticket):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: member_requests.sync(machine, group_id, syncing, ticket, now),
        )
    return ticket


def heartbeat(
    groups: GroupService, group_id: str, member_id: str, instance_id: str | None, generation: int
) -> Ticket[ErrorCode]:
    """Heartbeat.  While the group is loading, a member is told that all is well: it cannot be helped."""
    ticket: Ticket[ErrorCode] = Ticket(
        lambda code: ErrorCode.NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code
    )
    if _is_named(group_id, ticket):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: member_requests.heartbeat(
                machine, group_id, member_id, instance_id, generation, ticket, now
            ),
        )
    return ticket


def leave(groups: GroupService, group_id: str, leaving: list[Leaving]) -> Ticket[Left]:
    """LeaveGroup."""
    ticket = Ticket(Left)
    if _is_named(group_id, ticket):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: member_requests.leave(machine, group_id, leaving, ticket, now),
        )
    return ticket


def commit(groups: GroupService, group_id: str, committing: Committing) -> Ticket[Sequence[ErrorCode]]:
    """OffsetCommit.  The group without a name is allowed: it cannot have members."""
    ticket: Ticket[Sequence[ErrorCode]] = Ticket(lambda code: [code] * len(committing.offsets))
    if _can_be_stored(group_id, *(offset.metadata for offset in committing.offsets)):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: offset_requests.commit(machine, group_id, committing, ticket, now),
        )
    else:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    return ticket


def commit_in_transaction(
    groups: GroupService, group_id: str, asked: CommittingInTransaction
) -> Ticket[Sequence[ErrorCode]]:
    """TxnOffsetCommit.  The transaction's coordinator is asked first, unless it has been before."""
    offsets = asked.committing.offsets
    ticket: Ticket[Sequence[ErrorCode]] = Ticket(lambda code: [code] * len(offsets))
    if not _is_named(group_id, ticket):
        return ticket
    if not _can_be_stored(group_id, *(offset.metadata for offset in offsets)):
        ticket.refuse(ErrorCode.INVALID_REQUEST)
        return ticket

    def write(verification: Verification | None) -> None:
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: offset_requests.commit_in_transaction(
                machine, group_id, asked, verification, ticket, now
            ),
        )

    groups.verify_transaction(groups.partition_for(group_id), asked, ticket, write)
    return ticket


def fetch(
    groups: GroupService,
    group_id: str,
    topics: Sequence[TopicOffsets] | None,
    *,
    require_stable: bool,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> Ticket[Fetched]:
    """OffsetFetch, one group of it."""
    ticket = Ticket(_fetch_refused)
    groups.ask(
        group_id,
        ticket,
        lambda machine, _: offset_requests.fetch(
            machine, group_id, topics, require_stable, ticket, member_id=member_id, member_epoch=member_epoch
        ),
    )
    return ticket


def delete_offsets(
    groups: GroupService, group_id: str, partitions: Sequence[tuple[str, int]]
) -> Ticket[OffsetsDeleted]:
    """OffsetDelete."""
    ticket = Ticket(OffsetsDeleted)
    if _is_named(group_id, ticket):
        groups.ask(
            group_id,
            ticket,
            lambda machine, _: offset_requests.delete_offsets(machine, group_id, partitions, ticket),
        )
    return ticket


def beat(groups: GroupService, group_id: str, asked: Beat) -> Ticket[Beaten]:
    """ConsumerGroupHeartbeat, once it is known to make sense by itself."""
    ticket = Ticket(Beaten)
    texts = (asked.topic_regex, asked.rack_id, asked.instance_id, asked.client_id, asked.member_id)
    if _can_be_stored(group_id, *(text for text in texts if text), *(asked.topic_names or ())):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: consumer_requests.beat(machine, group_id, asked, ticket, now),
        )
    else:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    return ticket


def describe_consumers(groups: GroupService, group_id: str) -> Ticket[ConsumerGroupDescription]:
    """ConsumerGroupDescribe, one group of it."""
    ticket = Ticket(lambda code: ConsumerGroupDescription(group_id, code))
    if _is_named(group_id, ticket):
        groups.ask(group_id, ticket, lambda machine, _: consumer_requests.describe(machine, group_id, ticket))
    return ticket


def beat_share(groups: GroupService, group_id: str, asked: ShareBeat) -> Ticket[Beaten]:
    """ShareGroupHeartbeat, once it is known to make sense by itself."""
    ticket = Ticket(Beaten)
    if _can_be_stored(group_id, asked.client_id, asked.rack_id or "", *(asked.topic_names or ())):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: group_commands.beat(machine, group_id, asked, ticket, now),
        )
    else:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    return ticket


def describe_share(groups: GroupService, group_id: str) -> Ticket[ConsumerGroupDescription]:
    """ShareGroupDescribe, one group of it."""
    from broker.share.state_commands import REFUSAL_TEXTS  # only share groups have texts for these

    ticket = Ticket(lambda code: ConsumerGroupDescription(group_id, code, message=REFUSAL_TEXTS.get(code)))
    if _is_named(group_id, ticket):
        groups.ask(group_id, ticket, lambda machine, _: group_commands.describe(machine, group_id, ticket))
    return ticket


def beat_streams(groups: GroupService, group_id: str, asked: StreamsBeat) -> Ticket[StreamsBeaten]:
    """StreamsGroupHeartbeat, once it is known to make sense by itself."""
    ticket = Ticket(lambda code: StreamsBeaten(StreamsGroupHeartbeatResponse(error_code=code)))
    told = asked.told
    texts = (asked.client_id, told.member_id, told.instance_id, told.rack_id, told.process_id)
    if _can_be_stored(group_id, *(text for text in texts if text)):
        groups.ask(
            group_id,
            ticket,
            lambda machine, now: streams_requests.beat(machine, group_id, asked, ticket, now),
        )
    else:
        ticket.refuse(ErrorCode.INVALID_REQUEST)
    return ticket


def describe_streams(groups: GroupService, group_id: str) -> Ticket[DescribedGroup]:
    """StreamsGroupDescribe, one group of it."""
    ticket = Ticket(lambda code: DescribedGroup(group_id=group_id, error_code=code))
    if _is_named(group_id, ticket):
        groups.ask(group_id, ticket, lambda machine, _: streams_requests.describe(machine, group_id, ticket))
    return ticket


def describe(groups: GroupService, group_id: str) -> Ticket[GroupDescription]:
    """DescribeGroups, one group of it."""
    ticket = Ticket(lambda code: GroupDescription(group_id, code, ""))
    groups.ask(group_id, ticket, lambda machine, _: machine.describe(group_id, ticket))
    return ticket


def delete(groups: GroupService, group_id: str) -> Ticket[ErrorCode]:
    """DeleteGroups, one group of it."""
    shard = groups.shard(groups.partition_for(group_id))
    known = None if shard is None or shard.machine is None else shard.machine.groups.get(group_id)
    delete_elsewhere = None if known is None else kind_of(known).delete
    if delete_elsewhere is not None:
        return delete_elsewhere(groups, group_id)
    ticket: Ticket[ErrorCode] = Ticket(lambda code: code)
    groups.ask(group_id, ticket, lambda machine, _: machine.delete(group_id, ticket))
    return ticket


def list_groups(
    groups: GroupService, states: Collection[str], kinds: Collection[str]
) -> list[Ticket[Listed]]:
    """ListGroups: one ticket for every partition led here.  Filters are in lower case."""
    return [_list(groups, partition, states, kinds) for partition in groups.partitions]


def _list(
    groups: GroupService, partition: int, states: Collection[str], kinds: Collection[str]
) -> Ticket[Listed]:
    ticket = Ticket(Listed)
    if groups.is_unread(partition):
        ticket.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    else:
        groups.ask_partition(partition, ticket, lambda machine, _: machine.list_groups(states, kinds, ticket))
    return ticket


def _is_named(group_id: str, ticket: Ticket[Any]) -> bool:
    if not group_id:
        ticket.refuse(ErrorCode.INVALID_GROUP_ID)
    return bool(group_id)


def _can_be_stored(*texts: str) -> bool:
    """Whether records and answers can hold these.

    What a client sent in a string of legal length may have grown: bytes that are not UTF-8 are replaced
    by longer ones, and ids are made of other ids.
    """
    return all(len(text) <= STRING_SIZE_MAX // 3 or len(text.encode()) <= STRING_SIZE_MAX for text in texts)


def _fetch_refused(code: ErrorCode) -> Fetched:
    # Consumers before 3.9 retry an OffsetFetch only after these errors.
    return Fetched(ErrorCode.NOT_COORDINATOR if code is ErrorCode.COORDINATOR_NOT_AVAILABLE else code)
