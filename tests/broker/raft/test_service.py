"""Snapshots of a working log: when they are made, what they spare, and what goes with the old ones."""

from random import Random

import pytest

from broker.controller.automatic_topics import topic_defaults
from broker.controller.topics import NewTopic, create_topics, delete_topics
from broker.metadata.feed import MetadataFeed
from broker.metadata.image import empty_image
from broker.raft.batches import read_metadata_batch
from broker.raft.log import MetadataLog
from broker.raft.service import RaftService
from broker.raft.snapshots import SnapshotId, build_snapshot, list_snapshots, write_snapshot
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import FeatureLevelRecord, UnregisterControllerRecord
from storage.config import LogConfig
from storage.errors import CorruptLog
from tests.broker.controller.node import METADATA, ControllerNode
from tests.storage.builders import DIRECTORY, World

SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "900",
    "metadata.log.max.snapshot.interval.ms": "0",
}
HOUR_MS = 3_600_000


def make(node: ControllerNode, name: str, partitions: int = 1) -> None:
    node.perform(
        lambda image: create_topics(image, [NewTopic(name, partitions, 1)], topic_defaults(node.services))
    )


def snapshot(node: ControllerNode) -> bool:
    """Make one if it is due, as the controller does after its commands."""
    pending = node.raft.due_snapshot()
    if pending is None:
        return False
    pending.write()
    node.raft.finish_snapshot(pending)
    return True


def snapshots(node: ControllerNode) -> list[int]:
    return [snapshot.end_offset for snapshot in list_snapshots(node.file_system, METADATA)]


