"""What members ask a group and what they are told, without the versions of the wire."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from broker.coordination.clients import Client
from protocol.error_codes import ErrorCode

NO_GENERATION = -1
NO_MEMBER_ID = ""

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata of each protocol that a member can use, the preferred one first."""


class Joining(NamedTuple):
    """One JoinGroup request."""

    member_id: str
    """Empty: the group gives one, which is ``new_member_id`` or something that ends like it."""
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    new_member_id: str
    new_consumer_id: str
    """What a consumer group gives instead: ids of KIP-848 do not begin with the client's."""
    must_rejoin_with_id: bool
    """A new dynamic member is only told its id, and has to ask again with it (KIP-394)."""
    can_skip_assignment: bool
    """A leader's heir may be told that the assignment stands (KIP-814)."""


class JoinedMember(NamedTuple):
    """What the leader learns about a member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """The answer to JoinGroup."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    """Everybody, for the leader; empty for the others."""


class Syncing(NamedTuple):
    """One SyncGroup request."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]
    """By member id; only the leader's counts."""


class Synced(NamedTuple):
    """The answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class Leaving(NamedTuple):
    """One member that leaves, or is removed by its instance id alone."""

    member_id: str
    instance_id: str | None


class Left(NamedTuple):
    """The answer to LeaveGroup: one code per ``Leaving``, in order, unless ``error`` refuses them all."""

    error: ErrorCode = ErrorCode.NONE
    codes: tuple[ErrorCode, ...] = ()


class MemberDescription(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    """One group for DescribeGroups and ListGroups."""

    group_id: str
    error: ErrorCode
    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    """Only of a stable group."""
    members: tuple[MemberDescription, ...] = ()
    kind: str = "classic"
    message: str | None = None
    """What is wrong, where there is a place to say it."""


class Listed(NamedTuple):
    """The answer of ListGroups from one partition."""

    error: ErrorCode = ErrorCode.NONE
    groups: tuple[GroupDescription, ...] = ()


class OffsetToCommit(NamedTuple):
    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class Committing(NamedTuple):
    """One OffsetCommit request, as far as its topics exist."""

    member_id: str
    instance_id: str | None
    generation: int
    """-1 from operators, and from consumers that assign themselves."""
    retention_ms: int
    """-1: the group's rules decide how long the offsets stay."""
    unknown_group: ErrorCode
    """What a member of a group that is not there is told."""
    knows_member_epochs: bool
    """The request's version is one that members of consumer groups may use (KIP-848)."""
    offsets: tuple[OffsetToCommit, ...]


class CommittingInTransaction(NamedTuple):
    """One TxnOffsetCommit request, as far as its topics exist."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    client: Client
    committing: Committing
    """Its generation is -1, and it names no member, if the producer does not tell who reads for it."""


class TopicOffsets(NamedTuple):
    """A topic whose offsets are asked for, with the partitions."""

    topic: str
    topic_id: bytes
    """Zero: any topic of that name."""
    partitions: tuple[int, ...]


class FetchedOffset(NamedTuple):
    """The answer of OffsetFetch for one partition; offset and epoch are -1 where nothing is committed."""

    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class FetchedTopic(NamedTuple):
    topic: str
    topic_id: bytes
    """As asked for."""
    partitions: tuple[FetchedOffset, ...]


class Fetched(NamedTuple):
    """The answer of OffsetFetch for one group."""

    error: ErrorCode = ErrorCode.NONE
    topics: tuple[FetchedTopic, ...] = ()


class OffsetsDeleted(NamedTuple):
    """The answer of OffsetDelete: one code per topic and partition asked for, in order."""

    error: ErrorCode = ErrorCode.NONE
    codes: tuple[ErrorCode, ...] = ()


class Beat(NamedTuple):
    """One ConsumerGroupHeartbeat request.  None: as the member said last."""

    member_id: str
    member_epoch: int
    """0 to join, -1 to leave, -2 to go away for a while under ``instance_id``."""
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    """-1: as the member said last."""
    topic_names: Sequence[str] | None
    topic_regex: str | None
    server_assignor: str | None
    claimed: Sequence[tuple[bytes, Sequence[int]]] | None
    """Topic ids and partitions that the member owns."""
    new_member_id: str
    """For a member without an id, which is allowed in version 0."""

    @property
    def is_full(self) -> bool:
        """The member says everything: it wants to hear everything."""
        return (
            self.rebalance_timeout_ms != -1
            and (self.topic_names is not None or self.topic_regex is not None)
            and self.claimed is not None
        )


class Beaten(NamedTuple):
    """The answer to ConsumerGroupHeartbeat."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[bytes, Collection[int]] | None = None
    """None: as the member was told last."""


class ConsumerMemberDescription(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: Sequence[str]
    topic_regex: str | None
    assignment: Mapping[bytes, Collection[int]]
    target: Mapping[bytes, Collection[int]]
    is_classic: bool
    """It speaks the classic protocol (online migration)."""


class ConsumerGroupDescription(NamedTuple):
    """One group for ConsumerGroupDescribe."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[ConsumerMemberDescription, ...] = ()
