"""What members ask a streams group, and what they are told."""

from collections.abc import Mapping
from typing import NamedTuple

from broker.groups.streams.configured import InternalTopic
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


class StreamsBeat(NamedTuple):
    """One StreamsGroupHeartbeat request."""

    told: StreamsGroupHeartbeatRequest
    client_id: str
    client_host: str
    knows_client_tags_status: bool
    """Older clients fail when they are told that they lack client tags."""


class StreamsBeaten(NamedTuple):
    """The answer, and the topics that somebody has to make before the group gets tasks."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic] = {}
