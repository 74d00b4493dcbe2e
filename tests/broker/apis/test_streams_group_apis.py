"""Streams groups of KIP-1071 over the wire; what they answer in detail, the oracle knows."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.metadata.features import STREAMS_VERSION
from protocol.error_codes import ErrorCode
from protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from protocol.stored.metadata_records import FeatureLevelRecord
from tests.broker.groups.group_broker import GroupBroker, group_broker
from tests.broker.groups.streams.streams_room import reading

AT_ONCE = {"group.streams.initial.rebalance.delay.ms": "0"}


def joining(**how: Any) -> StreamsGroupHeartbeatRequest:
    told: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "process_id": "p",
        "rebalance_timeout_ms": 300_000,
        "topology": reading("t"),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        **how,
    }
    return StreamsGroupHeartbeatRequest(**told)


@asynccontextmanager
async def coordinator(
    settings: Mapping[str, str] | None = None, *, level: int = 1
) -> AsyncGenerator[GroupBroker]:
    """A broker that coordinates groups, with ``streams.version`` at this level."""
    async with group_broker({**AT_ONCE, **(settings or {})}) as broker:
        broker.make_offsets_topic()
        broker.broker.apply(FeatureLevelRecord(name=STREAMS_VERSION, feature_level=level))
        yield broker


@pytest.mark.parametrize("version", [0, 1])
async def test_a_member_joins_and_is_described(version: int) -> None:
    async with coordinator() as broker:
        broker.broker.create_topic("t", 2)
        joined = broker.ask(joining(), StreamsGroupHeartbeatResponse, version)
        assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
        assert joined.active_tasks == [TaskIds(subtopology_id="0", partitions=[0, 1])]
        assert joined.acceptable_recovery_lag == (10_000 if version else -1)
        asked = StreamsGroupDescribeRequest(group_ids=["g", "", "h"], include_authorized_operations=True)
        found, unnamed, unknown = sorted(
            broker.ask(asked, StreamsGroupDescribeResponse, version).groups,
            key=lambda group: group.error_code,
        )
        assert (found.group_state, [member.client_host for member in found.members]) == (
            "Stable",
            ["/127.0.0.1"],
        )
        assert found.authorized_operations > 0
        assert (unnamed.error_code, unknown.error_code) == (
            ErrorCode.INVALID_GROUP_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
        )


async def test_descriptions_of_topologies_are_turned_away() -> None:
    async with coordinator() as broker:
        broker.broker.create_topic("t", 2)
        broker.ask(joining(), StreamsGroupHeartbeatResponse, 1)
        update = StreamsGroupTopologyDescriptionUpdateRequest(group_id="g", member_id="m")
        refused = broker.ask(update, StreamsGroupTopologyDescriptionUpdateResponse, 0)
        assert (refused.error_code, refused.error_message) == (
            ErrorCode.UNSUPPORTED_VERSION,
            "The broker has no streams group topology description plugin configured.",
        )
        asked = StreamsGroupDescribeRequest(group_ids=["g"], include_topology_description=True)
        (group,) = broker.ask(asked, StreamsGroupDescribeResponse, 1).groups
        assert (group.topology_description_status, group.topology_description) == (1, None)


@pytest.mark.parametrize(
    ("settings", "level"), [({}, 0), ({"group.coordinator.rebalance.protocols": "classic,consumer"}, 1)]
)
async def test_an_operator_may_switch_them_off(settings: Mapping[str, str], level: int) -> None:
    async with coordinator(settings, level=level) as broker:
        off = ErrorCode.UNSUPPORTED_VERSION
        assert broker.ask(joining(), StreamsGroupHeartbeatResponse, 1).error_code == off
        asked = StreamsGroupDescribeRequest(group_ids=["g"])
        assert [group.error_code for group in broker.ask(asked, StreamsGroupDescribeResponse, 1).groups] == [
            off
        ]
        update = StreamsGroupTopologyDescriptionUpdateRequest(group_id="g", member_id="m")
        refused = broker.ask(update, StreamsGroupTopologyDescriptionUpdateResponse, 0)
        assert (refused.error_code, refused.error_message) == (off, None)


def storing(name: str, partitions: int = 0) -> Topology:
    log = TopicInfo(name=name, partitions=partitions)
    return Topology(
        subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"], state_changelog_topics=[log])]
    )


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (joining(member_id=" "), "MemberId can't be empty."),
        (joining(group_id=""), "GroupId can't be empty."),
        (joining(instance_id=""), "InstanceId can't be empty."),
        (joining(rack_id=""), "RackId can't be empty."),
        (joining(rebalance_timeout_ms=-1), "RebalanceTimeoutMs must be provided in first request."),
        (joining(active_tasks=None), "ActiveTasks must be empty when (re-)joining."),
        (joining(standby_tasks=[TaskIds()]), "StandbyTasks must be empty when (re-)joining."),
        (joining(warmup_tasks=None), "WarmupTasks must be empty when (re-)joining."),
        (joining(topology=None), "Topology must be non-null when (re-)joining."),
        (joining(member_epoch=1), "Topology can only be provided when (re-)joining."),
        (
            joining(member_epoch=1, topology=None, warmup_tasks=None),
            "If one task-type is non-null, all must be non-null.",
        ),
        (joining(member_epoch=-2, topology=None), "InstanceId can't be null."),
        (
            joining(member_epoch=-3, topology=None),
            "MemberEpoch is -3, but must be greater than or equal to -2.",
        ),
    ],
)
async def test_what_makes_no_sense_is_refused(request_: StreamsGroupHeartbeatRequest, why: str) -> None:
    async with coordinator() as broker:
        refused = broker.ask(request_, StreamsGroupHeartbeatResponse, 1)
        assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, why)


@pytest.mark.parametrize(
    ("topology", "why"),
    [
        (
            storing("__consumer_offsets"),
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        (storing("a b"), "Topic names a b are not valid topic names."),
        (
            storing("log", 3),
            "Changelog topic log must have an undefined partition count, but it is set to 3.",
        ),
    ],
)
async def test_topologies_that_can_never_work_are_refused(topology: Topology, why: str) -> None:
    async with coordinator() as broker:
        refused = broker.ask(joining(topology=topology), StreamsGroupHeartbeatResponse, 1)
        assert (refused.error_code, refused.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, why)
