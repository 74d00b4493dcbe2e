"""Other nodes copy the metadata log: by Fetch, and by FetchSnapshot where the log begins too late."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from broker.controller.automatic_topics import topic_defaults
from broker.controller.topics import NewTopic, create_topics
from broker.raft.batches import read_metadata_batch
from broker.raft.snapshots import list_snapshots
from broker.raft.voter_changes import open_voter_changes
from protocol.error_codes import ErrorCode
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    SnapshotId,
)
from protocol.records.batch import read_batches
from storage.log_directory import METADATA_TOPIC_ID
from tests.broker.controller.node import CLUSTER_ID, CONTROLLER, METADATA, NODE_ID, ControllerNode

DIRECTORY = b"\x11" * 16
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "900",
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.max.retention.bytes": "1",
}
EMPTY: dict[str, str] = {}


@asynccontextmanager
async def started(settings: dict[str, str] = EMPTY) -> AsyncIterator[ControllerNode]:
    node = ControllerNode(settings)
    node.start()
    async with trio.open_nursery() as nursery, open_voter_changes(node.services) as changes:
        node.services.voter_changes = changes
        nursery.start_soon(node.controller.run)
        yield node
        nursery.cancel_scope.cancel()


def make(node: ControllerNode, name: str, partitions: int = 1) -> None:
    node.perform(
        lambda image: create_topics(image, [NewTopic(name, partitions, 1)], topic_defaults(node.services))
    )


def snapshot(node: ControllerNode) -> None:
    pending = node.raft.due_snapshot()
    assert pending is not None
    pending.write()
    node.raft.finish_snapshot(pending)


async def fetch(
    node: ControllerNode,
    offset: int = 0,
    last_epoch: int | None = None,
    *,
    epoch: int | None = None,
    high_watermark: int = -1,
    max_wait_ms: int = 0,
    max_bytes: int = 1 << 20,
    replica_id: int = 7,
    version: int = 18,
    **options: Any,
) -> Any:
    """The partition's answer, with the leader's address as ``node_endpoints``."""
    if epoch is None:
        epoch = node.services.quorum.epoch
    asked = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=(min(epoch, 1) if offset else 0) if last_epoch is None else last_epoch,
        replica_directory_id=DIRECTORY,
        high_watermark=high_watermark,
    )
    request = FetchRequest(
        cluster_id=options.get("cluster_id", CLUSTER_ID),
        replica_state=ReplicaState(replica_id=replica_id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic_id=options.get("topic_id", METADATA_TOPIC_ID), partitions=[asked])],
    )
    answer = await node.ask(request, FetchResponse, version, listener=CONTROLLER.name)
    if not answer.responses:
        return answer
    (told,) = answer.responses[0].partitions
    return with_endpoints(told, answer)


def with_endpoints(told: Any, answer: Any) -> SimpleNamespace:
    """What a partition was told, and where the leader is."""
    fields = {field.name: getattr(told, field.name) for field in told.declared_fields}
    return SimpleNamespace(**fields, node_endpoints=answer.node_endpoints)


async def describe(node: ControllerNode, version: int = 2) -> Any:
    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData()]
            )
        ]
    )
    answer = await node.ask(request, DescribeQuorumResponse, version, listener=CONTROLLER.name)
    return answer.topics[0].partitions[0]


class TestFetch:
    async def test_from_the_beginning_everything_comes(self) -> None:
        async with started() as node:
            told = await fetch(node)
            assert told.error_code == ErrorCode.NONE
            assert told.high_watermark == node.raft.log.end_offset
            batches = list(read_batches(told.records))
            assert batches[0].is_control
            assert batches[-1].next_offset == node.raft.log.end_offset
            assert [type(record).__name__ for record in read_metadata_batch(batches[1])][:2] == [
                "BeginTransactionRecord",
                "FeatureLevelRecord",
            ]
            assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (
                NODE_ID,
                node.raft.epoch,
            )
            assert [(at.node_id, at.host, at.port) for at in told.node_endpoints] == [
                (NODE_ID, CONTROLLER.host, CONTROLLER.port)
            ]

    async def test_older_versions_are_not_told_the_address(self) -> None:
        async with started() as node:
            told = await fetch(node, version=16)
            assert told.records
            assert told.node_endpoints == []

    async def test_another_cluster_is_refused(self) -> None:
        async with started() as node:
            assert (await fetch(node, cluster_id="x")).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID

    async def test_no_other_topic_is_here(self) -> None:
        async with started() as node:
            assert (await fetch(node, topic_id=DIRECTORY)).error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(("offset", "last_epoch"), [(-1, 0), (0, -1), (3, 2)])
    async def test_impossible_places(self, offset: int, last_epoch: int) -> None:
        async with started() as node:
            assert node.raft.epoch == 1
            assert (await fetch(node, offset, last_epoch)).error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(
        ("epoch", "code"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)]
    )
    async def test_other_epochs(self, epoch: int, code: ErrorCode) -> None:
        async with started() as node:
            told = await fetch(node, epoch=epoch)
            assert (told.error_code, told.high_watermark) == (code, -1)
            assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (NODE_ID, 1)
            assert told.node_endpoints[0].port == CONTROLLER.port

    async def test_a_copy_with_other_records_must_be_cut(self) -> None:
        async with started() as node:
            node.stop()
            end = node.raft.log.end_offset
            node.start()
            assert node.raft.epoch == 2
            told = await fetch(node, end + 5, 1)
            assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (1, end)
            assert not told.records
            told = await fetch(node, end, 1)
            assert told.diverging_epoch.epoch == -1
            assert next(read_batches(told.records)).base_offset == end

    async def test_an_unknown_epoch_is_answered_with_the_last_one(self) -> None:
        async with started() as node:
            node.services.quorum.epoch = 5
            told = await fetch(node, 4, 3)
            assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (
                1,
                node.raft.log.end_offset,
            )

    async def test_limits_keep_at_least_one_batch(self) -> None:
        async with started() as node:
            told = await fetch(node, max_bytes=1)
            assert len(list(read_batches(told.records))) == 1


class TestWaiting:
    async def test_who_has_everything_waits(self, autojump_clock: trio.testing.MockClock) -> None:
        async with started() as node:
            end = node.raft.log.end_offset
            began = trio.current_time()
            told = await fetch(node, end, high_watermark=end, max_wait_ms=500)
            assert not told.records
            assert trio.current_time() - began == 0.5

    @pytest.mark.parametrize("version", [17, 18])
    async def test_who_does_not_know_what_is_committed_is_told_at_once(
        self, version: int, autojump_clock: trio.testing.MockClock
    ) -> None:
        async with started() as node:
            end = node.raft.log.end_offset
            began = trio.current_time()
            told = await fetch(
                node,
                end,
                high_watermark=end - 1 if version == 18 else 2**63 - 1,
                max_wait_ms=500,
                version=version,
            )
            assert told.high_watermark == end
            assert trio.current_time() - began == (0 if version == 18 else 0.5)

    async def test_new_records_end_the_wait(self, autojump_clock: trio.testing.MockClock) -> None:
        async with started() as node, trio.open_nursery() as nursery:
            end = node.raft.log.end_offset
            answers = []

            async def follow() -> None:
                answers.append(await fetch(node, end, high_watermark=end, max_wait_ms=500))

            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            make(node, "t")
            await trio.testing.wait_all_tasks_blocked()
            (told,) = answers
            assert told.high_watermark == node.raft.log.end_offset > end
            assert next(read_batches(told.records)).base_offset == end
            assert not node.raft.parked

    async def test_so_does_the_end_of_the_leader(self, autojump_clock: trio.testing.MockClock) -> None:
        async with started() as node, trio.open_nursery() as nursery:
            end = node.raft.log.end_offset
            answers = []

            async def follow() -> None:
                answers.append(await fetch(node, end, high_watermark=end, max_wait_ms=500))

            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            node.services.quorum.resign()
            await trio.testing.wait_all_tasks_blocked()
            (told,) = answers
            assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (-1, 1)
            assert (await fetch(node, end)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (await describe(node)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


class TestObservers:
    async def test_they_are_described(self) -> None:
        async with started() as node:
            end = node.raft.log.end_offset
            await fetch(node, 4)
            (seen,) = (await describe(node)).observers
            assert (seen.replica_id, seen.replica_directory_id, seen.log_end_offset) == (7, DIRECTORY, 4)
            assert seen.last_caught_up_timestamp == -1
            node.clock.time_ms += 10
            await fetch(node, end)
            told = await describe(node)
            (seen,) = told.observers
            assert seen.log_end_offset == end
            assert seen.last_caught_up_timestamp == node.clock.time_ms
            assert [voter.replica_id for voter in told.current_voters] == [NODE_ID]
            assert told.high_watermark == end

    async def test_consumers_are_none(self) -> None:
        async with started() as node:
            await fetch(node, 4, replica_id=-1)
            assert (await describe(node)).observers == []


async def fetch_snapshot(node: ControllerNode, **wanted: Any) -> Any:
    newest = node.raft.snapshotting.snapshots[-1] if node.raft.snapshotting.snapshots else None
    end_offset, epoch = wanted.get("id") or newest or (0, 0)
    asked = FetchSnapshotRequestPartitionSnapshot(
        partition=wanted.get("partition", 0),
        current_leader_epoch=wanted.get("leader_epoch", node.raft.epoch),
        snapshot_id=SnapshotId(end_offset=end_offset, epoch=epoch),
        position=wanted.get("position", 0),
    )
    request = FetchSnapshotRequest(
        cluster_id=wanted.get("cluster_id", CLUSTER_ID),
        replica_id=7,
        max_bytes=wanted.get("max_bytes", 1 << 20),
        topics=[
            FetchSnapshotRequestTopicSnapshot(
                name=wanted.get("topic", "__cluster_metadata"), partitions=[asked]
            )
        ],
    )
    answer = await node.ask(request, FetchSnapshotResponse, 1, listener=CONTROLLER.name)
    if not answer.topics:
        return answer
    (told,) = answer.topics[0].partitions
    return with_endpoints(told, answer)


class TestSnapshots:
    async def test_an_empty_copy_begins_with_the_newest(self) -> None:
        async with started(SMALL) as node:
            snapshot(node)
            make(node, "a", 20)
            snapshot(node)
            told = await fetch(node)
            assert (told.snapshot_id.end_offset, told.snapshot_id.epoch) == node.raft.snapshotting.snapshots[
                -1
            ]
            assert not told.records

    async def test_so_does_one_that_ends_before_the_log_begins(self) -> None:
        async with started(SMALL) as node:
            snapshot(node)
            make(node, "a", 20)
            snapshot(node)
            assert node.raft.log.log.log_start > 4
            assert list_snapshots(node.file_system, METADATA) == node.raft.snapshotting.snapshots
            told = await fetch(node, 4)
            assert told.snapshot_id.end_offset == node.raft.snapshotting.snapshots[-1].end_offset
            end = node.raft.snapshotting.snapshots[-1].end_offset
            told = await fetch(node, end)
            assert told.snapshot_id.end_offset == -1

    async def test_it_comes_in_pieces(self) -> None:
        async with started(SMALL) as node:
            snapshot(node)
            whole = node.file_system.read_file(f"{METADATA}/{node.raft.snapshotting.snapshots[-1].name}")
            received = b""
            while len(received) < len(whole):
                told = await fetch_snapshot(node, position=len(received), max_bytes=100)
                assert (told.error_code, told.size, told.position) == (0, len(whole), len(received))
                assert told.node_endpoints[0].node_id == NODE_ID
                received += told.unaligned_records
            assert received == whole

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            ({"leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"leader_epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
            ({"id": (0, 0)}, ErrorCode.SNAPSHOT_NOT_FOUND),
            ({"id": (1, 1)}, ErrorCode.SNAPSHOT_NOT_FOUND),
            ({"position": -1}, ErrorCode.POSITION_OUT_OF_RANGE),
            ({"position": 1 << 30}, ErrorCode.POSITION_OUT_OF_RANGE),
            ({"topic": "t"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ],
    )
    async def test_what_is_refused(self, wanted: dict[str, Any], code: ErrorCode) -> None:
        async with started(SMALL) as node:
            snapshot(node)
            assert (await fetch_snapshot(node, **wanted)).error_code == code
