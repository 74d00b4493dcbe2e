"""Reassignments and wished-for elections in clusters of several brokers.

What one broker's controller refuses, and in which words, stands in the oracle.
"""

from collections.abc import Sequence

import pytest

from broker.controller.elections import Election, TopicRules
from broker.controller.reassignments import (
    Reassignment,
    alter_reassignments,
    elect_leader,
    is_reassigning,
    under_way,
)
from broker.metadata.image import LeaderRecoveryState, MetadataImage, PartitionImage
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError
from protocol.schema import Message
from protocol.stored.metadata_records import ConfigRecord, PartitionRecord
from tests.broker.metadata.records import after, broker, directory, features, image_of, partition, topic, uuid

TOPIC = uuid(1000)
BROKERS = (1, 2, 3, 4)


def cluster(*partitions: PartitionRecord, fenced: Sequence[int] = ()) -> MetadataImage:
    brokers: list[Message] = [broker(number, fenced=number in fenced) for number in BROKERS]
    return image_of(features(), brokers, topic("t", TOPIC, *partitions))


def rules(image: MetadataImage, *, unclean: bool = False) -> TopicRules:
    return TopicRules(image, default_min_isr=1, default_unclean_election=unclean)


def only_partition(image: MetadataImage) -> PartitionImage:
    (one,) = image.topics["t"].partitions
    return one


def reassigned(
    image: MetadataImage, replicas: Sequence[int] | None, *, unclean: bool = False
) -> MetadataImage:
    wanted = [Reassignment("t", 0, replicas)]
    decision = alter_reassignments(image, wanted, rules(image, unclean=unclean))
    assert decision.reply == [None]
    return after(image, [record for record, _ in decision.records])


def refusal(
    image: MetadataImage, replicas: Sequence[int] | None, *, may_change_replication_factor: bool = True
) -> KafkaError:
    decision = alter_reassignments(
        image,
        [Reassignment("t", 0, replicas)],
        rules(image),
        may_change_replication_factor=may_change_replication_factor,
    )
    (error,) = decision.reply
    assert error is not None
    assert not decision.records
    return error


def test_newcomers_are_added_before_anybody_leaves() -> None:
    image = reassigned(cluster(partition([1, 2])), [3, 4])
    moving = only_partition(image)
    assert (moving.replicas, moving.isr, moving.leader) == ((3, 4, 1, 2), (1, 2), 1)
    assert (moving.adding_replicas, moving.removing_replicas) == ((3, 4), (1, 2))
    assert moving.directories == tuple(directory(number) for number in (3, 4, 1, 2))
    assert [(topic.name, index) for topic, index in under_way(image)] == [("t", 0)]


def test_who_is_in_sync_already_can_stay_alone_at_once() -> None:
    image = reassigned(cluster(partition([1, 2, 3])), [2])
    done = only_partition(image)
    assert (done.replicas, done.isr, done.leader) == ((2,), (2,), 2)
    assert not is_reassigning(done)


def test_another_order_changes_who_is_preferred_and_not_who_leads() -> None:
    done = only_partition(reassigned(cluster(partition([1, 2])), [2, 1]))
    assert (done.replicas, done.leader, is_reassigning(done)) == ((2, 1), 1, False)


def test_a_reassignment_to_where_everything_is_changes_nothing() -> None:
    image = cluster(partition([1, 2]))
    decision = alter_reassignments(image, [Reassignment("t", 0, [1, 2])], rules(image))
    assert (decision.records, decision.reply) == ([], [None])


def test_giving_up_brings_back_what_was() -> None:
    before = cluster(partition([1, 2]))
    image = reassigned(reassigned(before, [3, 4]), None)
    back, was = only_partition(image), only_partition(before)
    assert (back.replicas, back.isr, back.leader, back.directories) == (
        was.replicas,
        was.isr,
        was.leader,
        was.directories,
    )
    assert not is_reassigning(back)
    assert list(under_way(image)) == []


def test_giving_up_costs_an_unclean_election_when_only_newcomers_are_in_sync() -> None:
    moving = cluster(partition([3, 1], [3], leader=3, adding=[3], removing=[1]))
    error = refusal(moving, None)
    assert error.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "for t:0 because it would require an unclean leader election" in (error.message or "")
    back = only_partition(reassigned(moving, None, unclean=True))
    assert (back.replicas, back.isr, back.leader) == ((1,), (1,), 1)


def test_giving_up_may_make_an_eligible_replica_lead_without_what_the_newcomers_have() -> None:
    before = partition([3, 1, 2], [3], leader=3, elr=[2], adding=[3], removing=[1, 2])
    minimum = ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2")
    moving = after(cluster(before, fenced=[1]), [minimum])
    back = only_partition(reassigned(moving, None, unclean=True))
    assert (back.replicas, back.isr, back.leader) == ((1, 2), (2,), 2)
    assert back.leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_a_reassignment_can_be_changed_while_it_is_under_way() -> None:
    moving = only_partition(reassigned(reassigned(cluster(partition([1])), [2]), [1, 3]))
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((1, 3, 2), (3,), (2,))


def test_the_replication_factor_that_must_stay_is_that_of_the_end_of_a_reassignment() -> None:
    moving = reassigned(cluster(partition([1])), [2, 3])
    error = refusal(moving, [4], may_change_replication_factor=False)
    assert (error.code, error.message) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 2 to 1",
    )
    decision = alter_reassignments(
        moving, [Reassignment("t", 0, [3, 4])], rules(moving), may_change_replication_factor=False
    )
    assert decision.reply == [None]


def test_one_refusal_does_not_stop_the_others() -> None:
    image = cluster(partition([1]), partition([1]))
    wanted = [Reassignment("t", 0, [9]), Reassignment("t", 1, [2]), Reassignment("t", 2, [2])]
    decision = alter_reassignments(image, wanted, rules(image))
    assert [error and error.code for error in decision.reply] == [
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        None,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert len(decision.records) == 1


def leader_after(image: MetadataImage, election: Election) -> int:
    return only_partition(after(image, elect_leader(image, "t", 0, election, rules(image)))).leader


def test_the_preferred_replica_leads_when_it_is_asked_for() -> None:
    assert leader_after(cluster(partition([1, 2], leader=2)), Election.PREFERRED) == 1


def test_an_election_at_any_price_takes_whoever_is_alive() -> None:
    assert leader_after(cluster(partition([1, 2], [1], leader=-1), fenced=[1]), Election.UNCLEAN) == 2


@pytest.mark.parametrize(
    ("present", "fenced", "election", "code"),
    [
        (partition([1, 2]), [], Election.PREFERRED, ErrorCode.ELECTION_NOT_NEEDED),
        (partition([1, 2], leader=2), [], Election.UNCLEAN, ErrorCode.ELECTION_NOT_NEEDED),
        (partition([1, 2], leader=2), [1], Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (
            partition([1, 2], [1], leader=-1),
            [1, 2],
            Election.UNCLEAN,
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ),
    ],
)
def test_elections_that_lead_nowhere_say_why(
    present: PartitionRecord, fenced: list[int], election: Election, code: ErrorCode
) -> None:
    image = cluster(present, fenced=fenced)
    with pytest.raises(KafkaError) as refused:
        elect_leader(image, "t", 0, election, rules(image))
    assert refused.value.code == code
