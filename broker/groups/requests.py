"""What members ask a group and what they are told, without the versions of the wire."""

from typing import NamedTuple

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
    offsets: tuple[OffsetToCommit, ...]


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
