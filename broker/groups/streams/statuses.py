"""What a heartbeat tells a member about its group, besides its tasks."""

from enum import IntEnum
from typing import NamedTuple


class StreamsStatus(IntEnum):
    """The numbers of StreamsGroupHeartbeat's statuses."""

    STALE_TOPOLOGY = 0
    """The member runs an older topology than its group."""
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    """They are being made, or could not be."""
    SHUTDOWN_APPLICATION = 4
    """A member wants the whole application to stop."""
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
    """The member lacks tags that the group's standby tasks should be spread by; since version 1."""


class StatusDetail(NamedTuple):
    """One status and its text."""

    status: StreamsStatus
    detail: str
