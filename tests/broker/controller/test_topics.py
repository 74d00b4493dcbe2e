"""Topics are made, grown and removed: what one request comes to in a cluster of several brokers.

What a lone broker answers, word by word, is in ``tests/broker/apis/test_topic_transcript.py``.
"""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from broker.controller.decision import RECORDS_MAX
from broker.controller.topics import (
    Growth,
    MadeTopic,
    NewTopic,
    TopicDefaults,
    create_partitions,
    create_topics,
    default_directory,
    delete_topics,
    usable_brokers,
)
from broker.metadata.image import MetadataImage
from broker.metadata.records import VersionedRecord
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.broker.metadata.records import after, broker, directory, features, image_of, partition, topic, uuid

BROKERS = image_of(features(), broker(1), broker(2), broker(3))
ONE_BROKER = image_of(features(), broker(1))


def check_settings(topic_name: str, settings: Mapping[str, str]) -> None:
    if "bad" in settings:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"bad in {topic_name}")


def defaults(partition_count: int = 2, replication_factor: int = 3) -> TopicDefaults:
    ids = iter(range(3000, 4000))
    return TopicDefaults(
        partition_count, replication_factor, check_settings, lambda: uuid(next(ids)), Random(1)
    )


def applied(image: MetadataImage, records: Sequence[VersionedRecord]) -> MetadataImage:
    return after(image, [record for record, _ in records])


class TestCreating:
    def test_the_records_in_their_order(self) -> None:
        wanted = [NewTopic("a", 1, 1, settings={"k": "v", "l": "w"}), NewTopic("b", 2, 1)]
        records, reply = create_topics(ONE_BROKER, wanted, defaults())
        assert [record for record, _ in records] == [
            TopicRecord(name="a", topic_id=uuid(3000)),
            ConfigRecord(resource_type=2, resource_name="a", name="k", value="v"),
            ConfigRecord(resource_type=2, resource_name="a", name="l", value="w"),
            PartitionRecord(
                partition_id=0,
                topic_id=uuid(3000),
                replicas=[1],
                isr=[1],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[directory(1)],
            ),
            TopicRecord(name="b", topic_id=uuid(3001)),
            *[
                PartitionRecord(
                    partition_id=index,
                    topic_id=uuid(3001),
                    replicas=[1],
                    isr=[1],
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[directory(1)],
                )
                for index in (0, 1)
            ],
        ]
        assert [version for _, version in records] == [0, 0, 0, 2, 0, 2, 2]
        assert reply == {"a": MadeTopic(uuid(3000), 1, 1), "b": MadeTopic(uuid(3001), 2, 1)}

    def test_counts_by_default(self) -> None:
        records, reply = create_topics(BROKERS, [NewTopic("a")], defaults())
        assert reply == {"a": MadeTopic(uuid(3000), 2, 3)}
        partitions = applied(BROKERS, records).topics["a"].partitions
        assert [len(each.replicas) for each in partitions] == [3, 3]
        assert [each.leader for each in partitions] == [each.replicas[0] for each in partitions]

    def test_one_bad_topic_does_not_hold_up_the_others(self) -> None:
        wanted = [NewTopic("a", 1, 4), NewTopic("b", 1, 1, settings={"bad": "1"}), NewTopic("c", 1, 1)]
        records, reply = create_topics(BROKERS, wanted, defaults())
        assert list(applied(BROKERS, records).topics) == ["c"]
        assert [getattr(result, "code", None) for result in reply.values()] == [
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.INVALID_CONFIG,
            None,
        ]

    def test_an_assignment_is_taken_as_it_is(self) -> None:
        wanted = NewTopic("a", assignments=[(1, [2, 3]), (0, [3, 1])])
        records, reply = create_topics(BROKERS, [wanted], defaults())
        assert reply == {"a": MadeTopic(uuid(3000), 2, 2)}
        partitions = applied(BROKERS, records).topics["a"].partitions
        assert [each.replicas for each in partitions] == [(3, 1), (2, 3)]

    def test_fenced_brokers_of_an_assignment_are_not_in_sync(self) -> None:
        image = image_of(features(), broker(1, fenced=True), broker(2))
        wanted = [NewTopic("a", assignments=[(0, [1, 2])]), NewTopic("b", assignments=[(0, [1])])]
        records, reply = create_topics(image, wanted, defaults())
        made = applied(image, records).topics["a"].partitions[0]
        assert (made.replicas, made.isr, made.leader) == ((1, 2), (2,), 2)
        refused = reply["b"]
        assert isinstance(refused, KafkaError)
        assert refused.message == (
            "All brokers specified in the manual partition assignment for partition 0 "
            "are fenced or in controlled shutdown."
        )

    def test_an_assigned_broker_takes_replicas(self) -> None:
        cordon = BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=100, cordoned_log_dirs=[directory(1)]
        )
        wanted = NewTopic("a", assignments=[(0, [1, 1])])
        refused = create_topics(after(BROKERS, cordon), [wanted], defaults()).reply["a"]
        assert isinstance(refused, KafkaError)
        assert refused.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert refused.message == (
            "The manual partition assignment includes broker 1, but all its log directories are cordoned."
        )

    def test_assignments_must_agree_on_the_number_of_replicas(self) -> None:
        wanted = NewTopic("a", assignments=[(0, [1, 2]), (1, [1])])
        refused = create_topics(BROKERS, [wanted], defaults()).reply["a"]
        assert isinstance(refused, KafkaError)
        assert refused.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert refused.message == (
            "The manual partition assignment includes a partition with 1 replica(s), but this is not "
            "consistent with previous partitions, which have 2 replica(s)."
        )

    def test_nobody_is_there(self) -> None:
        refused = create_topics(image_of(), [NewTopic("a", 1, 1)], defaults()).reply["a"]
        assert isinstance(refused, KafkaError)
        assert (
            refused.message
            == "Unable to replicate the partition 1 time(s): All brokers are currently fenced, "
            "or have all their log directories cordoned."
        )

    @pytest.mark.parametrize(
        "wanted",
        [
            [NewTopic("a", RECORDS_MAX + 1, 1)],
            [NewTopic("a", RECORDS_MAX, 1), NewTopic("b", 1, 1)],
            [NewTopic("a", RECORDS_MAX - 1, 1), NewTopic("b")],
            [NewTopic("a", assignments=[(index, [1]) for index in range(RECORDS_MAX + 1)])],
            [NewTopic("a", RECORDS_MAX, 1)],  # with the topic's own record it is one too many
        ],
    )
    def test_too_much_for_one_request(self, wanted: list[NewTopic]) -> None:
        with pytest.raises(KafkaError) as raised:
            create_topics(ONE_BROKER, wanted, defaults())
        assert raised.value.code is ErrorCode.POLICY_VIOLATION

    def test_bad_topics_do_not_count(self) -> None:
        wanted = [NewTopic("a", RECORDS_MAX - 1, 1), NewTopic("b", -5, 1)]
        assert len(create_topics(ONE_BROKER, wanted, defaults()).records) == RECORDS_MAX


