"""What every record type does to the image, and what is refused."""

import pytest

from broker.metadata.image import (
    LeaderRecoveryState,
    MetadataImage,
    PartitionImage,
    ResourceType,
    empty_image,
)
from broker.metadata.replay import Replay, ReplayError, apply
from protocol.schema import Message
from protocol.stored import metadata_records as stored
from protocol.uuids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from tests.broker.metadata.golden import LOGS, SNAPSHOTS, load_golden_snapshot, replay_golden
from tests.broker.metadata.records import (
    after,
    broker,
    directory,
    features,
    image_of,
    partition,
    topic,
    uuid,
)

TOPIC = uuid(1000)


@pytest.mark.parametrize(("log", "end_offset", "epoch"), SNAPSHOTS)
def test_the_log_gives_the_image_that_kafka_has_in_its_snapshot(
    log: str, end_offset: int, epoch: int
) -> None:
    replayed = replay_golden(log, end_offset)
    assert replayed.parts() == load_golden_snapshot(log, end_offset, epoch).parts()


def test_a_kafka_log_by_hand() -> None:
    image = replay_golden("one_node")
    assert (image.offset, image.epoch) == (79, 3)
    assert image.features == {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,  # streams.version was taken back to 0
        "transaction.version": 2,
    }
    assert list(image.topics) == ["orders"]  # another one was deleted
    assert (
        image.topics["orders"].partitions
        == (
            PartitionImage(
                replicas=(1,),
                isr=(1,),
                leader=1,
                leader_epoch=4,
                partition_epoch=5,
                directories=image.brokers[1].directories,
                leader_recovery_state=LeaderRecoveryState.RECOVERING,
            ),
        )
        * 4
    )
    assert image.configs == {
        (ResourceType.BROKER, ""): {"min.insync.replicas": "1", "log.retention.ms": "100000000"},
        (ResourceType.BROKER, "1"): {"log.cleaner.threads": "2"},
        (ResourceType.TOPIC, "orders"): {"cleanup.policy": "compact,delete", "max.message.bytes": "2000000"},
        (ResourceType.CLIENT_METRICS, "cm"): {"interval.ms": "30000"},
        (ResourceType.GROUP, "g1"): {"consumer.session.timeout.ms": "50000"},
    }
    assert image.quotas == {
        (("client-id", None),): {"consumer_byte_rate": 2048.0},
        (("user", "alice"),): {"producer_byte_rate": 1024.0},
    }
    assert [entry.resource_name for entry in image.acls.values()] == ["orders"]
    assert list(image.scram_credentials) == [("alice", 1)]
    assert image.next_producer_id == 1000
    registered = image.brokers[1]
    assert (registered.epoch, registered.fenced, registered.cordoned_directories) == (69, False, ())
    assert registered.endpoint("PLAINTEXT") == ("PLAINTEXT", "127.0.0.1", 29092, 0)
    assert registered.features["metadata.version"] == (7, 33)
    assert image.controllers[1].endpoints == (("CONTROLLER", "127.0.0.1", 29093, 0),)


@pytest.mark.parametrize("log", LOGS)
def test_batch_by_batch_and_all_at_once_give_the_same(log: str) -> None:
    whole = replay_golden(log)
    assert replay_golden(log, whole.offset + 1).parts() == whole.parts()


