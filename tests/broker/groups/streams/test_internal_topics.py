"""Topics that streams applications keep for themselves are made behind their heartbeats."""

import pytest

from broker.groups.streams.configured import InternalTopic
from broker.groups.streams.internal_topics import InternalTopics
from broker.groups.streams.statuses import StreamsStatus
from protocol.messages.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse
from tests.broker.controller.node import ControllerNode
from tests.broker.controller.test_automatic_topics import carry_out

RETRY_MS = 3_600_000


@pytest.fixture
def node() -> ControllerNode:
    started = ControllerNode({})
    started.start()
    return started


def missing(*names: str) -> StreamsGroupHeartbeatResponse:
    detail = f"Internal topics are missing: {', '.join(names)}"
    return StreamsGroupHeartbeatResponse(
        status=[
            Status(status_code=StreamsStatus.STALE_TOPOLOGY, status_detail="stale"),
            Status(status_code=StreamsStatus.MISSING_INTERNAL_TOPICS, status_detail=detail),
        ]
    )


def details(response: StreamsGroupHeartbeatResponse) -> list[str]:
    return [status.status_detail for status in response.status or ()]


def wanted(name: str, partitions: int = 2, replicas: int = 0, **configs: str) -> dict[str, InternalTopic]:
    configs = {key.replace("_", "."): value for key, value in configs.items()}
    return {name: InternalTopic(name, partitions, replicas, configs)}


async def test_topics_are_made_as_the_application_wants_them(node: ControllerNode) -> None:
    topics = InternalTopics(node.services)
    response = missing("log")
    topics.make(wanted("log", 3, cleanup_policy="compact"), response, RETRY_MS)
    assert details(response) == ["stale", "Internal topics are missing: log"]
    topics.make(wanted("log", 3), missing("log"), RETRY_MS)  # it is under way
    await carry_out(node)
    assert len(node.image.topics["log"].partitions) == 3
    assert node.image.topic_config("log") == {"cleanup.policy": "compact"}


async def test_members_are_told_why_topics_cannot_be_made(node: ControllerNode) -> None:
    topics = InternalTopics(node.services)
    names = [f"log-{number}" for number in range(4)]
    all_wanted: dict[str, InternalTopic] = {}
    for name in names:
        all_wanted |= wanted(name, replicas=3)
    topics.make(all_wanted, missing(*names), RETRY_MS)
    await carry_out(node)
    response = missing(*names)
    topics.make(all_wanted, response, RETRY_MS)
    why = "Unable to replicate the partition 3 time(s)"
    stale, told = details(response)
    assert stale == "stale"
    assert told.startswith("Internal topics are missing: log-0, log-1, log-2, log-3; Creation failed: log-")
    assert told.count(why) == 3
    assert told.endswith(" and 1 more.")


async def test_what_failed_is_tried_again_after_a_while(node: ControllerNode) -> None:
    topics = InternalTopics(node.services)
    topics.make(wanted("log", replicas=3), missing("log"), RETRY_MS)
    await carry_out(node)
    topics.make(wanted("log"), missing("log"), RETRY_MS)
    await carry_out(node)
    assert "log" not in node.image.topics, "it is left alone"
    node.clock.advance(RETRY_MS)
    response = missing("log")
    topics.make(wanted("log"), response, RETRY_MS)
    assert details(response)[1] == "Internal topics are missing: log"
    await carry_out(node)
    assert "log" in node.image.topics
