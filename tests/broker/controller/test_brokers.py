"""Registrations: who may register, and what the end and the start of a broker change."""

import pytest

from broker.controller.brokers import (
    Registration,
    fence_broker,
    register_broker,
    register_controller,
    restart_broker,
    stop_only_broker,
    unfence_broker,
)
from broker.controller.decision import Decision
from broker.controller.elections import TopicRules
from broker.metadata.features import SUPPORTED_FEATURES
from broker.metadata.image import Endpoint, LeaderRecoveryState, MetadataImage, PartitionImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.stored.metadata_records import PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord
from tests.broker.metadata.records import after, broker, directory, features, image_of, partition, topic, uuid

TOPIC = uuid(1000)
PLAINTEXT = Endpoint("PLAINTEXT", "broker1", 9092)


def registration(
    broker_id: int = 1, *, previous_epoch: int = -1, incarnation: int = 555, **changes: object
) -> Registration:
    made = Registration(
        broker_id=broker_id,
        cluster_id="cluster",
        incarnation_id=uuid(incarnation),
        endpoints=[PLAINTEXT],
        features=SUPPORTED_FEATURES,
        rack="r",
        directories=[directory(broker_id)],
        previous_epoch=previous_epoch,
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def rules(image: MetadataImage) -> TopicRules:
    return TopicRules(image, default_min_isr=1, default_unclean_election=False)


def applied(image: MetadataImage, decision: Decision[int] | Decision[None]) -> MetadataImage:
    return after(image, [record for record, _ in decision.records])


def unsupported(level: int, feature: str, low: int, high: int) -> str:
    return (
        f"Unable to register because the broker does not support finalized version {level} of {feature}. "
        f"The broker wants a version between {low} and {high}, inclusive."
    )


class TestRegistering:
    def test_a_new_broker_is_fenced_and_its_epoch_is_the_offset(self) -> None:
        image = image_of(features())
        decision = register_broker(image, registration(), rules(image))
        made = applied(image, decision).brokers[1]
        assert decision.reply == made.epoch == image.offset + 1
        assert made.fenced
        assert (made.endpoints, made.rack, made.directories) == ((PLAINTEXT,), "r", (directory(1),))
        assert made.features == SUPPORTED_FEATURES

    @pytest.mark.parametrize(("level", "version"), [(25, 3), (29, 3), (30, 4), (33, 4)])
    def test_the_version_of_the_record(self, level: int, version: int) -> None:
        image = image_of(features(level))
        assert register_broker(image, registration(), rules(image)).records[-1][1] == version

    def test_the_same_incarnation_keeps_its_epoch_and_state(self) -> None:
        image = image_of(features(), broker(1), topic("a", TOPIC, partition([1])))
        again = registration(incarnation_id=image.brokers[1].incarnation_id, rack="other")
        decision = register_broker(image, again, rules(image))
        assert len(decision.records) == 1
        made = applied(image, decision).brokers[1]
        assert (made.epoch, made.fenced, made.rack) == (100, False, "other")

    def test_a_new_incarnation_leaves_its_partitions_first(self) -> None:
        image = image_of(
            features(), broker(1), broker(2), topic("a", TOPIC, partition([1, 2]), partition([1]))
        )
        decision = register_broker(image, registration(previous_epoch=100), rules(image))
        shared, alone = applied(image, decision).topics["a"].partitions
        assert (shared.leader, shared.isr) == (2, (2,))
        assert (alone.leader, alone.isr, alone.eligible_leader_replicas) == (-1, (), (1,))

    def test_after_an_unclean_stop_it_is_not_eligible(self) -> None:
        image = image_of(features(), broker(1), topic("a", TOPIC, partition([1])))
        alone = applied(image, register_broker(image, registration(), rules(image))).topics["a"].partitions[0]
        assert (alone.leader, alone.isr) == (-1, ())
        assert (alone.eligible_leader_replicas, alone.last_known_elr) == ((), (1,))

    @pytest.mark.parametrize(
        ("changes", "code", "text"),
        [
            (
                {"cluster_id": "other"},
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                "Expected cluster ID cluster, but got cluster ID other",
            ),
            ({"directories": []}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
            (
                {"directories": [uuid(1)]},
                ErrorCode.INVALID_REGISTRATION,
                "Reserved directory ID in request",
            ),
            (
                {"directories": [directory(1)] * 2},
                ErrorCode.INVALID_REGISTRATION,
                "Duplicate directory ID in request",
            ),
            (
                {"directories": [directory(2)]},
                ErrorCode.INVALID_REGISTRATION,
                "Broker 2 is already registered with directory AAAAAAAAAAAAAAAAAAAnEg",
            ),
            (
                {"features": {**SUPPORTED_FEATURES, "metadata.version": (25, 32)}},
                ErrorCode.UNSUPPORTED_VERSION,
                unsupported(33, "metadata.version", 25, 32),
            ),
            (
                {"features": {"metadata.version": (25, 33)}},
                ErrorCode.UNSUPPORTED_VERSION,
                unsupported(1, "eligible.leader.replicas.version", 0, 0),
            ),
        ],
    )
    def test_refusals(self, changes: dict[str, object], code: ErrorCode, text: str) -> None:
        image = image_of(features(), broker(2))
        with pytest.raises(KafkaError) as raised:
            register_broker(image, registration(**changes), rules(image))  # type: ignore[arg-type]
        assert (raised.value.code, raised.value.message) == (code, text)


class TestRestartOfTheControllersOwnBroker:
    def restarted(
        self, image: MetadataImage, **how: object
    ) -> tuple[MetadataImage, list[PartitionChangeRecord]]:
        decision = restart_broker(image, registration(**how), rules(image))  # type: ignore[arg-type]
        made = applied(image, decision)
        assert decision.reply == made.brokers[1].epoch == image.offset + 1
        assert made.brokers[1].is_active
        changes = [record for record, _ in decision.records if isinstance(record, PartitionChangeRecord)]
        return made, changes

    def test_the_first_start(self) -> None:
        made, changes = self.restarted(image_of(features()))
        assert changes == []
        assert made.brokers[1].cordoned_directories == ()

    def test_before_level_30_nothing_is_said_of_cordoned_directories(self) -> None:
        made, _ = self.restarted(image_of(features(29)))
        assert made.brokers[1].cordoned_directories is None

    def test_after_a_clean_stop_its_own_partitions_are_as_they_were(self) -> None:
        image = image_of(
            features(), broker(1, fenced=True), topic("a", TOPIC, partition([1]), partition([1]))
        )
        made, changes = self.restarted(image, previous_epoch=100)
        assert changes == []
        assert made.topics == image.topics

    def test_after_an_unclean_stop_a_new_leader_epoch_begins(self) -> None:
        image = image_of(features(), broker(1), topic("a", TOPIC, partition([1])))
        made, changes = self.restarted(image)
        assert len(changes) == 1
        alone = made.topics["a"].partitions[0]
        assert alone == image.topics["a"].partitions[0]._replace(leader_epoch=6, partition_epoch=8)

    def test_a_marker_of_another_epoch_is_an_unclean_stop(self) -> None:
        image = image_of(features(), broker(1), topic("a", TOPIC, partition([1])))
        assert len(self.restarted(image, previous_epoch=99)[1]) == 1

    def test_what_kafka_left_leaderless_is_led_again(self) -> None:
        left_by_kafka = partition([1], [], leader=-1, elr=[1], last_known_elr=[1])
        image = image_of(features(), broker(1, fenced=True), topic("a", TOPIC, left_by_kafka))
        made, changes = self.restarted(image, previous_epoch=100)
        assert len(changes) == 1
        assert made.topics["a"].partitions[0] == PartitionImage(
            replicas=(1,), isr=(1,), leader=1, leader_epoch=6, partition_epoch=8, directories=(directory(1),)
        )

    @pytest.mark.parametrize("previous_epoch", [100, -1])
    @pytest.mark.parametrize(
        "left",
        [
            partition([1], [], leader=-1, elr=[1], last_known_elr=[1]),
            partition([1], [], leader=-1, last_known_elr=[1]),
            partition([1], [], leader=-1),
            partition([1], leader=-1),
        ],
    )
    def test_its_only_replicas_it_leads_whatever_state_they_were_left_in(
        self, left: PartitionRecord, previous_epoch: int
    ) -> None:
        image = image_of(features(), broker(1, fenced=True), topic("a", TOPIC, left))
        made, _ = self.restarted(image, previous_epoch=previous_epoch)
        assert made.topics["a"].partitions[0] == PartitionImage(
            replicas=(1,), isr=(1,), leader=1, leader_epoch=6, partition_epoch=8, directories=(directory(1),)
        )

    def test_a_recovery_that_was_not_finished_is(self) -> None:
        left = partition([1])
        left.leader_recovery_state = 1
        image = image_of(features(), broker(1, fenced=True), topic("a", TOPIC, left))
        made, _ = self.restarted(image, previous_epoch=100)
        recovered = made.topics["a"].partitions[0]
        assert recovered.leader_recovery_state is LeaderRecoveryState.RECOVERED
        assert recovered.leader_epoch == 5

    def test_what_lies_in_a_directory_that_is_gone_is_offline(self) -> None:
        image = image_of(features(), broker(1), topic("a", TOPIC, partition([1])))
        made, _ = self.restarted(image, previous_epoch=100, directories=[uuid(4711)])
        assert made.topics["a"].partitions[0].leader == -1

    def test_without_eligible_replicas_an_in_sync_one_leads_again(self) -> None:
        image = image_of(
            features(elr=0), broker(1, fenced=True), topic("a", TOPIC, partition([1], leader=-1))
        )
        for previous_epoch in (100, -1):
            made, _ = self.restarted(image, previous_epoch=previous_epoch)
            assert made.topics["a"].partitions[0].leader == 1

    def test_shared_partitions_go_to_the_others(self) -> None:
        image = image_of(features(), broker(1), broker(2), topic("a", TOPIC, partition([1, 2])))
        made, _ = self.restarted(image)
        shared = made.topics["a"].partitions[0]
        assert (shared.leader, shared.isr) == (2, (2,))


class TestFencing:
    IMAGE = image_of(features(), broker(1), broker(2), topic("a", TOPIC, partition([1, 2])))

    def test_a_fenced_broker_leads_nothing(self) -> None:
        made = applied(self.IMAGE, fence_broker(self.IMAGE, 1, 100, rules(self.IMAGE)))
        assert made.brokers[1].fenced
        assert made.topics["a"].partitions[0].leader == 2

    def test_an_unfenced_one_leads_what_nobody_leads(self) -> None:
        alone = image_of(features(), broker(1, fenced=True), topic("a", TOPIC, partition([1], leader=-1)))
        made = applied(alone, unfence_broker(alone, 1, 100, rules(alone)))
        assert made.topics["a"].partitions[0].leader == 1

    def test_stopping_the_cluster_s_only_broker_leaves_partitions_alone(self) -> None:
        made = applied(self.IMAGE, stop_only_broker(self.IMAGE, 1, 100))
        assert made.brokers[1].fenced
        assert made.topics == self.IMAGE.topics

    def test_only_the_present_incarnation_counts(self) -> None:
        with pytest.raises(KafkaError) as raised:
            fence_broker(self.IMAGE, 1, 99, rules(self.IMAGE))
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH
        with pytest.raises(KafkaError) as raised:
            unfence_broker(self.IMAGE, 3, 99, rules(self.IMAGE))
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_registering_a_controller() -> None:
    image = image_of(features())
    endpoint = Endpoint("CONTROLLER", "127.0.0.1", 9093)
    made = applied(image, register_controller(image, 3, uuid(5), [endpoint], SUPPORTED_FEATURES))
    assert made.controllers[3] == (3, uuid(5), (endpoint,), SUPPORTED_FEATURES, False)


def test_registrations_are_written_for_every_kafka_that_may_read_them() -> None:
    image = image_of(features())
    record = register_broker(image, registration(), rules(image)).records[-1][0]
    assert isinstance(record, RegisterBrokerRecord)
    assert record.cordoned_log_dirs is None
    assert not record.is_migrating_zk_broker
