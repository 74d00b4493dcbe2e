"""Directories of brokers: what a controller notes of assignments, failures and cordons."""

from typing import Any

import pytest

from broker.controller.decision import Decision
from broker.controller.directories import (
    Assignment,
    assign_replicas,
    cordon_directories,
    take_directories_offline,
)
from broker.controller.elections import TopicRules
from broker.metadata.image import MetadataImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from protocol.uuids import UNASSIGNED_DIRECTORY
from tests.broker.metadata.records import after, broker, directory, features, image_of, partition, topic, uuid

TOPIC = uuid(1000)
FIRST, SECOND = directory(1), directory(101)
EPOCH = 100


def cluster(*, elr: int = 1, level: int = 33) -> MetadataImage:
    """Broker 1 with two directories, of which the first has both partitions; broker 2 shares the second."""
    partitions = [partition([1]), partition([1, 2])]
    return image_of(
        features(level, elr=elr), broker(1, directories=2), broker(2), topic("t", TOPIC, *partitions)
    )


def rules(image: MetadataImage) -> TopicRules:
    return TopicRules(image, default_min_isr=1, default_unclean_election=False)


def applied(image: MetadataImage, decision: Decision[Any]) -> MetadataImage:
    return after(image, [record for record, _ in decision.records])


def assign(image: MetadataImage, *assignments: Assignment, epoch: int = EPOCH) -> Decision[Any]:
    return assign_replicas(image, 1, epoch, assignments, rules(image))


class TestAssignments:
    def test_kafka_s_record(self) -> None:
        image = cluster()
        decision = assign(image, Assignment(TOPIC, 0, SECOND))
        record = PartitionChangeRecord(partition_id=0, topic_id=TOPIC, directories=[SECOND])
        assert decision.records == [(record, 2)]
        changed = applied(image, decision).topics["t"].partitions[0]
        assert (changed.leader, changed.leader_epoch, changed.directories) == (1, 5, (SECOND,))

    def test_other_replicas_stay_where_they_are(self) -> None:
        image = cluster()
        changed = applied(image, assign(image, Assignment(TOPIC, 1, SECOND))).topics["t"].partitions[1]
        assert changed.directories == (SECOND, directory(2))

    def test_what_is_known_needs_no_record(self) -> None:
        decision = assign(cluster(), Assignment(TOPIC, 0, FIRST))
        assert (list(decision.records), decision.reply) == ([], [ErrorCode.NONE])

    def test_each_has_a_code_of_its_own(self) -> None:
        image = after(cluster(), topic("other", uuid(2000), partition([2])))
        decision = assign(
            image,
            Assignment(TOPIC, 0, SECOND),
            Assignment(uuid(3000), 0, SECOND),
            Assignment(TOPIC, 2, SECOND),
            Assignment(TOPIC, -1, SECOND),
            Assignment(uuid(2000), 0, SECOND),
        )
        assert len(decision.records) == 1
        assert decision.reply == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ]

    def test_what_goes_to_an_offline_directory_is_led_no_longer(self) -> None:
        image = cluster()
        changed = applied(
            image, assign(image, Assignment(TOPIC, 0, uuid(5000)), Assignment(TOPIC, 1, uuid(5000)))
        )
        alone, shared = changed.topics["t"].partitions
        assert (alone.leader, alone.isr, alone.eligible_leader_replicas) == (-1, (), (1,))
        assert (shared.leader, shared.isr) == (2, (2,))

    def test_what_comes_back_is_led_again(self) -> None:
        image = cluster()
        image = applied(image, assign(image, Assignment(TOPIC, 0, uuid(5000))))
        image = applied(image, assign(image, Assignment(TOPIC, 0, SECOND)))
        back = image.topics["t"].partitions[0]
        assert (back.leader, back.isr, back.directories) == (1, (1,), (SECOND,))

    @pytest.mark.parametrize(
        ("broker_id", "epoch", "code"),
        [(1, 99, ErrorCode.STALE_BROKER_EPOCH), (3, 100, ErrorCode.STALE_BROKER_EPOCH)],
    )
    def test_who_may_not_speak(self, broker_id: int, epoch: int, code: ErrorCode) -> None:
        image = cluster()
        with pytest.raises(KafkaError) as refused:
            assign_replicas(image, broker_id, epoch, [], rules(image))
        assert refused.value.code is code


class TestFailures:
    def test_kafka_s_records(self) -> None:
        """As seen when a directory of a node fails: the changes of its partitions, then what is left."""
        image = cluster()
        decision = take_directories_offline(image, 1, EPOCH, [FIRST], rules(image))
        alone = PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        )
        left = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=EPOCH, log_dirs=[SECOND])
        assert decision.records[0] == (alone, 2)
        assert decision.records[-1] == (left, 2)
        changed = applied(image, decision)
        assert changed.brokers[1].directories == (SECOND,)
        assert changed.topics["t"].partitions[1].leader == 2

    def test_without_eligible_replicas_the_last_one_stays_in_sync(self) -> None:
        image = cluster(elr=0)
        decision = take_directories_offline(image, 1, EPOCH, [FIRST], rules(image))
        alone = applied(image, decision).topics["t"].partitions[0]
        assert (alone.leader, alone.isr) == (-1, (1,))

    def test_what_lies_elsewhere_is_left_alone(self) -> None:
        image = cluster()
        decision = take_directories_offline(image, 1, EPOCH, [SECOND], rules(image))
        assert len(decision.records) == 1
        assert applied(image, decision).topics == image.topics

    def test_one_that_is_not_registered_is_no_news(self) -> None:
        image = cluster()
        assert list(take_directories_offline(image, 1, EPOCH, [uuid(5000)], rules(image)).records) == []


class TestCordons:
    def test_they_replace_those_before(self) -> None:
        image = cluster()
        first = cordon_directories(image, 1, EPOCH, [FIRST])
        record = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=EPOCH, cordoned_log_dirs=[FIRST])
        assert first.records == [(record, 3)]
        image = applied(image, first)
        assert image.brokers[1].cordoned_directories == (FIRST,)
        assert list(cordon_directories(image, 1, EPOCH, [FIRST]).records) == []
        image = applied(image, cordon_directories(image, 1, EPOCH, []))
        assert image.brokers[1].cordoned_directories == ()

    def test_older_levels_have_none(self) -> None:
        assert list(cordon_directories(cluster(level=29), 1, EPOCH, [FIRST]).records) == []


def test_an_unassigned_replica_is_online() -> None:
    image = cluster()
    changed = applied(image, assign(image, Assignment(TOPIC, 0, UNASSIGNED_DIRECTORY)))
    assert changed.topics["t"].partitions[0].leader == 1
