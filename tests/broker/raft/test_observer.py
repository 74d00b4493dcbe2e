"""A node without the controller: it finds the leader, copies its log, and publishes what is committed."""

import copy
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from broker.controller.automatic_topics import topic_defaults
from broker.controller.topics import NewTopic, create_topics, delete_topics
from broker.metadata.image import MetadataImage
from broker.metadata.replay import MetadataChanges
from broker.network.call import Address
from broker.raft.batches import build_control_batch, build_metadata_batch, leader_change, quorum_records
from broker.raft.followed_log import FollowedLog
from broker.raft.quorum import EPOCH_MAX
from broker.raft.serving import GOES_ON, judge_place
from broker.raft.snapshots import list_snapshots
from broker.raft.snapshotting import PendingSnapshot
from broker.raft.voters import VoterSet
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.messages.fetch import FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest
from protocol.records.errors import CorruptRecords
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    TopicRecord,
)
from storage.errors import CorruptFile
from storage.node_files import read_quorum_state
from tests.broker.controller.node import METADATA, ControllerNode
from tests.broker.raft.wires import LEADER, FollowingNode, Wires

SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "900",
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.max.retention.bytes": "1",
}

LONG_SECONDS = 30.0


@pytest.fixture
def wires(monkeypatch: pytest.MonkeyPatch) -> Wires:
    return Wires(monkeypatch)


@pytest.fixture
def leader(wires: Wires) -> ControllerNode:
    """The controller, with one topic."""
    node = ControllerNode(SNAPSHOTS)
    node.start()
    make(node, "first")
    wires.nodes[LEADER] = node
    return node


def make(node: ControllerNode, name: str, partitions: int = 1) -> None:
    node.perform(
        lambda image: create_topics(image, [NewTopic(name, partitions, 1)], topic_defaults(node.services))
    )


def delete(node: ControllerNode, name: str) -> None:
    topic_id = node.image.topic_id(name)
    assert topic_id is not None
    node.perform(lambda image: delete_topics(image, [topic_id]))