class TestWhen:
    def test_after_so_many_bytes(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        assert snapshot(node)  # the first records are that many
        assert not snapshot(node)
        make(node, "a", 5)
        assert not snapshot(node)
        make(node, "b", 5)
        assert snapshot(node)
        assert snapshots(node) == [16, node.image.offset + 1]

    def test_after_so_much_time_if_there_is_something_new(self) -> None:
        node = ControllerNode()
        node.start()
        assert not snapshot(node)
        node.clock.time_ms += HOUR_MS
        assert snapshot(node)
        node.clock.time_ms += HOUR_MS
        assert not snapshot(node)
        make(node, "a")
        assert snapshot(node)
        make(node, "b")
        assert not snapshot(node)

    def test_never_before_everything_is_committed(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        decision = create_topics(node.raft.latest, [NewTopic("a", 50, 1)], topic_defaults(node.services))
        node.raft.append(decision.records)
        assert node.raft.due_snapshot() is None

    def test_what_was_read_at_the_start_counts(self) -> None:
        node = ControllerNode({**SMALL, "metadata.log.max.record.bytes.between.snapshots": "2500"})
        node.start()
        make(node, "a", 10)
        assert not snapshot(node)
        node.stop()
        node.start()
        assert snapshot(node)


class TestLoading:
    def test_a_snapshot_stands_for_the_records_before_it(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        make(node, "a", 5)
        make(node, "gone")
        node.perform(lambda image: delete_topics(image, [image.topics["gone"].id]))
        snapshot(node)
        make(node, "b")
        before = node.image
        node.stop()
        after = node.start()
        assert after.topics == before.topics
        assert list(after.topics) == ["a", "b"]
        assert after.configs == before.configs
        assert after.features == before.features

    def test_records_before_it_are_not_read_again(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        make(node, "a", 5)
        snapshot(node)
        node.stop()
        # Whatever stands there: a batch that can be read, with records that cannot.
        log = node.file_system.open(f"{METADATA}/00000000000000000000.log")
        batches = list(read_batches(bytearray(log.pread(log.size(), 0))))
        created = next(b for b in batches if b.base_offset == 16)
        assert read_metadata_batch(created)
        payload = memoryview(created.data)[61:]
        payload[5:] = bytes(len(payload) - 5)
        created.update_crc()
        log.pwrite(created.data, created.position)
        assert list(node.start().topics) == ["a"]

    def test_an_unfinished_one_does_not_count(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        make(node, "a", 5)
        snapshot(node)
        node.kill()
        part = f"{METADATA}/00000000000000000999-0000000001-5.checkpoint.part"
        node.file_system.open(part, create=True).pwrite(b"x", 0)
        assert list(node.start().topics) == ["a"]
        assert not node.file_system.exists(part)

    def test_one_ahead_of_the_log_replaces_it(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        make(node, "a", 5)
        snapshot(node)
        end = node.image.offset + 1
        node.kill()
        log = node.file_system.open(f"{METADATA}/00000000000000000000.log")
        log.truncate(174)  # as if the log had been lost, but for its first batch
        image = node.start()
        assert list(image.topics) == ["a"]
        assert node.raft.log.log.log_start == end
        assert node.raft.epoch == 2
        node.stop()
        assert list(node.start().topics) == ["a"]

    @pytest.mark.parametrize("applies_log", [False, True])
    def test_one_of_a_later_epoch_replaces_a_longer_log(self, applies_log: bool) -> None:
        """The power failed when the leader's snapshot was here, and this node's own records not yet gone."""
        world = World()
        log = MetadataLog(world.create(LogConfig()), world.services)
        for _ in range(6):
            log.append([(UnregisterControllerRecord(controller_id=7), 0)], epoch=1, now_ms=0)
        log.log.close()
        received = SnapshotId(4, 3)
        levels = [(FeatureLevelRecord(name="feature", feature_level=1), 0)]
        batches = build_snapshot(levels, received, kraft_version=0, voters=(), last_timestamp_ms=0, now_ms=0)
        write_snapshot(world.file_system, DIRECTORY, received, batches, unique="1")
        log = MetadataLog(world.open(LogConfig()), world.services)
        loaded = log.load("cluster", now_ms=0, applies_log=applies_log)
        assert loaded.snapshot == received
        assert (log.log.log_start, log.end_offset, log.last_epoch) == (4, 4, 3)

    def test_a_log_that_begins_behind_every_snapshot_is_refused(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        make(node, "a", 5)
        snapshot(node)
        make(node, "b")
        node.raft.log.log.roll(now_ms=node.clock.now_ms())
        make(node, "c")
        node.stop()
        for name in node.file_system.list_names(METADATA):
            if name.startswith("00000000000000000000.") or name.endswith("-0000000001.checkpoint"):
                node.file_system.remove(f"{METADATA}/{name}")
        with pytest.raises(CorruptLog, match=r"records before offset \d+ are missing"):
            node.start()

    def test_a_segment_that_is_missing_in_the_middle_is_noticed(self) -> None:
        node = ControllerNode(SMALL)
        node.start()
        middle = []
        for name in ("a", "b"):
            node.raft.log.log.roll(now_ms=node.clock.now_ms())
            middle.append(node.raft.log.end_offset)
            make(node, name)
        node.stop()
        for name in node.file_system.list_names(METADATA):
            if name.startswith(f"{middle[0]:020d}."):
                node.file_system.remove(f"{METADATA}/{name}")
        with pytest.raises(CorruptLog, match=f"offset {middle[1]} follows {middle[0] - 1}: records between"):
            node.start()

    @pytest.mark.parametrize("seed", range(20))
    def test_a_power_cut_leaves_no_hole_between_segments(self, seed: int) -> None:
        """Several were begun before the fsync on which the answers wait."""
        node = ControllerNode({"internal.metadata.log.segment.bytes": "2500"})
        node.start()
        make(node, "safe")
        for number in range(30):
            wanted = [NewTopic(f"lost-{number}", 2, 1)]
            node.raft.append(create_topics(node.raft.latest, wanted, topic_defaults(node.services)).records)
        node.lose_power(Random(seed))
        assert "safe" in node.start().topics

    @pytest.mark.parametrize("hole_from_end", [3, 2])
    def test_behind_a_hole_a_copy_is_cut(self, hole_from_end: int) -> None:
        """Nobody had waited for its fsyncs, and the leader sends it again; the last segment is empty."""
        world = World()
        log = MetadataLog(world.create(LogConfig(segment_bytes=200)), world.services)
        for number in range(6):
            record = FeatureLevelRecord(name=f"feature.{number}", feature_level=1)
            log.append([(record, 0)], epoch=1, now_ms=0)
        log.log.roll(now_ms=0)
        hole = log.log.segments[-hole_from_end].base_offset
        assert hole < log.log.segments[1 - hole_from_end].base_offset <= log.end_offset
        log.log.close()
        for name in world.names():
            if name.startswith(f"{hole:020d}."):
                world.file_system.remove(f"{DIRECTORY}/{name}")
        log = MetadataLog(world.open(LogConfig(segment_bytes=200)), world.services)
        log.load("cluster", now_ms=0, applies_log=False)
        assert log.end_offset == hole


class TestTrimming:
    def node(self, **rules: str) -> ControllerNode:
        names = {f"metadata.{name}": value for name, value in rules.items()}
        node = ControllerNode({**SMALL, **{name.replace("_", "."): value for name, value in names.items()}})
        node.start()
        return node

    def test_old_ones_go_by_age_with_the_segments_before_them(self) -> None:
        node = self.node(max_retention_ms=str(10 * HOUR_MS))
        for name in ("a", "b", "c"):
            make(node, name, 20)
            node.raft.log.log.roll(now_ms=node.clock.now_ms())
            assert snapshot(node)
            node.clock.time_ms += 6 * HOUR_MS
        ends = snapshots(node)
        assert len(ends) == 2
        assert node.raft.log.log.log_start == ends[0]
        before = node.image
        node.stop()
        assert node.start().topics == before.topics

    def test_old_ones_go_by_size(self) -> None:
        node = self.node(max_retention_bytes="1")
        for name in ("a", "b", "c"):
            make(node, name, 20)
            assert snapshot(node)
        assert snapshots(node) == [node.image.offset + 1]
        marked = [name for name in node.file_system.list_names(METADATA) if name.endswith(".deleted")]
        assert len(marked) == 2
        remove = node.directory.services.removals.begin(node.clock.now_ms() + HOUR_MS)
        assert remove is not None
        remove()
        assert not [name for name in node.file_system.list_names(METADATA) if name.endswith(".deleted")]

    def test_the_newest_and_the_bootstrap_one_stay(self) -> None:
        node = self.node(max_retention_bytes="1", max_retention_ms="1")
        make(node, "a", 20)
        assert snapshot(node)
        node.clock.time_ms += HOUR_MS
        make(node, "b", 20)
        assert snapshot(node)
        assert len(snapshots(node)) == 1
        assert node.file_system.exists(f"{METADATA}/00000000000000000000-0000000000.checkpoint")


def test_who_has_only_followed_learns_kraft_version_from_the_log_that_it_is_to_lead() -> None:
    node = ControllerNode()
    node.start()
    node.stop()
    node.start()
    loaded = node.raft.log.load(node.services.cluster_id, now_ms=node.clock.now_ms())
    feed = MetadataFeed(empty_image(node.services.cluster_id))  # as before anything is known to be committed
    raft = RaftService(
        node.raft.log,
        loaded,
        node_id=1,
        directory_id=node.services.quorum.directory_id,
        now_ms=node.clock.now_ms,
        snapshotting=node.raft.snapshotting,
        feed=feed,
    )
    assert raft.kraft_version == 1