class TestTopics:
    def test_a_topic_is_found_by_name_and_by_id(self) -> None:
        image = image_of(features(), broker(1), topic("a", TOPIC, partition([1]), partition([1])))
        assert image.topics["a"] is image.topics_by_id[TOPIC]
        assert image.topic_id("a") == TOPIC
        assert image.topic_id("b") is None
        assert image.partition("a", 1) == image.topics["a"].partitions[1]
        assert image.partition("a", 2) is None
        assert image.partition("a", -1) is None
        assert image.partition("b", 0) is None

    def test_a_removed_topic_takes_its_settings_along(self) -> None:
        setting = stored.ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="1")
        image = image_of(topic("a", TOPIC, partition([1])), setting)
        image, changes = apply(image, [stored.RemoveTopicRecord(topic_id=TOPIC)], offset=9, epoch=1)
        assert not image.topics
        assert not image.topics_by_id
        assert not image.configs
        assert list(changes.deleted_topics) == [TOPIC]
        assert len(changes.deleted_topics[TOPIC].partitions) == 1

    def test_names_that_could_collide_are_remembered(self) -> None:
        image = image_of(topic("a.b", TOPIC), topic("a_b", uuid(1001)), topic("ab", uuid(1002)))
        assert image.topic_names_by_collision_key == {"a_b": ("a.b", "a_b")}
        image = after(image, stored.RemoveTopicRecord(topic_id=TOPIC))
        assert image.topic_names_by_collision_key == {"a_b": ("a_b",)}
        image = after(image, stored.RemoveTopicRecord(topic_id=uuid(1001)))
        assert image.topic_names_by_collision_key == {}

    def test_a_topic_made_and_deleted_between_two_images_never_was(self) -> None:
        replay = Replay(empty_image("c"))
        records = [*topic("a", TOPIC, partition([1])), stored.RemoveTopicRecord(topic_id=TOPIC)]
        replay.apply(records, offset=2, epoch=1)
        changes = replay.publish()
        assert not changes.topics
        assert not changes.deleted_topics

    def test_a_topic_deleted_and_made_again_is_another(self) -> None:
        image = image_of(topic("a", TOPIC, partition([1])))
        records = [stored.RemoveTopicRecord(topic_id=TOPIC), *topic("a", uuid(1001), partition([2]))]
        image, changes = apply(image, records, offset=9, epoch=1)
        assert list(changes.deleted_topics) == [TOPIC]
        assert list(changes.topics) == [uuid(1001)]
        assert image.topics["a"].id == uuid(1001)

    def test_an_old_image_stays_as_it_was(self) -> None:
        before = image_of(topic("a", TOPIC, partition([1])))
        parts = before.parts()
        after(before, stored.RemoveTopicRecord(topic_id=TOPIC), topic("b", uuid(1001), partition([1])))
        assert before.parts() == parts


class TestPartitionChanges:
    def change(self, **what: object) -> PartitionImage:
        image = image_of(topic("a", TOPIC, partition([1, 2])))
        record = stored.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **what)  # type: ignore[arg-type]
        return after(image, record).topics["a"].partitions[0]

    def test_the_partition_epoch_always_grows(self) -> None:
        changed = self.change(isr=[1])
        assert (changed.isr, changed.partition_epoch, changed.leader_epoch) == ((1,), 8, 5)

    def test_the_leader_epoch_grows_with_every_leader_named_even_the_same(self) -> None:
        for leader in (1, 2, -1):
            changed = self.change(leader=leader)
            assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (leader, 6, 8)

    def test_everything_else(self) -> None:
        changed = self.change(
            replicas=[2, 3],
            removing_replicas=[1],
            adding_replicas=[3],
            directories=[directory(2), directory(3)],
            leader_recovery_state=1,
            eligible_leader_replicas=[2],
            last_known_elr=[1],
        )
        assert changed == PartitionImage(
            replicas=(2, 3),
            isr=(1, 2),
            leader=1,
            leader_epoch=5,
            partition_epoch=8,
            directories=(directory(2), directory(3)),
            leader_recovery_state=LeaderRecoveryState.RECOVERING,
            removing_replicas=(1,),
            adding_replicas=(3,),
            eligible_leader_replicas=(2,),
            last_known_elr=(1,),
        )

    def test_other_replicas_in_the_same_directories(self) -> None:
        """Nobody has said yet where a replica lies, or will: a record has only what differs."""
        made = partition([1])
        made.directories = [UNASSIGNED_DIRECTORY]
        image = image_of(topic("a", TOPIC, made))
        record = stored.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, replicas=[2], isr=[2], leader=2)
        changed = after(image, record).topics["a"].partitions[0]
        assert (changed.replicas, changed.directories) == ((2,), (UNASSIGNED_DIRECTORY,))

    def test_other_replicas_where_nobody_says_where_they_lie(self) -> None:
        made = partition([1])
        made.directories = [MIGRATING_DIRECTORY]
        image = image_of(topic("a", TOPIC, made))
        record = stored.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, replicas=[1, 2])
        changed = after(image, record).topics["a"].partitions[0]
        assert changed.directories == (MIGRATING_DIRECTORY,) * 2

    def test_empty_lists_empty_what_null_leaves(self) -> None:
        image = image_of(topic("a", TOPIC, partition([1], [], elr=[1], last_known_elr=[1])))
        record = stored.PartitionChangeRecord(
            partition_id=0, topic_id=TOPIC, eligible_leader_replicas=[], last_known_elr=[]
        )
        changed = after(image, record).topics["a"].partitions[0]
        assert (changed.eligible_leader_replicas, changed.last_known_elr) == ((), ())

    def test_clearing_the_eligible_replicas_of_one_topic_or_of_all(self) -> None:
        made = [
            *topic("a", TOPIC, partition([1, 2], [1], elr=[2]), partition([1, 2])),
            *topic("b", uuid(1001), partition([1], [], last_known_elr=[1])),
        ]
        image = after(image_of(made), stored.ClearElrRecord(topic_name="a"))
        cleared, untouched = image.topics["a"].partitions
        assert (cleared.eligible_leader_replicas, cleared.partition_epoch) == ((), 8)
        assert untouched.partition_epoch == 7
        assert image.topics["b"].partitions[0].last_known_elr == (1,)
        image = after(image, stored.ClearElrRecord(topic_name=""))
        assert image.topics["b"].partitions[0].last_known_elr == ()


