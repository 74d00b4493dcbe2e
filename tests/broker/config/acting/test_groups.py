"""Settings of groups: the broker's, and those of a group itself."""

from typing import Any

import pytest
import trio

from broker.clock import BrokerClock
from broker.config.definitions import Definition, Scope, definition, definitions
from broker.config.resources import GROUP_BOUNDS
from broker.config.value_types import read_integer
from broker.metadata.topic_names import GROUP_OFFSETS
from protocol.error_codes import ErrorCode
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.records.compression import Compression
from storage.partition_log import PartitionLog
from tests.broker.config.acting.members import GROUPS, beat, coordinate, joining, steadily
from tests.broker.config.acting.whole_broker import BROKER, GROUP, WholeBroker, whole_broker

KINDS = ("consumer", "share", "streams")

# Classic groups.


async def join(broker: WholeBroker, **how: Any) -> JoinGroupResponse:
    answer: JoinGroupResponse = await steadily(broker, joining(**how), JoinGroupResponse, 3)
    return answer


@pytest.mark.acts("group.max.size")
async def test_a_classic_group_may_be_full(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "group.max.size": "1"}) as broker:
        await coordinate(broker)
        assert (await join(broker)).error_code == 0
        assert (await join(broker)).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.acts("group.min.session.timeout.ms", "group.max.session.timeout.ms")
async def test_a_session_may_be_too_short_or_too_long(clock: BrokerClock) -> None:
    settings = {"group.min.session.timeout.ms": "1000", "group.max.session.timeout.ms": "2000"}
    async with whole_broker(clock, GROUPS | settings) as broker:
        await coordinate(broker)
        for session_ms, code in ((999, ErrorCode.INVALID_SESSION_TIMEOUT), (1000, 0), (2000, 0)):
            assert (await join(broker, group=f"g{session_ms}", session_ms=session_ms)).error_code == code
        assert (await join(broker, session_ms=2001)).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.acts("group.initial.rebalance.delay.ms")
async def test_a_first_member_may_wait_for_others(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "group.initial.rebalance.delay.ms": "60000"}) as broker:
        await coordinate(broker)
        member = await broker.connect()
        await member.send(joining(), 3)
        await broker.until(lambda: "g" in all_groups(broker))
        await broker.pass_time(59_000)
        assert await state(broker) == "PreparingRebalance"
        await broker.pass_time(2000)
        assert (await member.receive(JoinGroupResponse, 3)).error_code == 0
        assert await state(broker) == "CompletingRebalance"


def all_groups(broker: WholeBroker) -> set[str]:
    machines = [shard.machine for shard in broker.services.groups._shards.values()]
    return {name for machine in machines if machine is not None for name in machine.groups}


async def state(broker: WholeBroker) -> str:
    answer = await broker.ask(DescribeGroupsRequest(groups=["g"]), DescribeGroupsResponse)
    return answer.groups[0].group_state


# Offsets.


def commit(metadata: str = "") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata=metadata)
    return OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])]
    )


async def committed(broker: WholeBroker, metadata: str = "") -> int:
    answer = await broker.ask(commit(metadata), OffsetCommitResponse, 9)
    code = answer.topics[0].partitions[0].error_code
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        await trio.sleep(0.001)
        return await committed(broker, metadata)
    return code


@pytest.mark.acts("offset.metadata.max.bytes")
async def test_a_note_on_an_offset_may_be_too_long(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "offset.metadata.max.bytes": "4"}) as broker:
        await broker.create()
        await coordinate(broker)
        assert await committed(broker, "four") == 0
        assert await committed(broker, "fifth") == ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.acts("offsets.topic.num.partitions", "offsets.topic.segment.bytes")
async def test_the_topic_of_offsets_is_made_as_it_is_wanted(clock: BrokerClock) -> None:
    settings = {"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": "3000000"}
    async with whole_broker(clock, GROUPS | settings) as broker:
        await coordinate(broker)
        assert len(broker.services.image.topics[GROUP_OFFSETS].partitions) == 7
        assert broker.leader(GROUP_OFFSETS).settings["segment.bytes"] == 3_000_000


@pytest.mark.acts("offsets.topic.compression.codec")
async def test_offsets_may_be_compressed(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "offsets.topic.compression.codec": "1"}) as broker:
        await broker.create()
        await coordinate(broker)
        assert await committed(broker) == 0
        (batch,) = await broker.batches(GROUP_OFFSETS)
        assert batch.codec_number == Compression.GZIP


