"""One node starts, stops, is killed and starts again; what it then has, and what its log says."""

import errno
from collections.abc import Callable
from random import Random

import pytest

from broker.config.broker_config import BrokerConfig
from broker.controller.automatic_topics import topic_defaults
from broker.controller.topics import NewTopic, create_topics
from broker.metadata.image import Endpoint
from broker.raft.batches import (
    KRaftNotes,
    build_metadata_batch,
    build_values_batch,
    quorum_records,
    read_metadata_batch,
)
from broker.raft.service import QuorumMismatch
from broker.raft.voters import Voter, VoterSet
from protocol.errors import KafkaError
from protocol.records.batch import read_batches
from protocol.stored.metadata_records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
)
from storage.errors import CorruptFile, DiskFailure
from storage.memory_filesystem import PowerCut
from storage.node_files import MetaProperties, read_meta_properties, write_meta_properties
from tests.broker.controller.node import CLUSTER_ID, METADATA, ControllerNode
from tests.broker.metadata.golden import golden_batches, read_golden

LOG = f"{METADATA}/00000000000000000000.log"


def make(node: ControllerNode, name: str, partitions: int = 1) -> None:
    node.perform(
        lambda image: create_topics(image, [NewTopic(name, partitions, 1)], topic_defaults(node.services))
    )


class TestFirstStart:
    def test_it_serves_at_once(self) -> None:
        image = ControllerNode().start()
        assert image.cluster_id == CLUSTER_ID
        assert image.metadata_version == 33
        assert image.brokers[1].is_active
        assert image.brokers[1].endpoint("PLAINTEXT") == ("PLAINTEXT", "broker.example", 9092, 0)
        assert image.controllers[1].endpoints == (("CONTROLLER", "127.0.0.1", 9093, 0),)
        assert image.topics == {}

    @pytest.mark.parametrize(("log", "level"), [("one_node", 33), ("level_25", 25)])
    def test_the_log_has_the_shape_of_kafka_s(self, log: str, level: int) -> None:
        node = ControllerNode(metadata_version=level)
        node.start()
        node.stop()
        ours = list(read_batches(node.file_system.read_file(LOG)))
        theirs = list(golden_batches(log))
        # LeaderChange with the voters, bootstrap records, RegisterController, RegisterBroker: the same
        # offsets and sizes, but for the length of host names; Kafka then unfences in a batch of its own.
        for our, their in zip(ours[:3], theirs[:3], strict=True):
            assert (our.base_offset, our.record_count, our.partition_leader_epoch, our.is_control) == (
                their.base_offset,
                their.record_count,
                their.partition_leader_epoch,
                their.is_control,
            )
        assert [record.value for record in ours[1].records()] == [
            record.value for record in theirs[1].records()
        ]
        assert ours[3].base_offset == theirs[3].base_offset
        assert node.image.brokers[1].epoch == theirs[3].base_offset

    def test_it_costs_few_fsyncs(self) -> None:
        node = ControllerNode()
        node.open_directory()
        before = node.file_system.syncs
        node.file_system.kill()
        node.start()
        # The topic id of the metadata log, quorum-state, the records and their epochs; and their names.
        assert node.file_system.syncs - before <= 8

    def test_nothing_is_lost_when_the_power_fails_right_after(self) -> None:
        node = ControllerNode()
        before = node.start()
        node.lose_power()
        after = node.start()
        assert after.topics == before.topics
        assert after.features == before.features
        assert node.raft.epoch == 2


class TestRestart:
    def test_after_a_clean_stop_everything_is_as_it_was(self) -> None:
        node = ControllerNode()
        node.start()
        make(node, "a", 3)
        before = node.image
        node.stop()
        after = node.start()
        assert after.topics == before.topics
        assert after.configs == before.configs
        assert after.brokers[1].epoch > before.brokers[1].epoch
        assert after.brokers[1].incarnation_id != before.brokers[1].incarnation_id
        assert node.raft.epoch == 2

    def test_after_a_kill_leader_epochs_move_on(self) -> None:
        node = ControllerNode()
        node.start()
        make(node, "a", 3)
        for epoch in (1, 2):
            node.kill()
            partitions = node.start().topics["a"].partitions
            assert [(p.leader, p.leader_epoch) for p in partitions] == [(1, epoch)] * 3

    def test_a_stopped_broker_is_fenced(self) -> None:
        node = ControllerNode()
        node.start()
        node.stop()
        *_, last = read_batches(node.file_system.read_file(LOG))
        fenced = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=13, fenced=1)
        assert read_metadata_batch(last) == [fenced]

    def test_the_voters_are_named_again_only_when_the_controller_has_moved(self) -> None:
        node = ControllerNode()
        node.start()
        node.stop()
        for endpoint, records in ((("CONTROLLER", "127.0.0.1", 9093), 1), (("CONTROLLER", "other", 1), 3)):
            node.controller_endpoints = [Endpoint(*endpoint)]
            node.start()
            node.stop()
            batches = [b for b in read_batches(node.file_system.read_file(LOG)) if b.is_control]
            assert batches[-1].record_count == records
        assert node.raft.voters[0].endpoints == (("CONTROLLER", "other", 1),)

    def test_every_start_begins_an_epoch_of_its_own(self, chance: Random) -> None:
        """Also when the power fails anywhere: records of one epoch never come from two starts."""
        node = ControllerNode()
        node.start()
        make(node, "a")
        seen = {node.raft.epoch}
        node.kill()
        for _ in range(40):
            node.file_system.stop_after = chance.randrange(1, 40)
            try:
                node.start()
                make(node, f"t{chance.randrange(1_000_000)}")
                make(node, f"t{chance.randrange(1_000_000)}")
                node.stop()
            except PowerCut:
                pass
            node.lose_power(chance)
            node.start()
            assert node.raft.epoch not in seen
            seen.add(node.raft.epoch)
            assert "a" in node.image.topics
            node.lose_power(chance)


