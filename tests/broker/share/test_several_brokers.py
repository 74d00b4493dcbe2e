"""Share groups whose members' records, coordinator and state are on different brokers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import MockClock

from broker.network.waiting import Waiting
from protocol.error_codes import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.produce import ProduceRequest
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import ConfigRecord, FeatureLevelRecord
from tests.broker.coordination.several_brokers import (
    GROUP_OFFSETS,
    SHARE_GROUP_STATE,
    Cluster,
    settle,
    several_brokers,
)
from tests.broker.partitions.one_broker import some_batch
from tests.broker.share.desk import ACCEPT, GROUP, REJECT, RELEASE


class Member:
    """A consumer that knows who coordinates the group and who leads the topic's partitions."""

    def __init__(self, cluster: Cluster, name: str = "a") -> None:
        self.cluster = cluster
        self.name = name
        self.epoch = 0
        self.session_epochs: dict[int, int] = {}

    async def ask(self, broker_id: int, request: Any, version: int) -> Any:
        answer = self.cluster.brokers[broker_id].begin(request, version, self.name)
        if isinstance(answer, Waiting):
            await trio.sleep(0.1)
            await settle()
            if not answer.is_answered:
                answer.expire()
            answer = await answer.wait()
        return answer

    async def enter(self) -> None:
        """Send heartbeats until the assignment is complete."""
        while True:
            request = ShareGroupHeartbeatRequest(
                group_id="g",
                member_id=self.name,
                member_epoch=self.epoch,
                subscribed_topic_names=["t"] if self.epoch == 0 else None,
            )
            answer = await self.ask(leader_of(self.cluster, GROUP_OFFSETS), request, 1)
            assert not answer.error_code, answer
            if self.epoch == answer.member_epoch:
                return
            self.epoch = answer.member_epoch
            await trio.sleep(1)

    async def fetch(
        self, partition: int, *acknowledged: tuple[int, int, int], error: ErrorCode = ErrorCode.NONE
    ) -> list[tuple[int, int, int]]:
        """First and last offset and delivery count of what is acquired from the partition's leader."""
        leader = leader_of(self.cluster, "t", partition)
        epoch = self.session_epochs.get(leader, 0)
        self.session_epochs[leader] = epoch + 1
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in acknowledged
        ]
        asked = FetchPartition(partition_index=partition, acknowledgement_batches=batches)
        request = ShareFetchRequest(
            group_id="g",
            member_id=self.name,
            share_session_epoch=epoch,
            max_wait_ms=100,
            min_bytes=1,
            max_records=100,
            batch_size=100,
            topics=[FetchTopic(topic_id=self.cluster.image.topics["t"].id, partitions=[asked])],
        )
        answer = await self.ask(leader, request, 2)
        assert not answer.error_code, answer
        found = [each for topic in answer.responses for each in topic.partitions]
        assert all(each.error_code == error for each in found), answer
        return [
            (acquired.first_offset, acquired.last_offset, acquired.delivery_count)
            for each in found
            for acquired in each.acquired_records
        ]

    async def standing(self) -> dict[int, tuple[int, int]]:
        """Start offset and lag by partition."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=[asked])
        answer = await self.ask(leader_of(self.cluster, GROUP_OFFSETS), request, 1)
        (group,) = answer.groups
        assert not group.error_code
        return {
            each.partition_index: (each.start_offset, each.lag)
            for topic in group.topics
            for each in topic.partitions
        }


def leader_of(cluster: Cluster, topic: str, partition: int = 0) -> int:
    return cluster.image.topics[topic].partitions[partition].leader


def setting(kind: int, name: str, key: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


@asynccontextmanager
async def shared(*, share_version: int = 1) -> AsyncGenerator[Cluster]:
    """Broker 1 looks after groups, broker 2 after their state; 2 and 3 lead a partition each."""
    async with several_brokers(3) as cluster:
        cluster.create_topic(GROUP_OFFSETS, [1])
        cluster.create_topic(SHARE_GROUP_STATE, [2])
        cluster.create_topic("t", [2, 3])
        cluster.apply(
            FeatureLevelRecord(name="share.version", feature_level=share_version),
            setting(GROUP, "g", "share.auto.offset.reset", "earliest"),
        )
        for partition, leader in enumerate((2, 3)):
            cluster.brokers[leader].broker.produce("t", some_batch(10), partition=partition)
        yield cluster


async def test_state_goes_to_the_share_coordinator_wherever_it_is(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        assert await member.fetch(0) == [(0, 9, 1)]
        assert await member.fetch(1) == [(0, 9, 1)]
        assert await member.fetch(0, (0, 3, ACCEPT)) == []
        assert await member.fetch(1, (0, 5, ACCEPT), (6, 6, RELEASE)) == [(6, 6, 2)]
        assert await member.standing() == {0: (0, 6), 1: (0, 4)}
        assert len(cluster.asked_of(ReadShareGroupStateRequest)) == 1, "only of the one who is elsewhere"
        assert cluster.asked_of(WriteShareGroupStateRequest)


async def test_a_new_leader_goes_on_where_the_one_before_was(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        assert await member.fetch(1) == [(0, 9, 1)]
        assert await member.fetch(1, (0, 3, ACCEPT)) == []
        cluster.move("t", 1, 1)
        other = Member(cluster, "b")
        await other.enter()
        assert await other.fetch(1) == [(4, 9, 1)], "nobody else knows what the members held"
        assert await other.fetch(1, (4, 9, ACCEPT)) == []
        assert (await member.standing())[1] == (4, 0)


async def test_a_leader_that_does_not_know_of_its_successor_is_fenced(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        assert await member.fetch(1) == [(0, 9, 1)]
        held = cluster.brokers[3].broker.share.service
        (late,) = held._held.values()
        cluster.move("t", 1, 1)
        other = Member(cluster, "b")
        await other.enter()
        assert await other.fetch(1) == [(0, 9, 1)]
        errors: list[Any] = []
        held._write(late, [], errors.append)
        await settle()
        (error,) = errors
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_state_moves_to_another_coordinator(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        assert await member.fetch(0) == [(0, 9, 1)]
        assert await member.fetch(1) == [(0, 9, 1)]
        cluster.move(SHARE_GROUP_STATE, 0, 3)
        assert await member.fetch(0, (0, 3, ACCEPT)) == []
        assert await member.fetch(1, (0, 5, ACCEPT)) == []
        await trio.sleep(2)
        cluster.move(GROUP_OFFSETS, 0, 3)
        await trio.sleep(1)
        assert await member.standing() == {0: (0, 6), 1: (0, 4)}


async def test_a_coordinator_that_cannot_be_reached_is_asked_again(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        cluster.unreachable.add(2)
        assert await member.fetch(1) == []
        cluster.unreachable.clear()
        await trio.sleep(2)
        assert await member.fetch(1) == [(0, 9, 1)]


async def test_a_lag_is_not_known_without_a_leader(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        assert await member.fetch(1) == [(0, 9, 1)]
        assert await member.fetch(1, (0, 0, ACCEPT)) == []
        cluster.take_away("t", 1, 2)
        asked = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
        answer = await member.ask(1, DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
        codes = {
            each.partition_index: each.error_code
            for topic in answer.groups[0].topics
            for each in topic.partitions
        }
        assert codes == {0: 0, 1: ErrorCode.LEADER_NOT_AVAILABLE}


async def test_a_group_is_deleted_with_the_state_on_another_broker(autojump_clock: MockClock) -> None:
    async with shared() as cluster:
        member = Member(cluster)
        await member.enter()
        leave = ShareGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1)
        await member.ask(1, leave, 1)
        (result,) = (await member.ask(1, DeleteGroupsRequest(groups_names=["g"]), 2)).results
        assert result.error_code == 0
        machine = cluster.brokers[2].broker.share_coordinator.shard(0)
        assert machine is not None
        assert machine.machine is not None
        assert not machine.machine.partitions


async def test_dead_letters_go_to_a_queue_on_another_broker(autojump_clock: MockClock) -> None:
    async with shared(share_version=2) as cluster:
        cluster.create_topic("dlq.q", [1])
        cluster.apply(
            setting(2, "dlq.q", "errors.deadletterqueue.group.enable", "true"),
            setting(GROUP, "g", "errors.deadletterqueue.topic.name", "dlq.q"),
        )
        member = Member(cluster)
        await member.enter()
        assert await member.fetch(1) == [(0, 9, 1)]
        cluster.unreachable.add(1)
        await member.fetch(1, (2, 3, REJECT))
        cluster.unreachable.clear()
        await trio.sleep(5)
        assert cluster.asked_of(ProduceRequest)
        content: Any = cluster.brokers[1].broker.fetch("dlq.q").records
        letters = [
            dict(record.headers)[b"__dlq.errors.offset"]
            for batch in read_batches(content.read())
            for record in batch.records()
        ]
        assert letters == [b"2", b"3"]
