"""Shards that come and go with the leadership of their partitions, on several brokers."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.coordination.several_brokers import GROUP_OFFSETS, Cluster, several_brokers


def join(member_id: str = "", *, instance_id: str | None = None, group_id: str = "g") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def beat(member_id: str, *, instance_id: str | None = None, generation: int = 1) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id="g", generation_id=generation, member_id=member_id, group_instance_id=instance_id
    )


def commit(offset: int, group_id: str = "g") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )


async def ask(cluster: Cluster, broker_id: int, request: Any, version: int) -> Any:
    answer = cluster.brokers[broker_id].begin(request, version)
    if isinstance(answer, Waiting):
        with trio.fail_after(60):
            answer = await answer.wait()
    return answer


async def committed(cluster: Cluster, broker_id: int, group_id: str = "g") -> tuple[int, int]:
    """The offset, and the group's error."""
    topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=[topic])])
    (group,) = (await ask(cluster, broker_id, request, 8)).groups
    return (group.topics[0].partitions[0].committed_offset if group.topics else -1), group.error_code


async def commit_at(cluster: Cluster, broker_id: int, offset: int, group_id: str = "g") -> int:
    answer = await ask(cluster, broker_id, commit(offset, group_id), 8)
    return int(answer.topics[0].partitions[0].error_code)


async def enter(cluster: Cluster, broker_id: int, instance_id: str | None = None) -> str:
    """A group with one member, in generation 1."""
    joined = await ask(cluster, broker_id, join(instance_id=instance_id), 3 if instance_id is None else 5)
    assert joined.error_code == 0, joined
    member_id = str(joined.member_id)
    assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member_id,
        group_instance_id=instance_id,
        assignments=[assignment],
    )
    assert (await ask(cluster, broker_id, request, 3)).error_code == 0
    return member_id


def make_topics(cluster: Cluster) -> None:
    cluster.create_topic(GROUP_OFFSETS, [1])
    cluster.create_topic("t", [1])


async def test_every_broker_names_who_leads_the_partition(autojump_clock: MockClock) -> None:
    async with several_brokers(3) as cluster:
        make_topics(cluster)

        async def found() -> set[tuple[int, int]]:
            request = FindCoordinatorRequest(coordinator_keys=["g"])
            answers = [await ask(cluster, each, request, 4) for each in cluster.brokers]
            return {(answer.coordinators[0].node_id, answer.coordinators[0].error_code) for answer in answers}

        assert await found() == {(1, 0)}
        cluster.move(GROUP_OFFSETS, 0, 3)
        assert await found() == {(3, 0)}
        cluster.take_away(GROUP_OFFSETS, 0, 2)
        assert await found() == {(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE)}