class TestCrashBetweenAppendAndFlush:
    def test_what_was_not_flushed_may_be_gone_and_its_epoch_is_not_used_again(self) -> None:
        node = ControllerNode()
        node.start()
        make(node, "kept")
        node.raft.append(
            create_topics(node.raft.latest, [NewTopic("lost", 1, 1)], topic_defaults(node.services)).records
        )
        end = node.raft.log.end_offset
        assert "lost" in node.raft.latest.topics
        assert "lost" not in node.image.topics
        assert node.raft.log.log.high_watermark < end
        node.lose_power()
        image = node.start()
        assert list(image.topics) == ["kept"]
        assert node.raft.epoch == 2

    def test_what_a_kill_leaves_is_kept(self) -> None:
        node = ControllerNode()
        node.start()
        node.raft.append(
            create_topics(
                node.raft.latest, [NewTopic("written", 1, 1)], topic_defaults(node.services)
            ).records
        )
        node.kill()
        assert list(node.start().topics) == ["written"]

    def test_a_torn_batch_is_cut_off(self) -> None:
        node = ControllerNode()
        node.start()
        make(node, "kept")
        size = node.file_system.file_size(LOG)
        make(node, "torn")
        node.kill()
        node.file_system.open(LOG).truncate(size + 20)
        assert list(node.start().topics) == ["kept"]


class TestKafkaDirectories:
    """What Kafka formatted and used opens as it is."""

    def directory_of(self, log: str, node_id: int = 1) -> ControllerNode:
        node = ControllerNode()
        node.open_directory()  # writes our own format, which Kafka's files replace
        node.kill()
        file_system = node.file_system
        bootstrap = f"{METADATA}/00000000000000000000-0000000000.checkpoint"
        kafka_id = _directory_id(log)
        file_system.open("data/meta.properties").truncate(0)
        write_meta_properties(file_system, "data", MetaProperties(CLUSTER_ID, node_id, kafka_id))
        file_system.remove(bootstrap)
        if log == "one_node":
            file_system.open(bootstrap, create=True).pwrite(read_golden("one_node_format"), 0)
        file_system.open(LOG, create=True).pwrite(read_golden(f"{log}_log"), 0)
        file_system.sync_everything()
        return node

    @pytest.mark.parametrize(("log", "topic"), [("one_node", "orders"), ("level_25", "aa")])
    def test_one_node(self, log: str, topic: str) -> None:
        node = self.directory_of(log)
        image = node.start()
        *_, last = golden_batches(log)
        assert node.raft.epoch == last.partition_leader_epoch + 1
        assert [p.leader for p in image.topics[topic].partitions] == [1] * len(image.topics[topic].partitions)
        assert image.brokers[1].is_active
        make(node, "new")
        node.stop()
        assert set(node.start().topics) == {topic, "new"}

    def test_a_log_of_level_25_gets_no_newer_records(self) -> None:
        node = self.directory_of("level_25")
        assert node.start().metadata_version == 25
        assert node.image.brokers[1].cordoned_directories is None

    def test_a_controller_with_other_brokers(self) -> None:
        node = self.directory_of("three_brokers")
        image = node.start()
        assert sorted(image.brokers) == [1, 2, 3]
        assert [broker.id for broker in image.alive_brokers()] == [1]


def _directory_id(log: str) -> bytes:
    notes = KRaftNotes()
    for batch in golden_batches(log):
        if batch.is_control:
            notes = notes.updated(batch)
    assert notes.voters is not None
    return notes.voters[0].directory_id


class TestWithoutVotersInTheLog:
    """kraft.version 0: ``controller.quorum.voters`` names this node, and the log nobody."""

    def test_it_starts_again_and_again(self) -> None:
        node = ControllerNode()
        node.format = node.format._replace(controller_endpoints=())
        for epoch in (1, 2):
            node.start()
            assert node.raft.epoch == epoch
            assert node.raft.kraft_version == 0
            assert "kraft.version" not in node.raft.feed.finalized_features
            node.stop()
            assert node.file_system.read_file(f"{METADATA}/quorum-state") == (
                b'{"clusterId":"","leaderId":1,"leaderEpoch":%d,"votedId":-1,"appliedOffset":0,'
                b'"currentVoters":[{"voterId":1}],"data_version":0}' % epoch
            )
        first, *_ = read_batches(node.file_system.read_file(LOG))
        assert (first.is_control, first.record_count) == (True, 1)