class TestBrokers:
    def test_old_and_new_records_fence(self) -> None:
        image = image_of(broker(1))
        for fence, unfence in (
            (
                stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=100, fenced=1),
                stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=100, fenced=-1),
            ),
            (stored.FenceBrokerRecord(id=1, epoch=100), stored.UnfenceBrokerRecord(id=1, epoch=100)),
        ):
            image = after(image, fence)
            assert image.brokers[1].fenced
            assert image.alive_brokers() == []
            image = after(image, unfence)
            assert not image.brokers[1].fenced

    def test_a_change_changes_only_what_it_names(self) -> None:
        image = image_of(broker(1))
        changed = after(
            image,
            stored.BrokerRegistrationChangeRecord(
                broker_id=1,
                broker_epoch=100,
                in_controlled_shutdown=1,
                log_dirs=[uuid(5000)],
                cordoned_log_dirs=[uuid(5000)],
            ),
        ).brokers[1]
        assert changed.in_controlled_shutdown
        assert not changed.fenced
        assert not changed.is_active
        assert changed.directories == changed.cordoned_directories == (uuid(5000),)

    def test_unregistering(self) -> None:
        image, changes = apply(
            image_of(broker(1)),
            [stored.UnregisterBrokerRecord(broker_id=1, broker_epoch=100)],
            offset=1,
            epoch=1,
        )
        assert not image.brokers
        assert changes.brokers == {1}

    def test_controllers_come_and_go(self) -> None:
        image = image_of(stored.RegisterControllerRecord(controller_id=3, incarnation_id=uuid(9)))
        assert image.controllers[3].incarnation_id == uuid(9)
        assert not after(image, stored.UnregisterControllerRecord(controller_id=3)).controllers

    def test_offline_directories(self) -> None:
        registered = image_of(broker(1)).brokers[1]
        assert registered.has_online(directory(1))
        assert registered.has_online(uuid(0))
        assert registered.has_online(uuid(1))
        assert not registered.has_online(uuid(2))
        assert not registered.has_online(uuid(5000))
        silent = registered._replace(directories=())
        assert silent.has_online(uuid(5000))
        assert not silent.has_online(uuid(2))