class TestDirectories:
    def test_the_only_one_is_named_and_among_several_the_broker_chooses(self) -> None:
        image = image_of(broker(1), broker(2, directories=2), broker(3, directories=0))
        assert default_directory(image, 1) == directory(1)
        assert default_directory(image, 2) == uuid(1)
        assert default_directory(image, 3) == uuid(0)
        assert default_directory(image, 9) == uuid(1)

    def test_cordoned_ones_take_nothing(self) -> None:
        cordon = BrokerRegistrationChangeRecord(
            broker_id=2, broker_epoch=100, cordoned_log_dirs=[directory(2)]
        )
        image = after(image_of(broker(1), broker(2, directories=2)), cordon)
        assert default_directory(image, 2) == uuid(1)  # the broker knows best
        assert [usable.id for usable in usable_brokers(image)] == [1, 2]
        cordon.cordoned_log_dirs = [directory(2), directory(102)]
        assert [usable.id for usable in usable_brokers(after(image, cordon))] == [1]


class TestGrowing:
    IMAGE = after(
        BROKERS,
        topic("a", uuid(1000), partition([1, 2]), partition([2, 3])),
        topic("b", uuid(1001), partition([1])),
    )

    def test_new_partitions_have_as_many_replicas_as_the_first(self) -> None:
        records, reply = create_partitions(self.IMAGE, [Growth("a", 5)], Random(1))
        assert reply == {"a": None}
        partitions = applied(self.IMAGE, records).topics["a"].partitions
        assert [len(each.replicas) for each in partitions] == [2] * 5
        assert partitions[:2] == self.IMAGE.topics["a"].partitions

    def test_where_they_differ_the_one_counts_that_kafka_finds_first(self) -> None:
        image = after(
            BROKERS, topic("a", uuid(1000), partition([1, 2]), partition([1, 2]), partition([1, 2, 3]))
        )
        assert create_partitions(image, [Growth("a", 4, [[3, 2, 1]])], Random(1)).reply == {"a": None}
        refused = create_partitions(image, [Growth("a", 4, [[3, 2]])], Random(1)).reply["a"]
        assert refused is not None
        assert "previous partitions, which have 3 replica(s)" in (refused.message or "")

    def test_an_assignment(self) -> None:
        records, _ = create_partitions(self.IMAGE, [Growth("a", 3, [[3, 1]])], Random(1))
        assert applied(self.IMAGE, records).topics["a"].partitions[2].replicas == (3, 1)

    def test_an_assignment_with_another_number_of_replicas(self) -> None:
        error = create_partitions(self.IMAGE, [Growth("a", 3, [[3]])], Random(1)).reply["a"]
        assert error is not None
        assert error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def test_one_bad_topic_does_not_hold_up_the_others(self) -> None:
        records, reply = create_partitions(self.IMAGE, [Growth("a", 1), Growth("b", 2)], Random(1))
        assert reply["a"] is not None
        assert reply["b"] is None
        assert len(records) == 1

    def test_too_much_for_one_request(self) -> None:
        wanted = [Growth("a", RECORDS_MAX + 2), Growth("b", 2)]
        with pytest.raises(KafkaError, match="Excessively large number of additional partitions"):
            create_partitions(self.IMAGE, wanted, Random(1))


def test_deleting() -> None:
    image = after(BROKERS, topic("a", uuid(1000), partition([1])))
    records, reply = delete_topics(image, [uuid(1000), uuid(1001)])
    assert [record for record, _ in records] == [RemoveTopicRecord(topic_id=uuid(1000))]
    assert reply[uuid(1000)] is None
    refused = reply[uuid(1001)]
    assert refused is not None
    assert refused.code is ErrorCode.UNKNOWN_TOPIC_ID