async def test_a_group_moves_with_its_members_and_offsets(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        member_id = await enter(cluster, 1)
        assert await commit_at(cluster, 1, 5, "h") == 0
        assert (await ask(cluster, 2, beat(member_id), 4)).error_code == ErrorCode.NOT_COORDINATOR
        cluster.move(GROUP_OFFSETS, 0, 2)
        assert await committed(cluster, 2, "h") == (-1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        await trio.sleep(1)
        assert (await ask(cluster, 2, beat(member_id), 4)).error_code == 0, "it need not join again"
        assert await committed(cluster, 2, "h") == (5, 0)
        assert (await ask(cluster, 1, beat(member_id), 4)).error_code == ErrorCode.NOT_COORDINATOR
        assert await commit_at(cluster, 1, 6, "h") == ErrorCode.NOT_COORDINATOR
        assert await committed(cluster, 1, "h") == (-1, ErrorCode.NOT_COORDINATOR)


async def test_a_static_member_is_known_to_the_new_coordinator(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        member_id = await enter(cluster, 1, instance_id="i")
        cluster.move(GROUP_OFFSETS, 0, 2)
        await trio.sleep(1)
        again = await ask(cluster, 2, join(instance_id="i"), 5)
        assert (again.error_code, again.generation_id) == (0, 1)
        assert again.member_id != member_id
        fenced = await ask(cluster, 2, beat(member_id, instance_id="i"), 4)
        assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID


async def test_groups_are_listed_described_and_deleted_where_they_are_kept(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        cluster.create_topic(GROUP_OFFSETS, [1, 2])
        cluster.create_topic("t", [1])
        names = [f"g{number}" for number in range(8)]
        kept = {name: cluster.brokers[1].groups.partition_for(name) + 1 for name in names}
        for name, broker_id in kept.items():
            assert await commit_at(cluster, broker_id, 1, name) == 0
        assert set(kept.values()) == {1, 2}
        for broker_id in (1, 2):
            listed = await ask(cluster, broker_id, ListGroupsRequest(), 5)
            assert {group.group_id for group in listed.groups} == {
                name for name, kept_by in kept.items() if kept_by == broker_id
            }
            described = await ask(cluster, broker_id, DescribeGroupsRequest(groups=names), 5)
            assert {group.group_id: group.error_code for group in described.groups} == {
                name: 0 if kept_by == broker_id else ErrorCode.NOT_COORDINATOR
                for name, kept_by in kept.items()
            }
        deleted = await ask(cluster, 1, DeleteGroupsRequest(groups_names=names), 2)
        assert {result.group_id: result.error_code for result in deleted.results} == {
            name: 0 if kept_by == 1 else ErrorCode.NOT_COORDINATOR for name, kept_by in kept.items()
        }


async def test_who_waits_is_sent_away_when_leadership_ends(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        await enter(cluster, 1)
        waiting = cluster.brokers[1].begin(join(), 3)
        assert isinstance(waiting, Waiting)
        assert not waiting.is_answered
        cluster.move(GROUP_OFFSETS, 0, 2)
        assert waiting.result().error_code == ErrorCode.NOT_COORDINATOR


async def test_another_epoch_of_the_same_leader_begins_anew(autojump_clock: MockClock) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        member_id = await enter(cluster, 1)
        waiting = cluster.brokers[1].begin(join(), 3)
        cluster.give_leadership(GROUP_OFFSETS, 0, 1)
        assert waiting.result().error_code == ErrorCode.NOT_COORDINATOR
        await trio.sleep(1)
        assert (await ask(cluster, 1, beat(member_id), 4)).error_code == 0
        assert await commit_at(cluster, 1, 5, "h") == 0


async def test_leadership_that_ends_while_loading_leaves_nothing(autojump_clock: MockClock) -> None:
    async with several_brokers(3) as cluster:
        make_topics(cluster)
        assert await commit_at(cluster, 1, 5) == 0
        cluster.move(GROUP_OFFSETS, 0, 2)
        cluster.brokers[2].broker.hold_threads()
        await trio.testing.wait_all_tasks_blocked()
        assert (await committed(cluster, 2))[1] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        cluster.move(GROUP_OFFSETS, 0, 3)
        cluster.brokers[2].broker.release_threads()
        await trio.sleep(1)
        assert (await committed(cluster, 2))[1] == ErrorCode.NOT_COORDINATOR
        assert await committed(cluster, 3) == (5, 0)


async def test_a_partition_that_is_still_being_cut_begins_a_moment_later(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        assert await commit_at(cluster, 1, 5) == 0

        def refuse(*_: object) -> None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

        with monkeypatch.context() as cut:
            cut.setattr(cluster.brokers[2].broker.partitions, "leader", refuse)
            cluster.move(GROUP_OFFSETS, 0, 2)
            await trio.sleep(1)
            assert (await committed(cluster, 2))[1] == ErrorCode.NOT_COORDINATOR
        await trio.sleep(1)
        shard = cluster.brokers[2].groups._shards[0]
        assert shard.is_active, "though nobody has asked since"
        assert await committed(cluster, 2) == (5, 0)


async def test_too_few_replicas_mean_that_the_coordinator_is_not_available(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with several_brokers() as cluster:
        make_topics(cluster)
        assert await commit_at(cluster, 1, 5) == 0
        leader = cluster.brokers[1].broker.partitions.leader(GROUP_OFFSETS, 0)

        def refuse(*_: object) -> None:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

        with monkeypatch.context() as few:
            few.setattr(type(leader), "append_own", refuse)
            assert await commit_at(cluster, 1, 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await trio.sleep(2)
        assert await committed(cluster, 1) == (5, 0), "what could not be written never was"


async def test_a_broker_that_stops_begins_nothing_more() -> None:
    """Trio decides whose turn is first: that of the service which ends, or that of the task which begins."""
    for _ in range(20):
        async with several_brokers() as cluster:
            make_topics(cluster)
            assert await commit_at(cluster, 1, 5) == 0
            cluster.move(GROUP_OFFSETS, 0, 2)
            groups = cluster.brokers[2].groups
            assert groups.nursery is not None
            groups.nursery.cancel_scope.cancel()
            await wait_all_tasks_blocked()
