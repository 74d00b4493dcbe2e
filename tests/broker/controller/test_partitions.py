"""Proposed in-sync sets: every verdict, in Kafka's order, and what follows from those that are accepted."""

from typing import Any

import pytest

from broker.controller.elections import TopicRules
from broker.controller.partitions import IsrMember, IsrProposal, Verdict, alter_partitions
from broker.metadata.image import LeaderRecoveryState, MetadataImage, PartitionImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.schema import Message
from protocol.stored.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.broker.metadata.records import after, broker, features, image_of, partition, topic, uuid

TOPIC = uuid(1000)
LEADER_EPOCH = 5
PARTITION_EPOCH = 7
RECOVERING = LeaderRecoveryState.RECOVERING


def cluster(*partitions: Message, elr: int = 1) -> MetadataImage:
    return image_of(
        features(elr=elr),
        broker(1),
        broker(2),
        broker(3),
        broker(4, fenced=True),
        topic("a", TOPIC, *(partitions or (partition([1, 2, 3, 4], [1, 2]),))),
    )


def proposal(members: list[int], **changes: Any) -> IsrProposal:
    isr = [IsrMember(member, 100) for member in members]
    return IsrProposal(TOPIC, 0, LEADER_EPOCH, PARTITION_EPOCH, isr)._replace(**changes)