class TestOtherRecords:
    def test_settings_quotas_and_credentials_are_replaced_and_removed(self) -> None:
        def quota(value: float, *, remove: bool = False) -> Message:
            entity = [
                stored.EntityData(entity_type="user", entity_name="u"),
                stored.EntityData(entity_type="client-id", entity_name=None),
            ]
            return stored.ClientQuotaRecord(entity=entity, key="k", value=value, remove=remove)

        image = image_of(
            stored.ConfigRecord(resource_type=4, resource_name="1", name="k", value="a"),
            stored.ConfigRecord(resource_type=4, resource_name="1", name="k", value="b"),
            quota(1.0),
            quota(2.0),
            stored.UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
            stored.DelegationTokenRecord(token_id="t", owner="User:a"),
            stored.AccessControlEntryRecord(id=uuid(7), resource_name="r"),
            stored.ProducerIdsRecord(next_producer_id=3000),
            stored.NoOpRecord(),
            stored.ZkMigrationStateRecord(zk_migration_state=0),
        )
        assert image.configs == {(4, "1"): {"k": "b"}}
        assert image.quotas == {(("client-id", None), ("user", "u")): {"k": 2.0}}
        assert image.next_producer_id == 3000
        image = after(
            image,
            stored.ConfigRecord(resource_type=4, resource_name="1", name="k", value=None),
            quota(0.0, remove=True),
            stored.RemoveUserScramCredentialRecord(name="u", mechanism=1),
            stored.RemoveDelegationTokenRecord(token_id="t"),
            stored.RemoveAccessControlEntryRecord(id=uuid(7)),
            stored.FeatureLevelRecord(name="metadata.version", feature_level=0),
        )
        emptied = (
            image.configs,
            image.quotas,
            image.scram_credentials,
            image.delegation_tokens,
            image.acls,
            image.features,
        )
        assert not any(emptied)

    def test_settings_that_no_longer_exist_are_left_out(self) -> None:
        """Otherwise nothing else of such a topic could be altered: the image would be found wrong."""
        image = image_of(
            stored.ConfigRecord(resource_type=2, resource_name="t", name="message.format.version", value="3"),
            stored.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"),
            stored.ConfigRecord(resource_type=4, resource_name="1", name="anything.at.all", value="2"),
            stored.ConfigRecord(resource_type=8, resource_name="1", name="kafka", value="INFO"),
            stored.ConfigRecord(resource_type=16, resource_name="s", name="interval.ms", value="100"),
            stored.ConfigRecord(resource_type=16, resource_name="s", name="interval.s", value="1"),
            stored.ConfigRecord(resource_type=32, resource_name="g", name="retention.ms", value="1"),
        )
        assert image.configs == {
            (2, "t"): {"retention.ms": "1"},
            (4, "1"): {"anything.at.all": "2"},
            (16, "s"): {"interval.ms": "100"},
        }

    def test_kraft_version_is_no_level_of_the_image(self) -> None:
        """Kafka 4.0 wrote it into logs by mistake: what counts is KRaft's own note."""
        image = image_of(stored.FeatureLevelRecord(name="kraft.version", feature_level=1))
        assert image.features == {}

    def test_every_type_has_a_rule(self) -> None:
        from broker.metadata.replay import HANDLERS

        about_transactions = {
            stored.BeginTransactionRecord,
            stored.EndTransactionRecord,
            stored.AbortTransactionRecord,
        }
        assert set(stored.RECORD_TYPES.values()) == set(HANDLERS) | about_transactions