@pytest.mark.acts("offsets.load.buffer.size")
async def test_offsets_are_loaded_piece_by_piece(clock: BrokerClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with whole_broker(clock, GROUPS) as broker:
        await broker.create()
        await coordinate(broker)
        for _ in range(5):
            assert await committed(broker) == 0
    reads = watched(monkeypatch)
    settings = {**GROUPS, "offsets.load.buffer.size": "200"}
    async with whole_broker(clock, settings, file_system=broker.file_system) as broker:
        await broker.until(lambda: reads.count(200) >= 5)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a log asks for from now on."""
    sizes: list[int] = []
    read = PartitionLog.read

    def watched_read(log: PartitionLog, offset: int, max_bytes: int, **how: Any) -> Any:
        sizes.append(max_bytes)
        return read(log, offset, max_bytes, **how)

    monkeypatch.setattr(PartitionLog, "read", watched_read)
    return sizes


# Groups of the newer protocols.


@pytest.mark.acts(
    "consumer.heartbeat.interval.ms", "share.heartbeat.interval.ms", "streams.heartbeat.interval.ms"
)
@pytest.mark.parametrize("kind", KINDS)
async def test_members_are_told_how_often_to_report(clock: BrokerClock, kind: str) -> None:
    async with whole_broker(clock, {**GROUPS, f"group.{kind}.heartbeat.interval.ms": "7000"}) as broker:
        await broker.create()
        await coordinate(broker)
        joined = await beat(broker, kind)
        assert (joined.error_code, joined.heartbeat_interval_ms) == (0, 7000)
        await broker.alter(GROUP, "g", {f"{kind}.heartbeat.interval.ms": "8000"})
        told = await beat(broker, kind, epoch=joined.member_epoch)
        assert (told.error_code, told.heartbeat_interval_ms) == (0, 8000)


@pytest.mark.acts("consumer.session.timeout.ms", "share.session.timeout.ms", "streams.session.timeout.ms")
@pytest.mark.parametrize("kind", KINDS)
async def test_members_that_do_not_report_are_given_up(clock: BrokerClock, kind: str) -> None:
    async with whole_broker(clock, {**GROUPS, f"group.{kind}.session.timeout.ms": "50000"}) as broker:
        await broker.create()
        await coordinate(broker)
        await broker.alter(GROUP, "patient", {f"{kind}.session.timeout.ms": "60000"})
        for seconds, codes in ((49, (0, 0)), (55, (ErrorCode.UNKNOWN_MEMBER_ID, 0))):
            epochs = [(await beat(broker, kind, group=group)).member_epoch for group in ("g", "patient")]
            await broker.pass_time(seconds * 1000)
            found = [
                (await beat(broker, kind, group=group, epoch=epoch)).error_code
                for group, epoch in zip(("g", "patient"), epochs, strict=True)
            ]
            assert tuple(found) == codes


@pytest.mark.acts("group.consumer.max.size", "group.share.max.size", "group.streams.max.size")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_group_may_be_full(clock: BrokerClock, kind: str) -> None:
    async with whole_broker(clock, {**GROUPS, f"group.{kind}.max.size": "1"}) as broker:
        await broker.create()
        await coordinate(broker)
        assert (await beat(broker, kind)).error_code == 0
        assert (await beat(broker, kind, member="n")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.acts("group.consumer.assignors")
async def test_an_assignor_may_be_left_out(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "group.consumer.assignors": "range"}) as broker:
        await broker.create()
        await coordinate(broker)
        for assignor, code in (("range", 0), ("uniform", ErrorCode.UNSUPPORTED_ASSIGNOR)):
            answer = await beat(broker, "consumer", group=assignor, server_assignor=assignor)
            assert answer.error_code == code


@pytest.mark.acts("group.coordinator.rebalance.protocols")
@pytest.mark.parametrize("kind", ["consumer", "streams"])
async def test_a_protocol_may_be_left_out(clock: BrokerClock, kind: str) -> None:
    async with whole_broker(clock, {**GROUPS, "group.coordinator.rebalance.protocols": "classic"}) as broker:
        await broker.create()
        await coordinate(broker)
        assert (await beat(broker, kind)).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.acts("group.consumer.migration.policy")
@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
async def test_a_classic_group_may_stay_one(clock: BrokerClock, policy: str) -> None:
    async with whole_broker(clock, {**GROUPS, "group.consumer.migration.policy": policy}) as broker:
        await broker.create()
        await coordinate(broker)
        assert (await join(broker)).error_code == 0
        code = (await beat(broker, "consumer")).error_code
        assert code == (0 if policy == "upgrade" else ErrorCode.GROUP_ID_NOT_FOUND)


@pytest.mark.acts("streams.acceptable.recovery.lag", "streams.task.offset.interval.ms")
async def test_members_of_streams_groups_are_told_of_their_copies(clock: BrokerClock) -> None:
    async with whole_broker(clock, GROUPS) as broker:
        await broker.create()
        await coordinate(broker)
        settings = {"streams.acceptable.recovery.lag": "70", "streams.task.offset.interval.ms": "80000"}
        await broker.alter(GROUP, "g", settings)
        joined = await beat(broker, "streams")
        assert (joined.acceptable_recovery_lag, joined.task_offset_interval_ms) == (70, 80_000)


@pytest.mark.acts("streams.assignor.name", "group.streams.assignors")
async def test_a_streams_group_chooses_among_the_broker_s_assignors(clock: BrokerClock) -> None:
    async with whole_broker(clock, {**GROUPS, "group.streams.assignors": "sticky"}) as broker:
        assert await may_set(broker, "streams.assignor.name", "sticky")
        assert not await may_set(broker, "streams.assignor.name", "other")


# What groups may set, and what they get if they do not.

BOUNDED = (
    ("group.consumer.max.assignment.interval.ms", 20_000, 18_000),
    ("group.consumer.max.heartbeat.interval.ms", 20_000, 18_000),
    ("group.consumer.max.session.timeout.ms", 100_000, 80_000),
    ("group.consumer.min.assignment.interval.ms", 500, 100),
    ("group.consumer.min.heartbeat.interval.ms", 1000, 2000),
    ("group.consumer.min.session.timeout.ms", 10_000, 20_000),
    ("group.share.max.assignment.interval.ms", 20_000, 18_000),
    ("group.share.max.delivery.count.limit", 12, 11),
    ("group.share.max.heartbeat.interval.ms", 20_000, 18_000),
    ("group.share.max.partition.max.record.locks", 5000, 4500),
    ("group.share.max.record.lock.duration.ms", 100_000, 80_000),
    ("group.share.max.session.timeout.ms", 100_000, 80_000),
    ("group.share.min.assignment.interval.ms", 500, 100),
    ("group.share.min.delivery.count.limit", 3, 2),
    ("group.share.min.heartbeat.interval.ms", 1000, 2000),
    ("group.share.min.partition.max.record.locks", 200, 150),
    ("group.share.min.record.lock.duration.ms", 2000, 5000),
    ("group.share.min.session.timeout.ms", 10_000, 20_000),
    ("group.streams.max.assignment.interval.ms", 20_000, 18_000),
    ("group.streams.max.heartbeat.interval.ms", 20_000, 18_000),
    ("group.streams.max.session.timeout.ms", 100_000, 80_000),
    ("group.streams.max.standby.replicas", 4, 3),
    ("group.streams.min.assignment.interval.ms", 500, 100),
    ("group.streams.min.heartbeat.interval.ms", 1000, 2000),
    ("group.streams.min.session.timeout.ms", 10_000, 20_000),
    ("group.streams.min.task.offset.interval.ms", 1000, 2000),
)
"""A bound of the broker's, another value of it, and a value of a group's that only one of them allows."""

BOUNDS = (
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.min.assignment.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "group.share.max.assignment.interval.ms",
    "group.share.max.delivery.count.limit",
    "group.share.max.heartbeat.interval.ms",
    "group.share.max.partition.max.record.locks",
    "group.share.max.record.lock.duration.ms",
    "group.share.max.session.timeout.ms",
    "group.share.min.assignment.interval.ms",
    "group.share.min.delivery.count.limit",
    "group.share.min.heartbeat.interval.ms",
    "group.share.min.partition.max.record.locks",
    "group.share.min.record.lock.duration.ms",
    "group.share.min.session.timeout.ms",
    "group.streams.max.assignment.interval.ms",
    "group.streams.max.heartbeat.interval.ms",
    "group.streams.max.session.timeout.ms",
    "group.streams.max.standby.replicas",
    "group.streams.min.assignment.interval.ms",
    "group.streams.min.heartbeat.interval.ms",
    "group.streams.min.session.timeout.ms",
    "group.streams.min.task.offset.interval.ms",
)


async def may_set(broker: WholeBroker, name: str, value: int | str) -> bool:
    request = IncrementalAlterConfigsRequest(
        validate_only=True,
        resources=[
            AlterConfigsResource(
                resource_type=GROUP,
                resource_name="g",
                configs=[AlterableConfig(name=name, value=str(value))],
            )
        ],
    )
    return not (await broker.ask(request, IncrementalAlterConfigsResponse)).responses[0].error_code


@pytest.mark.acts(*BOUNDS)
async def test_a_group_keeps_within_the_broker_s_bounds(clock: BrokerClock) -> None:
    assert tuple(name for name, _, _ in BOUNDED) == BOUNDS
    owns = {name: bound.name for bound in GROUP_BOUNDS for name in (bound.low, bound.high)}
    async with whole_broker(clock, GROUPS) as broker:
        by_default = [await may_set(broker, owns[name], asked) for name, _, asked in BOUNDED]
    for (name, value, asked), allowed in zip(BOUNDED, by_default, strict=True):
        async with whole_broker(clock, {**GROUPS, **enough(name, value), name: str(value)}) as broker:
            assert await may_set(broker, owns[name], asked) is not allowed, name


def enough(name: str, value: int) -> dict[str, str]:
    """A raised lower bound raises the broker's own value."""
    raised = name.replace(".min.", ".")
    known = next((known for known in definitions(Scope.BROKER) if known.name == raised), None)
    if ".min." not in name or known is None:
        return {}
    default = read_integer(known.default_text or "0", "LONG") or 0
    return {raised: str(max(value, default))}


GIVERS = (
    "group.consumer.assignment.interval.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.session.timeout.ms",
    "group.share.assignment.interval.ms",
    "group.share.delivery.count.limit",
    "group.share.heartbeat.interval.ms",
    "group.share.partition.max.record.locks",
    "group.share.record.lock.duration.ms",
    "group.share.session.timeout.ms",
    "group.streams.acceptable.recovery.lag",
    "group.streams.assignment.interval.ms",
    "group.streams.heartbeat.interval.ms",
    "group.streams.initial.rebalance.delay.ms",
    "group.streams.num.standby.replicas",
    "group.streams.rack.aware.assignment.tags",
    "group.streams.session.timeout.ms",
    "group.streams.task.offset.interval.ms",
)


@pytest.mark.acts(*GIVERS)
async def test_a_broker_s_own_settings_give_the_defaults(clock: BrokerClock) -> None:
    givers = {
        name: known for known in definitions(Scope.GROUP) if known.is_heeded for name, _ in known.synonyms
    }
    givers.pop("group.streams.assignors")  # a list of which a group has one
    assert sorted(givers) == list(GIVERS)
    for name, own in givers.items():
        text = another_value(definition(Scope.BROKER, name))
        async with whole_broker(clock, {**GROUPS, name: text}) as broker:
            assert broker.services.config.group({})[own.name] == own.parse(text), name


async def test_a_running_group_follows_the_cluster_the_broker_and_its_own_settings(
    clock: BrokerClock,
) -> None:
    """The settings that may change for running brokers, in the order of their weight and back again."""
    async with whole_broker(clock, GROUPS) as broker:
        cluster = broker.services.groups.cluster
        for kind, read in (
            ("consumer", cluster.consumer_times),
            ("share", cluster.share_times),
            ("streams", cluster.streams_settings),
        ):
            own = f"{kind}.assignment.interval.ms"
            levels = ((BROKER, "", f"group.{own}"), (BROKER, "1", f"group.{own}"), (GROUP, "g", own))
            for number, level in enumerate(levels):
                await broker.alter(*level[:2], {level[2]: str(2000 + number)})
                assert read("g").assignment_interval_ms == 2000 + number
            for number, level in reversed(list(enumerate(levels))):
                assert read("g").assignment_interval_ms == 2000 + number
                await broker.alter(*level[:2], {level[2]: None})
            assert read("g").assignment_interval_ms == 1000


def another_value(known: Definition) -> str:
    if known.is_list:
        return "zone,rack"
    assert isinstance(known.default, int)
    return str(known.default + 1)