def decide(
    image: MetadataImage, *proposals: IsrProposal, broker_id: int = 1, min_isr: int = 1
) -> tuple[list[Verdict], MetadataImage]:
    rules = TopicRules(image, default_min_isr=min_isr, default_unclean_election=False)
    decision = alter_partitions(image, broker_id, 100, proposals, rules)
    return decision.reply, after(image, [record for record, _ in decision.records])


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"topic_id": uuid(1001)}, ErrorCode.UNKNOWN_TOPIC_ID),
            ({"topic_id": bytes(16)}, ErrorCode.UNKNOWN_TOPIC_ID),
            ({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"leader_epoch": 6}, ErrorCode.NOT_CONTROLLER),
            ({"partition_epoch": 8}, ErrorCode.NOT_CONTROLLER),
            ({"leader_epoch": 4, "partition_epoch": 8}, ErrorCode.NOT_CONTROLLER),
            ({"leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"leader_epoch": 4, "partition_epoch": 6}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"partition_epoch": 6}, ErrorCode.INVALID_UPDATE_VERSION),
            ({"partition_epoch": 6, "isr": []}, ErrorCode.INVALID_UPDATE_VERSION),
            ({"isr": [IsrMember(1), IsrMember(5)]}, ErrorCode.INVALID_REQUEST),
            ({"isr": [IsrMember(1), IsrMember(1)]}, ErrorCode.INVALID_REQUEST),
            ({"isr": [IsrMember(2), IsrMember(3)]}, ErrorCode.INVALID_REQUEST),
            ({"isr": []}, ErrorCode.INVALID_REQUEST),
            ({"isr": [IsrMember(1)], "leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
            ({"isr": [IsrMember(1)], "leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
            ({"isr": [IsrMember(1), IsrMember(4)]}, ErrorCode.INELIGIBLE_REPLICA),
            ({"isr": [IsrMember(1), IsrMember(3, 99)]}, ErrorCode.INELIGIBLE_REPLICA),
        ],
    )
    def test_what_is_wrong_with_it(self, changes: dict[str, Any], code: ErrorCode) -> None:
        image = cluster()
        verdicts, then = decide(image, proposal([1, 2], **changes))
        assert verdicts == [code]
        assert then is image

    def test_who_does_not_lead(self) -> None:
        assert decide(cluster(), proposal([1, 2]), broker_id=2)[0] == [ErrorCode.INVALID_REQUEST]
        stale = proposal([1, 2], partition_epoch=6)
        assert decide(cluster(), stale, broker_id=2)[0] == [ErrorCode.INVALID_REQUEST]

    def test_a_broker_that_shuts_down(self) -> None:
        change = BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=100, in_controlled_shutdown=1)
        image = after(cluster(), change)
        assert decide(image, proposal([1, 2, 3]))[0] == [ErrorCode.INELIGIBLE_REPLICA]

    def test_one_that_is_not_registered(self) -> None:
        image = cluster(partition([1, 2, 9], [1, 2]))
        assert decide(image, proposal([1, 2, 9]))[0] == [ErrorCode.INELIGIBLE_REPLICA]

    def test_while_it_recovers_it_is_alone(self) -> None:
        image = after(
            cluster(), PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader_recovery_state=1, isr=[1])
        )
        both = proposal([1, 2], partition_epoch=8, leader_recovery_state=1)
        assert decide(image, both)[0] == [ErrorCode.INVALID_REQUEST]

    @pytest.mark.parametrize(("broker_id", "epoch"), [(1, 99), (9, 100)])
    def test_another_incarnation_says_nothing(self, broker_id: int, epoch: int) -> None:
        image = cluster()
        rules = TopicRules(image, default_min_isr=1, default_unclean_election=False)
        with pytest.raises(KafkaError) as raised:
            alter_partitions(image, broker_id, epoch, [proposal([1])], rules)
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


class TestAccepted:
    def test_a_larger_set(self) -> None:
        (verdict,), then = decide(cluster(), proposal([1, 2, 3]))
        assert isinstance(verdict, PartitionImage)
        assert verdict == then.topics["a"].partitions[0]
        assert (verdict.isr, verdict.leader_epoch, verdict.partition_epoch) == ((1, 2, 3), 5, 8)

    def test_a_smaller_set_leaves_the_leader_epoch_as_it_is(self) -> None:
        (verdict,), _ = decide(cluster(), proposal([1]))
        assert isinstance(verdict, PartitionImage)
        assert (verdict.isr, verdict.leader_epoch) == ((1,), 5)

    def test_the_same_set_changes_nothing(self) -> None:
        image = cluster()
        (verdict,), then = decide(image, proposal([1, 2]))
        assert verdict == image.topics["a"].partitions[0]
        assert then is image

    def test_members_without_an_epoch(self) -> None:
        (verdict,), _ = decide(cluster(), proposal([], isr=[IsrMember(1), IsrMember(3)]))
        assert isinstance(verdict, PartitionImage)
        assert verdict.isr == (1, 3)

    def test_each_on_its_own(self) -> None:
        image = cluster(partition([1, 2]), partition([1, 2]))
        verdicts, then = decide(image, proposal([1]), proposal([1, 9], partition=1))
        assert isinstance(verdicts[0], PartitionImage)
        assert verdicts[1] is ErrorCode.INVALID_REQUEST
        assert [found.isr for found in then.topics["a"].partitions] == [(1,), (1, 2)]

    def test_the_same_partition_twice(self) -> None:
        verdicts, then = decide(cluster(), proposal([1]), proposal([1, 2, 3]))
        assert isinstance(verdicts[0], PartitionImage)
        assert verdicts[1] is ErrorCode.INVALID_UPDATE_VERSION
        assert then.topics["a"].partitions[0].isr == (1,)

    def test_the_leader_has_recovered(self) -> None:
        image = after(
            cluster(), PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader_recovery_state=1, isr=[1])
        )
        (verdict,), _ = decide(image, proposal([1], partition_epoch=8))
        assert isinstance(verdict, PartitionImage)
        assert verdict.leader_recovery_state is LeaderRecoveryState.RECOVERED


class TestEligibleReplicas:
    def test_below_the_minimum_those_who_drop_out_stay_eligible(self) -> None:
        image = cluster(partition([1, 2, 3], [1, 2, 3]))
        (_,), then = decide(image, proposal([1]), min_isr=2)
        found = then.topics["a"].partitions[0]
        assert (found.isr, set(found.eligible_leader_replicas)) == ((1,), {2, 3})

    def test_with_enough_in_sync_nobody_else_is_eligible(self) -> None:
        image = cluster(partition([1, 2, 3], [1], elr=[2, 3]))
        (_,), then = decide(image, proposal([1, 3]), min_isr=2)
        found = then.topics["a"].partitions[0]
        assert (found.isr, found.eligible_leader_replicas) == ((1, 3), ())

    def test_without_the_feature_nobody_is(self) -> None:
        image = cluster(partition([1, 2, 3], [1, 2, 3]), elr=0)
        (_,), then = decide(image, proposal([1]), min_isr=2)
        assert then.topics["a"].partitions[0].eligible_leader_replicas == ()


class TestReassignments:
    def test_a_leader_that_stays_completes_it(self) -> None:
        image = cluster(partition([1, 3, 2], [1, 2], removing=[2], adding=[3]))
        (verdict,), _ = decide(image, proposal([1, 2, 3]))
        assert isinstance(verdict, PartitionImage)
        assert (verdict.replicas, verdict.isr) == ((1, 3), (1, 3))
        assert (verdict.removing_replicas, verdict.adding_replicas) == ((), ())
        assert (verdict.leader, verdict.leader_epoch) == (1, 6)

    def test_a_leader_that_leaves_is_told_so(self) -> None:
        image = cluster(partition([3, 2, 1], [1, 2], leader=1, removing=[1], adding=[3]))
        verdicts, then = decide(image, proposal([1, 2, 3]))
        assert verdicts == [ErrorCode.NEW_LEADER_ELECTED]
        found = then.topics["a"].partitions[0]
        assert (found.leader, found.replicas, found.isr) == (3, (3, 2), (2, 3))

    def test_it_goes_on_until_the_newcomers_are_in_sync(self) -> None:
        image = cluster(partition([3, 2, 1], [1, 2], leader=1, removing=[1], adding=[3]))
        (verdict,), _ = decide(image, proposal([1]))
        assert isinstance(verdict, PartitionImage)
        assert verdict.adding_replicas == (3,)
