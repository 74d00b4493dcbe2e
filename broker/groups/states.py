"""What a classic group is doing, what may follow, and what each state answers."""

from enum import Enum
from typing import Final, NamedTuple

from protocol.error_codes import ErrorCode


class GroupState(Enum):
    """The value is the name that clients see."""

    EMPTY = "Empty"
    """No members; offsets may remain, and members that were only given an id may be on their way."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members must join (again): those who have are waiting for the others."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A new generation is known; the leader's assignment is awaited."""
    STABLE = "Stable"
    """Everybody has an assignment."""
    DEAD = "Dead"
    """The group is gone.  Also what clients are told of a group that never was."""


NEXT: Final = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset[GroupState](),
}
"""The legal transitions."""


class Answers(NamedTuple):
    """What a member of the current generation is told, and an operator who wants to delete."""

    heartbeat: ErrorCode
    sync: ErrorCode
    """NONE: the assignment is given, now or when the leader has made it."""
    commit: ErrorCode
    delete_group: ErrorCode


ANSWERS: Final = {
    GroupState.EMPTY: Answers(
        heartbeat=ErrorCode.UNKNOWN_MEMBER_ID,
        sync=ErrorCode.UNKNOWN_MEMBER_ID,
        commit=ErrorCode.UNKNOWN_MEMBER_ID,
        delete_group=ErrorCode.NONE,
    ),
    GroupState.PREPARING_REBALANCE: Answers(
        heartbeat=ErrorCode.REBALANCE_IN_PROGRESS,
        sync=ErrorCode.REBALANCE_IN_PROGRESS,
        commit=ErrorCode.NONE,
        delete_group=ErrorCode.NON_EMPTY_GROUP,
    ),
    # A member may commit what it has read until it gives its partitions up, but not in the name of a
    # generation whose assignment it does not have yet.
    GroupState.COMPLETING_REBALANCE: Answers(
        heartbeat=ErrorCode.NONE,
        sync=ErrorCode.NONE,
        commit=ErrorCode.REBALANCE_IN_PROGRESS,
        delete_group=ErrorCode.NON_EMPTY_GROUP,
    ),
    GroupState.STABLE: Answers(
        heartbeat=ErrorCode.NONE,
        sync=ErrorCode.NONE,
        commit=ErrorCode.NONE,
        delete_group=ErrorCode.NON_EMPTY_GROUP,
    ),
    GroupState.DEAD: Answers(
        heartbeat=ErrorCode.UNKNOWN_MEMBER_ID,
        sync=ErrorCode.UNKNOWN_MEMBER_ID,
        commit=ErrorCode.GROUP_ID_NOT_FOUND,
        delete_group=ErrorCode.GROUP_ID_NOT_FOUND,
    ),
}
"""What each state answers when member id, instance id and generation are right."""