@asynccontextmanager
async def following(node: ControllerNode) -> AsyncGenerator[None]:
    """The node's quorum at work, in the block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.services.quorum.run)
        yield
        nursery.cancel_scope.cancel()


async def catch_up(node: FollowingNode) -> None:
    """Follow until the node has what the leader has committed, and no longer."""
    async with following(node):
        await node.quorum.wait_caught_up()


async def until_same(node: ControllerNode, leader: ControllerNode) -> None:
    """Wait until the node has published all that its leader has."""
    reached = trio.Event()

    def look(image: MetadataImage, _: MetadataChanges) -> None:
        if image.offset == leader.image.offset:
            reached.set()

    look(node.image, MetadataChanges())
    node.services.metadata.on_publish(look)
    with trio.fail_after(LONG_SECONDS):
        await reached.wait()


def content(image: MetadataImage) -> dict[str, Any]:
    return image.parts()


class TestFollowing:
    async def test_the_log_and_the_image_become_the_leaders(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            assert content(node.image) == content(leader.image)
            make(leader, "second", 3)
            await until_same(node, leader)
        assert content(node.image) == content(leader.image)
        assert node.quorum.high_watermark == leader.raft.high_watermark
        name = f"{METADATA}/00000000000000000000.log"
        assert node.file_system.read_file(name) == leader.file_system.read_file(name)
        assert node.services.metadata.finalized_features == leader.services.metadata.finalized_features
        assert node.quorum.voters == leader.raft.voters
        assert (node.quorum.leader_id, node.quorum.epoch) == (1, 1)
        assert node.quorum.controller_address() == LEADER

    async def test_news_come_with_the_long_poll(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            await trio.sleep(10)
            asked = len(wires.asked)
            before = trio.current_time()
            make(leader, "second")
            await until_same(node, leader)
        assert trio.current_time() - before < 0.1
        assert asked < 10 / 0.5 + 10, "each question waits half a second for news"

    @pytest.mark.acts("controller.quorum.fetch.max.bytes")
    async def test_an_answer_holds_no_more_than_is_asked_for(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        for number in range(20):
            make(leader, f"topic-{number}", 5)
        node = FollowingNode({"controller.quorum.fetch.max.bytes": "700"})
        node.start()
        sizes: list[int] = []
        wires.on_answer = lambda _, answer: sizes.append(len(answer.responses[0].partitions[0].records))
        await catch_up(node)
        assert content(node.image) == content(leader.image)
        assert len(sizes) > 10
        assert max(sizes[1:]) < 2000, "one batch may be longer"

    async def test_what_changed_is_told_from_image_to_image(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        told: list[tuple[MetadataImage, MetadataChanges]] = []
        node.services.metadata.on_publish(lambda image, changes: told.append((image, changes)))
        async with following(node):
            await node.quorum.wait_caught_up()
            make(leader, "second")
            await until_same(node, leader)
            delete(leader, "first")
            await until_same(node, leader)
        created = [topic.name for _, changes in told for topic in changes.topics.values()]
        assert sorted(created) == ["first", "second"]
        assert [t.name for _, changes in told for t in changes.deleted_topics.values()] == ["first"]
        assert told[0][1].features
        assert told[0][1].brokers == {1}

    async def test_it_remembers_leader_and_epoch(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        await catch_up(node)
        state = read_quorum_state(node.file_system, METADATA)
        assert state is not None
        assert (state.leader_id, state.leader_epoch, state.voted_id) == (1, 1, -1)


class TestRestart:
    async def test_nothing_of_its_own_log_counts_before_the_leader_says_so(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        await catch_up(node)
        node.kill()
        node.start()
        assert node.quorum.log.end_offset == leader.raft.log.end_offset
        assert node.image.offset == -1
        assert node.quorum.high_watermark == -1
        assert (node.quorum.leader_id, node.quorum.epoch) == (1, 1)
        asked = len(wires.asked)
        await catch_up(node)
        assert content(node.image) == content(leader.image)
        assert len(wires.asked) - asked < 5, "it copies nothing twice"

    async def test_what_the_leader_never_had_is_forgotten(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        """The old leader's last record reached this node, and not the disk that the new one started from."""
        node = FollowingNode()
        node.start()
        await catch_up(node)
        end = node.quorum.log.end_offset
        lost = build_metadata_batch([(NoOpRecord(), 0)] * 3, base_offset=end, epoch=1, now_ms=0)
        node.quorum.log.log.append_as_follower(lost, now_ms=0)
        node.kill()
        leader.kill()
        leader.start()
        node.start()
        assert node.quorum.log.end_offset == end + 3
        async with following(node):
            await node.quorum.wait_caught_up()
            assert content(node.image) == content(leader.image)
        assert node.quorum.epoch == 2
        name = f"{METADATA}/00000000000000000000.log"
        assert node.file_system.read_file(name) == leader.file_system.read_file(name)

    async def test_a_leader_that_lost_what_was_committed_is_not_followed(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            followed = node.quorum.followed
            assert followed is not None
            with pytest.raises(CorruptFile, match="was committed"):
                followed.truncate(1, followed.high_watermark - 1)


class TestSnapshots:
    @pytest.mark.acts("controller.quorum.fetch.snapshot.max.bytes")
    async def test_a_log_that_begins_too_late_is_begun_with_a_snapshot(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        make(leader, "second", 30)
        take_snapshot(leader)
        make(leader, "third")
        node = FollowingNode({"controller.quorum.fetch.snapshot.max.bytes": "100"})
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            assert content(node.image) == content(leader.image)
        pieces = [request for _, _, request in wires.asked if isinstance(request, FetchSnapshotRequest)]
        assert len(pieces) > 5
        (snapshot,) = list_snapshots(node.file_system, METADATA)
        path = f"{METADATA}/{snapshot.name}"
        assert node.file_system.read_file(path) == leader.file_system.read_file(path)
        assert not [name for name in node.file_system.list_names(METADATA) if name.endswith(".part")]
        node.kill()
        node.start()
        await catch_up(node)
        assert content(node.image) == content(leader.image)

    async def test_one_that_is_damaged_is_not_kept(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        take_snapshot(leader)

        def damage(request: Message, answer: Any) -> None:
            if isinstance(request, FetchSnapshotRequest):
                piece = answer.topics[0].partitions[0]
                content = bytearray(piece.unaligned_records)
                content[-1] ^= 1
                piece.unaligned_records = bytes(content)

        wires.on_answer = damage
        node = FollowingNode()
        node.start()
        with pytest.RaisesGroup(CorruptFile, flatten_subgroups=True):
            await catch_up(node)
        assert not list_snapshots(node.file_system, METADATA)
        wires.on_answer = lambda request, answer: None
        node.kill()
        node.start()
        await catch_up(node)
        assert content(node.image) == content(leader.image)

    @pytest.mark.parametrize("is_interrupted", [False, True])
    async def test_older_ones_go_with_the_log_before_it(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object, is_interrupted: bool
    ) -> None:
        """One that ends before the log begins says nothing of where others can go on."""
        node = FollowingNode(SNAPSHOTS)
        node.start()
        make(leader, "second", 30)
        async with following(node):
            await until_same(node, leader)
        (own,) = list_snapshots(node.file_system, METADATA)
        del wires.nodes[LEADER]
        leader.stop()
        leader.start()
        for number in range(5):
            make(leader, f"new-{number}", 30)
            take_snapshot(leader)
        wires.nodes[LEADER] = leader
        newest = leader.raft.snapshotting.snapshots[-1]
        if is_interrupted:  # by a power cut, just before the log is cut
            content_of_it = leader.file_system.read_file(f"{METADATA}/{newest.name}")
            node.file_system.open(f"{METADATA}/{newest.name}", create=True).pwrite(content_of_it, 0)
            node.kill()
            node.start()
        async with following(node):
            await until_same(node, leader)
        assert own.epoch < newest.epoch
        snapshots = node.quorum.snapshotting.snapshots
        assert own not in snapshots == list_snapshots(node.file_system, METADATA)
        log = node.quorum.log
        assert judge_place(log, snapshots, newest.end_offset, newest.epoch) == GOES_ON

    async def test_one_of_its_own_that_comes_late_is_given_up(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        """It was begun when this node led, and is ready when it has gone on from the next leader's."""
        node = FollowingNode()
        node.start()
        make(leader, "second", 30)
        await catch_up(node)
        late = PendingSnapshot(
            node.quorum.log, node.image, kraft_version=1, voters=(), now_ms=0, unique="late"
        )
        for number in range(5):
            make(leader, f"new-{number}", 30)
            take_snapshot(leader)
        async with following(node):
            await until_same(node, leader)
        received = node.quorum.snapshotting.snapshots
        assert late.id < received[-1]
        late.write()
        node.quorum.snapshotting.finish(late)
        assert node.quorum.snapshotting.snapshots == received
        assert late.id not in list_snapshots(node.file_system, METADATA)

    async def test_the_image_jumps_and_the_changes_are_its_differences(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        await catch_up(node)
        del wires.nodes[LEADER]
        delete(leader, "first")
        for number in range(5):
            make(leader, f"new-{number}", 10)
            take_snapshot(leader)
            make(leader, f"more-{number}")
        told: list[MetadataChanges] = []
        node.services.metadata.on_publish(lambda image, changes: told.append(changes))
        wires.nodes[LEADER] = leader
        async with following(node):
            await until_same(node, leader)
        assert content(node.image) == content(leader.image)
        changes = told[0]
        assert [topic.name for topic in changes.deleted_topics.values()] == ["first"]
        assert {topic.name for topic in changes.topics.values()} >= {"new-0", "new-4"}

    async def test_it_makes_its_own(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode(SNAPSHOTS)
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            make(leader, "second", 30)
            await until_same(node, leader)
        *_, newest = list_snapshots(node.file_system, METADATA)
        assert newest.end_offset == node.image.offset + 1
        del wires.nodes[LEADER]
        node.kill()
        node.start()
        async with following(node):
            await trio.sleep(5)
            assert node.image.offset == -1, "nobody has said what is committed"
            wires.nodes[LEADER] = leader
            await node.quorum.wait_caught_up()
        assert content(node.image) == content(leader.image)


def take_snapshot(node: ControllerNode) -> None:
    pending = node.raft.due_snapshot()
    assert pending is not None
    pending.write()
    node.raft.finish_snapshot(pending)


class TestFindingTheLeader:
    async def test_who_does_not_lead_tells_who_does(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        elsewhere = Address("elsewhere", 1)
        other = FollowingNode()
        other.start()
        node = FollowingNode({"controller.quorum.bootstrap.servers": str(elsewhere)}, node_id=3)
        node.start()
        wires.nodes[elsewhere] = other
        async with following(other), following(node):
            with trio.fail_after(5):
                await node.quorum.wait_caught_up()
        assert content(node.image) == content(leader.image)

    @pytest.mark.parametrize("there", ["nobody", "itself"])
    async def test_who_finds_nobody_does_not_ask_all_the_time(
        self, wires: Wires, there: str, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        if there == "itself":
            wires.nodes[LEADER] = node
        async with following(node):
            await trio.sleep(60)
        assert 60 < len(wires.asked) < 200
        assert node.image.offset == -1

    @pytest.mark.acts("controller.quorum.bootstrap.servers")
    async def test_a_dead_leader_is_looked_for_among_the_others(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        elsewhere = Address("elsewhere", 1)
        node = FollowingNode({"controller.quorum.bootstrap.servers": f"{LEADER},{elsewhere}"})
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            del wires.nodes[LEADER]
            leader.kill()
            leader.controller_endpoints = [leader.controller_endpoints[0]._replace(host="elsewhere", port=1)]
            await trio.sleep(1)
            leader.start()
            wires.nodes[elsewhere] = leader
            await until_same(node, leader)
        assert node.quorum.epoch == 2
        assert node.quorum.controller_address() == elsewhere

    async def test_an_older_epoch_is_never_believed(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode()
        node.start()
        async with following(node):
            await node.quorum.wait_caught_up()
            node.quorum.become_unattached(7)
            end = node.image.offset
            make(leader, "second")
            await trio.sleep(20)
            assert (node.quorum.epoch, node.quorum.leader_id) == (7, -1)
            assert node.image.offset == end
            assert len(wires.asked) < 100
        assert not node.quorum.become_follower(6, 1)
        assert node.quorum.become_follower(7, 1)
        assert not node.quorum.become_follower(7, 3), "an epoch has one leader"
        assert not node.quorum.become_follower(EPOCH_MAX + 1, 3), "no epoch would be left"

    async def test_a_broker_is_told_that_the_controller_has_its_id(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        node = FollowingNode(node_id=1)
        node.start()
        async with following(node):
            await trio.sleep(20)
        told = f"the controller at {LEADER} has node.id 1, too: this node needs another one"
        assert told in node.lines.getvalue()

    async def test_a_stopping_leader_and_another_cluster_are_left_alone_for_a_while(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        def refuse(request: Message, answer: Any) -> None:
            assert isinstance(answer, FetchResponse)
            answer.error_code = ErrorCode.INCONSISTENT_CLUSTER_ID

        wires.on_answer = refuse
        node = FollowingNode()
        node.start()
        async with following(node):
            await trio.sleep(60)
        assert 60 < len(wires.asked) < 200
        assert "refuses to give metadata: INCONSISTENT_CLUSTER_ID" in node.lines.getvalue()


class TestCommitted:
    """What the leader has is not what counts."""

    def followed(self, *batches: Sequence[Message], high_watermark: int = -1) -> FollowedLog:
        node = FollowingNode()
        node.start()
        followed = node.quorum.followed
        assert followed is not None
        end = 0
        first = build_control_batch([leader_change(1, [1])], base_offset=0, epoch=1, now_ms=0)
        followed.append(first, epoch_max=1)
        for records in batches:
            end = followed.end_offset
            batch = build_metadata_batch(
                [(record, 0) for record in records], base_offset=end, epoch=1, now_ms=0
            )
            followed.append(batch, epoch_max=1)
        self.node = node
        return followed

    def test_a_record_counts_when_the_high_watermark_is_behind_it(self) -> None:
        followed = self.followed([NoOpRecord()], [NoOpRecord()])
        for high_watermark, offset in ((-1, -1), (1, 0), (2, 1), (2, 1), (1, 1), (3, 2)):
            followed.advance(high_watermark)
            assert not followed.apply_some()
            assert self.node.image.offset == offset

    def test_the_first_image_holds_all_that_the_leader_had_committed(self) -> None:
        followed = self.followed([NoOpRecord()])
        followed.advance(5)  # it lies behind what was copied so far
        assert not followed.apply_some()
        assert self.node.image.offset == -1
        assert not followed.has_caught_up
        end = followed.end_offset
        followed.append(
            build_metadata_batch([(NoOpRecord(), 0)] * 3, base_offset=end, epoch=1, now_ms=0), epoch_max=1
        )
        followed.advance(5)
        assert not followed.apply_some()
        assert self.node.image.offset == 4
        assert followed.has_caught_up

    def test_a_metadata_transaction_counts_as_a_whole(self) -> None:
        topic = TopicRecord(name="t", topic_id=b"t" * 16)
        followed = self.followed(
            [NoOpRecord()], [BeginTransactionRecord()], [topic], [EndTransactionRecord()]
        )
        seen = []
        for high_watermark in range(1, 6):
            followed.advance(high_watermark)
            followed.apply_some()
            seen.append((self.node.image.offset, list(self.node.image.topics)))
        assert seen == [(0, []), (1, []), (1, []), (1, []), (4, ["t"])]

    def test_batches_of_a_later_epoch_wait_for_their_leader(self) -> None:
        followed = self.followed()
        batches = b"".join(
            bytes(build_metadata_batch([(NoOpRecord(), 0)], base_offset=offset, epoch=epoch, now_ms=0))
            for offset, epoch in ((1, 1), (2, 2))
        )
        followed.append(batches, epoch_max=1)
        assert followed.end_offset == 2

    def test_voters_count_at_once_and_go_with_their_record(self) -> None:
        followed = self.followed([NoOpRecord()])
        followed.advance(2)
        followed.apply_some()
        voters: VoterSet = leader_voters()
        batch = build_control_batch(
            quorum_records(1, voters), base_offset=followed.end_offset, epoch=1, now_ms=0
        )
        followed.append(batch, epoch_max=1)
        assert (followed.voters, followed.kraft_version) == (voters, 1)
        assert self.node.services.metadata.kraft_version == 0
        followed.truncate(1, 2)
        assert (followed.voters, followed.kraft_version) == ((), 0)

    def test_voters_count_although_what_comes_behind_them_is_damaged(self) -> None:
        followed = self.followed([NoOpRecord()])
        voters: VoterSet = leader_voters()
        good = build_control_batch(
            quorum_records(1, voters), base_offset=followed.end_offset, epoch=1, now_ms=0
        )
        damaged = build_metadata_batch(
            [(NoOpRecord(), 0)], base_offset=followed.end_offset + 2, epoch=1, now_ms=0
        )
        damaged[-1] ^= 1
        with pytest.raises(CorruptRecords):
            followed.append(good + damaged, epoch_max=1)
        assert (followed.end_offset, followed.voters, followed.kraft_version) == (4, voters, 1)

    def test_a_record_that_cannot_be_applied_ends_the_node(self) -> None:
        topic = TopicRecord(name="t", topic_id=b"t" * 16)
        followed = self.followed([topic], [topic])
        followed.advance(3)
        with pytest.raises(CorruptFile, match="made twice"):
            followed.apply_some()


def leader_voters() -> VoterSet:
    node = ControllerNode()
    node.start()
    return node.raft.voters


class TestChangingTheRole:
    async def test_a_leader_resigns_follows_and_leads_again(
        self, wires: Wires, autojump_clock: object
    ) -> None:
        node = ControllerNode()
        node.start()
        make(node, "first")
        told: list[bool] = []
        node.services.quorum.on_leader_change(lambda: told.append(node.services.quorum.is_leader))
        async with following(node):
            before = content(node.image)
            node.services.quorum.resign()
            with pytest.raises(KafkaError, match="NOT_CONTROLLER"):
                _ = node.raft
            assert content(node.image) == before
            assert node.services.quorum.leader_id == -1
            await trio.sleep(10)  # nobody else votes, so that it leads again when its patience ends
            assert node.raft.epoch == 2
            assert node.services.quorum.epoch == 2
            make(node, "second")
        assert list(node.image.topics) == ["first", "second"]
        assert told == [False, True]

    async def test_a_later_leader_deposes_this_one(
        self, wires: Wires, leader: ControllerNode, autojump_clock: object
    ) -> None:
        """What was not committed here goes."""
        later = ControllerNode()
        later.file_system = copy.deepcopy(leader.file_system)
        later.file_system.kill()
        later.controller_endpoints = [leader.controller_endpoints[0]._replace(host="elsewhere", port=1)]
        uncommitted = create_topics(
            leader.raft.latest, [NewTopic("lost", 1, 1)], topic_defaults(leader.services)
        )
        leader.raft.append(uncommitted.records)
        later.start()
        make(later, "second")
        elsewhere = Address("elsewhere", 1)
        wires.nodes[elsewhere] = later
        quorum = leader.services.quorum
        # Both have the id of one node: this one becomes another.
        leader.services.node_id = 9
        async with following(leader):
            assert quorum.become_follower(2, 1, elsewhere)
            assert not leader.controller.is_active
            await until_same(leader, later)
        assert list(leader.image.topics) == ["first", "second"]
        assert content(leader.image) == content(later.image)
