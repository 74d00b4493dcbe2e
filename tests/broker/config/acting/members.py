"""What members of groups of every kind tell a whole broker."""

from typing import Any, TypeVar

import trio

from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    Topology,
)
from protocol.schema import Message
from tests.broker.config.acting.whole_broker import WholeBroker

Response = TypeVar("Response", bound=Message)

GROUPS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "group.streams.initial.rebalance.delay.ms": "0",
}

OF_GROUPS, OF_TRANSACTIONS = 0, 1

_NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


async def coordinate(broker: WholeBroker, kind: int = OF_GROUPS) -> None:
    """Let the broker make the internal topic, and wait until it coordinates."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
    for _ in range(1000):
        answer = await broker.ask(request, FindCoordinatorResponse, 4)
        if not answer.coordinators[0].error_code:
            return
        await trio.sleep(0.001)
    raise AssertionError(answer)


async def steadily(
    broker: WholeBroker, request: Message, kind: type[Response], version: int | None = None
) -> Any:
    """The answer of a coordinator that has begun."""
    for _ in range(1000):
        answer: Any = await broker.ask(request, kind, version)
        if answer.error_code not in _NOT_READY:
            return answer
        await trio.sleep(0.001)
    raise AssertionError(answer)


async def beat(
    broker: WholeBroker, protocol: str, *, member: str = "m", group: str = "g", epoch: int = 0, **more: Any
) -> Any:
    """A heartbeat of a member of a group of the consumer, share or streams protocol; epoch 0 joins."""
    told: dict[str, Any] = {"group_id": group, "member_id": member, "member_epoch": epoch}
    if protocol == "share":
        if epoch == 0:
            told["subscribed_topic_names"] = ["t"]
        return await steadily(broker, ShareGroupHeartbeatRequest(**told, **more), ShareGroupHeartbeatResponse)
    if protocol == "consumer":
        if epoch == 0:
            told |= {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout_ms": 60_000}
        return await steadily(
            broker, ConsumerGroupHeartbeatRequest(**{**told, **more}), ConsumerGroupHeartbeatResponse
        )
    if epoch == 0:
        part = Subtopology(subtopology_id="0", source_topics=["t"])
        told |= {
            "topology": Topology(epoch=0, subtopologies=[part]),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": member,
            "rebalance_timeout_ms": 60_000,
        }
    return await steadily(
        broker, StreamsGroupHeartbeatRequest(**{**told, **more}), StreamsGroupHeartbeatResponse
    )


def joining(group: str = "g", *, session_ms: int = 10_000, rebalance_ms: int = 300_000) -> JoinGroupRequest:
    """The first request of a new member of a classic group, to be sent in version 3."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )


SUBSCRIPTION = bytes.fromhex("0000" + "00000001" + "0001" + b"t".hex() + "ffffffff")
"""Version 0 of what a consumer says of itself: the topic ``t``."""
