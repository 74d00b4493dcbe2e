"""What groups have in common whose members the broker assigns to: those of KIP-848 and after."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from broker.coordination.decision import Decision, Moment
from broker.coordination.tickets import Ticket
from broker.groups.cluster import Cluster
from broker.groups.requests import GroupDescription
from broker.groups.settings import GroupSettings
from broker.groups.target_assignment import INITIAL_EPOCH
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

WRITE_OFF_AGAIN_MS: Final = 500
"""Until a late member is written off again, if the log has not taken that."""

M = TypeVar("M")


class ModernGroup(ABC, Generic[M]):
    """One group, with members of type ``M`` by their ids.

    ``group_epoch`` grows with everything that may change what members should have, and ``metadata_hash``
    tells what the topics were like that it was last decided for.
    """

    kind: ClassVar[str]
    """Also what ListGroups calls its protocol type."""
    expires: ClassVar[bool] = True

    def __init__(self, group_id: str, settings: GroupSettings, cluster: Cluster) -> None:
        self.group_id = group_id
        self.settings = settings
        self.cluster = cluster
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, M] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group_id!r} {self.state_name} epoch {self.group_epoch}>"

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state under the name that clients see."""

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def yields_to_classic(self) -> bool:
        return False

    def member(self, member_id: str) -> M:
        """Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def waiting_tickets(self) -> Sequence[Ticket[Any]]:
        """Nobody waits: every request is answered with its records."""
        return ()

    def forget_topics(self, topic_ids: Collection[bytes], decision: Decision) -> None:
        """Members find out with their heartbeats."""

    # Offsets

    def committed(self, member_id: str, now: Moment) -> None:
        """A commit does not keep a session alive."""

    def check_offset_delete(self) -> ErrorCode:
        """Offsets may be deleted, except those of topics that somebody reads."""
        return ErrorCode.NONE

    # Operators

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def is_in_state(self, states: Collection[str]) -> bool:
        return self.state_name.lower() in states

    def describe(self) -> GroupDescription:
        """What DescribeGroups says: it is for classic groups."""
        return GroupDescription(
            self.group_id,
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Dead",
            message=f"Group {self.group_id} is not a classic group.",
        )

    def summarize(self) -> GroupDescription:
        """What ListGroups shows."""
        return GroupDescription(self.group_id, ErrorCode.NONE, self.state_name, self.kind, kind=self.kind)
