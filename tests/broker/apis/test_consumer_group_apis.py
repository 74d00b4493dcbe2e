"""Consumer groups of KIP-848 over the wire; what they answer in detail, the oracle knows."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest

from broker.metadata.features import GROUP_VERSION
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.messages.join_group import JoinGroupResponse
from protocol.stored.metadata_records import FeatureLevelRecord
from tests.broker.groups.group_broker import GroupBroker, group_broker
from tests.golden.groups import steps

JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="m",
    rebalance_timeout_ms=300_000,
    subscribed_topic_names=["t"],
    topic_partitions=[],
)


@asynccontextmanager
async def coordinator(
    settings: Mapping[str, str] | None = None, *, level: int = 1
) -> AsyncGenerator[GroupBroker]:
    """A broker that coordinates groups, with ``group.version`` at this level."""
    async with group_broker(settings) as broker:
        broker.make_offsets_topic()
        broker.broker.apply(FeatureLevelRecord(name=GROUP_VERSION, feature_level=level))
        yield broker


@pytest.mark.parametrize("version", [0, 1])
async def test_a_member_joins_and_is_described(version: int) -> None:
    async with coordinator() as broker:
        topic_id = broker.broker.create_topic("t", 2)
        joined = broker.ask(JOIN, ConsumerGroupHeartbeatResponse, version)
        assert joined.error_code == 0
        assert joined.member_id == "m"
        assert joined.assignment is not None
        owned = [(topic.topic_id, topic.partitions) for topic in joined.assignment.topic_partitions]
        assert owned == [(topic_id, [0, 1])]
        asked = ConsumerGroupDescribeRequest(group_ids=["g"])
        (group,) = broker.ask(asked, ConsumerGroupDescribeResponse, version).groups
        (member,) = group.members
        assert (group.group_state, member.member_id, member.subscribed_topic_names) == ("Stable", "m", ["t"])


async def test_the_broker_makes_up_a_member_id_in_the_first_version() -> None:
    async with coordinator() as broker:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
        )
        assert broker.ask(request, ConsumerGroupHeartbeatResponse, 0).member_id
        refused = broker.ask(request, ConsumerGroupHeartbeatResponse, 1)
        assert refused.error_code == ErrorCode.INVALID_REQUEST


async def test_a_member_that_joins_must_own_nothing() -> None:
    async with coordinator() as broker:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[TopicPartitions(topic_id=bytes(16), partitions=[0])],
        )
        answer = broker.ask(request, ConsumerGroupHeartbeatResponse, 1)
        assert answer.error_code == ErrorCode.INVALID_REQUEST


async def test_an_operator_may_switch_the_protocol_off() -> None:
    async with coordinator({"group.coordinator.rebalance.protocols": "classic"}) as broker:
        broker.broker.create_topic("t", 2)
        beaten = broker.ask(JOIN, ConsumerGroupHeartbeatResponse, 1)
        assert beaten.error_code == ErrorCode.UNSUPPORTED_VERSION
        asked = ConsumerGroupDescribeRequest(group_ids=["g", "h"])
        described = broker.ask(asked, ConsumerGroupDescribeResponse, 1)
        assert [(group.group_id, group.error_code) for group in described.groups] == [
            ("g", ErrorCode.UNSUPPORTED_VERSION),
            ("h", ErrorCode.UNSUPPORTED_VERSION),
        ]
        joined = broker.ask(steps.join("g", instance="i"), JoinGroupResponse, 5)
        assert joined.error_code == 0


async def test_the_protocol_needs_its_feature() -> None:
    async with coordinator(level=0) as broker:
        beaten = broker.ask(JOIN, ConsumerGroupHeartbeatResponse, 1)
        assert beaten.error_code == ErrorCode.UNSUPPORTED_VERSION