class TestWhereOthersVote:
    """Another node leads, or may: this one does not, and counts nothing of its log as committed."""

    def started_with(self, voters: Callable[[Voter], VoterSet]) -> ControllerNode:
        node = ControllerNode()
        node.start()
        make(node, "a")
        raft = node.raft
        records = quorum_records(1, voters(raft.voters[0]))
        raft.log.append_control(records, epoch=raft.epoch, now_ms=0)
        raft.flush()
        node.kill()
        node.start()
        return node

    @pytest.mark.parametrize(
        "voters",
        [lambda voter: (voter, voter._replace(id=2)), lambda voter: (voter._replace(id=2),)],
        ids=["both", "another"],
    )
    def test_it_follows(self, voters: Callable[[Voter], VoterSet]) -> None:
        node = self.started_with(voters)
        assert not node.controller.is_active
        assert not node.services.quorum.is_leader
        assert node.services.quorum.epoch == 1
        assert node.services.quorum.leader_id == -1
        assert node.services.quorum.high_watermark == -1
        assert node.image.offset == -1
        with pytest.raises(KafkaError, match="NOT_CONTROLLER"):
            _ = node.raft

    def test_a_node_that_is_only_a_broker_now_follows(self) -> None:
        node = ControllerNode()
        node.start()
        make(node, "a")
        node.stop()
        node.services.config = BrokerConfig({"node.id": "1", "process.roles": "broker"})
        node.start()
        quorum = node.services.quorum
        assert not quorum.is_leader
        assert (quorum.epoch, quorum.leader_id, node.image.offset) == (1, -1, -1)


class TestRefusals:
    def test_a_node_whose_directory_does_not_vote(self) -> None:
        node = ControllerNode()
        node.start()
        node.stop()
        stored = read_meta_properties(node.file_system, "data")
        assert stored is not None
        write_meta_properties(node.file_system, "data", stored._replace(directory_id=bytes(15) + b"x"))
        with pytest.raises(QuorumMismatch, match=r"not among the voters of its metadata log .*id=1,"):
            node.start()

    @pytest.mark.parametrize("level", [24, 34])
    def test_a_level_that_is_not_supported(self, level: int) -> None:
        node = ControllerNode()
        node.start()
        node.raft.append([(FeatureLevelRecord(name="metadata.version", feature_level=level), 0)])
        node.raft.flush()
        node.kill()
        with pytest.raises(
            QuorumMismatch, match=f"metadata.version is {level}, but this broker supports 25 to 33"
        ):
            node.start()

    def test_a_record_of_an_unknown_type(self) -> None:
        node = ControllerNode()
        node.start()
        end = node.raft.log.end_offset
        node.raft.log.log.append_as_follower(
            build_values_batch([b"\x01\x63\x00"], base_offset=end, epoch=1, now_ms=0), now_ms=0
        )
        node.kill()
        with pytest.raises(CorruptFile, match=f"offset {end}.*record type 99 version 0 is unknown"):
            node.start()

    def test_records_that_contradict_each_other(self) -> None:
        node = ControllerNode()
        node.start()
        end = node.raft.log.end_offset
        wrong = build_metadata_batch([(FenceBrokerRecord(id=9), 0)], base_offset=end, epoch=1, now_ms=0)
        node.raft.log.log.append_as_follower(wrong, now_ms=0)
        node.kill()
        with pytest.raises(CorruptFile, match=f"offset {end}: .*broker 9, which is not registered"):
            node.start()

    def test_a_full_disk(self) -> None:
        node = ControllerNode()
        node.open_directory()
        node.kill()
        node.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        with pytest.raises(DiskFailure, match="No space left on device"):
            node.start()


class TestFullDiskWhileServing:
    def test_the_command_is_refused_and_the_log_is_as_before(self) -> None:
        node = ControllerNode()
        node.start()
        end = node.raft.log.end_offset
        node.file_system.refuse("write", errno.ENOSPC, path_suffix=".log")
        with pytest.raises(DiskFailure):
            make(node, "a")
        assert node.raft.log.end_offset == end
        assert node.raft.latest is node.image
        make(node, "a")
        node.kill()
        assert list(node.start().topics) == ["a"]


def test_a_batch_longer_than_followers_accept_is_refused() -> None:
    node = ControllerNode()
    node.start()
    records = [(FeatureLevelRecord(name="x" * 30_000, feature_level=1), 0)] * 300
    with pytest.raises(KafkaError, match="excessively large"):
        node.raft.append(records)
    assert node.raft.latest is node.image