class TestTransactions:
    BEGIN = stored.BeginTransactionRecord(name="t")
    END = stored.EndTransactionRecord()
    ABORT = stored.AbortTransactionRecord(reason="r")

    def test_nothing_shows_before_the_end(self) -> None:
        replay = Replay(empty_image("c"))
        replay.apply([*topic("a", TOPIC), self.BEGIN, *topic("b", uuid(1001))], offset=2, epoch=1)
        changes = replay.publish()
        assert replay.in_transaction
        assert list(replay.image.topics) == ["a"]
        assert replay.image.offset == 0
        assert list(changes.topics) == [TOPIC]
        replay.apply([*topic("c", uuid(1002)), self.END, *topic("d", uuid(1003))], offset=5, epoch=1)
        changes = replay.publish()
        assert list(replay.image.topics) == ["a", "b", "c", "d"]
        assert replay.image.offset == 5
        assert list(changes.topics) == [uuid(1001), uuid(1002), uuid(1003)]

    def test_an_aborted_one_leaves_no_trace(self) -> None:
        before = image_of(topic("a", TOPIC, partition([1])))
        replay = Replay(before)
        remove = stored.RemoveTopicRecord(topic_id=TOPIC)
        replay.apply([self.BEGIN, remove, *topic("b", uuid(1001))], offset=9, epoch=1)
        replay.apply([self.ABORT, *topic("c", uuid(1002))], offset=11, epoch=1)
        changes = replay.publish()
        assert list(replay.image.topics) == ["a", "c"]
        assert not changes.deleted_topics
        assert list(changes.topics) == [uuid(1002)]

    def test_what_was_not_published_before_it_counts_with_it(self) -> None:
        replay = Replay(image_of(topic("a", TOPIC, partition([1]))))
        records = [
            *topic("b", uuid(1001)),
            self.BEGIN,
            stored.RemoveTopicRecord(topic_id=TOPIC),
            stored.RemoveTopicRecord(topic_id=uuid(1001)),
            self.END,
        ]
        replay.apply(records, offset=9, epoch=1)
        changes = replay.publish()
        assert not replay.image.topics
        assert list(changes.deleted_topics) == [TOPIC]
        assert not changes.topics

    def test_a_decision_may_not_end_inside_one(self) -> None:
        with pytest.raises(ReplayError, match="inside a metadata transaction"):
            apply(empty_image("c"), [self.BEGIN], offset=0, epoch=1)

    @pytest.mark.parametrize("records", [[BEGIN, BEGIN], [END], [ABORT]])
    def test_what_cannot_be(self, records: list[Message]) -> None:
        with pytest.raises(ReplayError, match="transaction"):
            apply(empty_image("c"), records, offset=1, epoch=1)


CONTRADICTIONS: list[Message] = [
    stored.TopicRecord(name="a", topic_id=uuid(2000)),
    stored.TopicRecord(name="b", topic_id=TOPIC),
    stored.PartitionRecord(partition_id=0, topic_id=uuid(2000)),
    stored.PartitionRecord(partition_id=5, topic_id=TOPIC, replicas=[1], isr=[1], leader=1),
    stored.PartitionRecord(partition_id=1, topic_id=TOPIC, replicas=[1, 2], directories=[uuid(5)]),
    stored.PartitionRecord(partition_id=1, topic_id=TOPIC, leader_recovery_state=7),
    stored.PartitionChangeRecord(partition_id=0, topic_id=uuid(2000)),
    stored.PartitionChangeRecord(partition_id=1, topic_id=TOPIC),
    stored.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=[]),
    stored.RemoveTopicRecord(topic_id=uuid(2000)),
    stored.ClearElrRecord(topic_name="b"),
    stored.FenceBrokerRecord(id=2, epoch=100),
    stored.FenceBrokerRecord(id=1, epoch=99),
    stored.UnfenceBrokerRecord(id=1, epoch=101),
    stored.UnregisterBrokerRecord(broker_id=1, broker_epoch=99),
    stored.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=100),
    stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=100, fenced=2),
    stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=100, in_controlled_shutdown=-1),
    stored.RegisterBrokerRecord(broker_id=3, end_points=[stored.BrokerEndpoint(security_protocol=9)]),
    stored.UnregisterControllerRecord(controller_id=3),
    stored.RemoveAccessControlEntryRecord(id=uuid(7)),
    stored.ZkMigrationStateRecord(zk_migration_state=2),
]


@pytest.mark.parametrize("record", CONTRADICTIONS, ids=lambda record: type(record).__name__)
def test_a_record_that_contradicts_the_others_is_refused(record: Message) -> None:
    image: MetadataImage = image_of(broker(1), topic("a", TOPIC, partition([1])))
    with pytest.raises(ReplayError):
        after(image, record)
