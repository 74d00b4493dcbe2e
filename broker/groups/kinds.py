"""The kinds of groups: this table is all that has to change for another one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.coordination.decision import Decision, Moment
from broker.groups import classic_requests, consumer_requests
from broker.groups.classic import ClassicGroup
from broker.groups.cluster import Cluster
from broker.groups.consumer import ConsumerGroup
from broker.groups.group import ClassicProtocol, Group
from broker.groups.settings import GroupSettings
from broker.groups.streams import commands as streams_requests
from broker.groups.streams.group import StreamsGroup
from broker.share import group_commands as share_requests
from broker.share.group import ShareGroup
from protocol.schema import Message
from protocol.stored import group_records as stored

if TYPE_CHECKING:
    from broker.coordination.tickets import Ticket
    from broker.groups.machine import GroupMachine
    from broker.groups.service import GroupService
    from protocol.error_codes import ErrorCode


class Kind(NamedTuple):
    """One kind: its records, and what is asked of its groups that they cannot answer by themselves."""

    group: type
    make: Callable[[str, GroupSettings, Cluster], Group]
    """A group that nothing has been stored of."""
    ended_by: type[Message]
    """The key whose tombstone ends a group."""
    other_keys: tuple[type[Message], ...]
    advance: Callable[["GroupMachine", Any, Moment], Decision]
    """Do one thing that is due."""
    classic: ClassicProtocol | None = None
    """For members that speak the classic protocol; None turns them away."""
    is_told_whole: bool = False
    """A record tells everything of a group: while loading, what stood before it counts for nothing."""
    delete: "Callable[[GroupService, str], Ticket[ErrorCode]] | None" = None
    """What DeleteGroups has to do outside of the group as well, first."""

    @property
    def keys(self) -> tuple[type[Message], ...]:
        return (self.ended_by, *self.other_keys)


def _delete_share_group(groups: "GroupService", group_id: str) -> "Ticket[ErrorCode]":
    from broker.share.group_admin import delete_group  # most brokers never need it

    return delete_group(groups, group_id)


KINDS: Final = (
    Kind(
        ClassicGroup,
        lambda group_id, settings, _: ClassicGroup(group_id, settings),
        ended_by=stored.GroupMetadataKey,
        other_keys=(),
        advance=classic_requests.advance,
        classic=classic_requests,
        is_told_whole=True,
    ),
    Kind(
        ConsumerGroup,
        ConsumerGroup,
        ended_by=stored.ConsumerGroupMetadataKey,
        other_keys=(
            stored.ConsumerGroupPartitionMetadataKey,
            stored.ConsumerGroupMemberMetadataKey,
            stored.ConsumerGroupTargetAssignmentMetadataKey,
            stored.ConsumerGroupTargetAssignmentMemberKey,
            stored.ConsumerGroupCurrentMemberAssignmentKey,
            stored.ConsumerGroupRegularExpressionKey,
        ),
        advance=consumer_requests.advance,
        classic=consumer_requests,
    ),
    Kind(
        ShareGroup,
        ShareGroup,
        ended_by=stored.ShareGroupMetadataKey,
        other_keys=(
            stored.ShareGroupMemberMetadataKey,
            stored.ShareGroupTargetAssignmentMetadataKey,
            stored.ShareGroupTargetAssignmentMemberKey,
            stored.ShareGroupCurrentMemberAssignmentKey,
            stored.ShareGroupStatePartitionMetadataKey,
        ),
        advance=share_requests.advance,
        delete=_delete_share_group,
    ),
    Kind(
        StreamsGroup,
        StreamsGroup,
        ended_by=stored.StreamsGroupMetadataKey,
        other_keys=(
            stored.StreamsGroupMemberMetadataKey,
            stored.StreamsGroupTargetAssignmentMetadataKey,
            stored.StreamsGroupTargetAssignmentMemberKey,
            stored.StreamsGroupCurrentMemberAssignmentKey,
            stored.StreamsGroupTopologyKey,
        ),
        advance=streams_requests.advance,
    ),
)

_BY_TYPE: Final = {kind.group: kind for kind in KINDS}
_BY_KEY: Final = {key: kind for kind in KINDS for key in kind.keys}


def kind_of(group: Group) -> Kind:
    return _BY_TYPE[type(group)]


def kind_told_of(key: Message) -> Kind:
    """The kind of the groups that records with such a key tell of."""
    return _BY_KEY[type(key)]
