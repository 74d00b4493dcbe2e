"""Who leads and who is in sync: rule by rule, and held against what Kafka's own controller wrote."""

from collections.abc import Callable, Sequence

import pytest

from broker.controller.brokers import Registration, fence_broker, register_broker, unfence_broker
from broker.controller.elections import (
    ClusterRules,
    Election,
    TopicRules,
    Wish,
    broker_changes,
    change_partition,
    partitions_with,
)
from broker.metadata.image import (
    Endpoint,
    LeaderRecoveryState,
    MetadataImage,
    PartitionImage,
    SecurityProtocol,
)
from broker.metadata.records import VersionedRecord
from broker.metadata.replay import Replay, changed_partition
from broker.raft.batches import read_metadata_batch
from protocol.schema import Message
from protocol.stored.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    encode_metadata_record,
)
from tests.broker.metadata.golden import LOGS, golden_batches
from tests.broker.metadata.records import (
    broker,
    directory,
    features,
    image_of,
    partition,
    topic,
    uuid,
)

TOPIC = uuid(1000)


def rules_of(image: MetadataImage) -> TopicRules:
    return TopicRules(image, default_min_isr=1, default_unclean_election=False)


# Against Kafka


def decided_by_us(image: MetadataImage, theirs: Sequence[Message]) -> Sequence[VersionedRecord] | None:
    """What we make of the event that made Kafka write a batch; None if it was none of ours, or several."""
    rules = rules_of(image)
    events = [r for r in theirs if isinstance(r, BrokerRegistrationChangeRecord) and not r.cordoned_log_dirs]
    if len({record.broker_id for record in events}) > 1:
        return None
    for record in theirs:
        if isinstance(record, RegisterBrokerRecord):
            known = image.brokers.get(record.broker_id)
            was_clean = not any(
                isinstance(other, PartitionChangeRecord) and other.isr is None for other in theirs
            )
            registration = Registration(
                broker_id=record.broker_id,
                cluster_id=image.cluster_id,
                incarnation_id=record.incarnation_id,
                endpoints=[
                    Endpoint(point.name, point.host, point.port, SecurityProtocol(point.security_protocol))
                    for point in record.end_points
                ],
                features={
                    f.name: (f.min_supported_version, f.max_supported_version) for f in record.features
                },
                rack=record.rack,
                directories=record.log_dirs,
                previous_epoch=known.epoch if known is not None and was_clean else -1,
            )
            return register_broker(image, registration, rules).records
        if isinstance(record, BrokerRegistrationChangeRecord):
            broker_id, epoch = record.broker_id, record.broker_epoch
            if record.fenced == -1:
                return unfence_broker(image, broker_id, epoch, rules).records
            if record.fenced == 1:
                return fence_broker(image, broker_id, epoch, rules).records
            if record.in_controlled_shutdown:
                changes = broker_changes(image, partitions_with(image, broker_id), rules, leaving=broker_id)
                return [(record, 1), *changes]
    return None


@pytest.mark.parametrize(("log", "events"), [("one_node", 9), ("three_brokers", 16), ("level_25", 9)])
def test_the_records_are_those_of_kafka_s_controller(log: str, events: int) -> None:
    assert log in LOGS
    compared = 0
    replay: Replay | None = None
    for batch in golden_batches(log):
        replay = replay or Replay(image_of(cluster_id="cluster"))
        if batch.is_control:
            replay.skip_to(batch.last_offset, batch.partition_leader_epoch, 0)
            continue
        theirs = read_metadata_batch(batch)
        replay.publish()
        ours = decided_by_us(replay.image, theirs)
        if ours is not None:
            compared += 1
            # Kafka sends what is cordoned along with the unfencing, in a record of its own.
            expected = [
                stored.value or b""
                for stored, record in zip(batch.records(), theirs, strict=True)
                if not isinstance(record, BrokerRegistrationChangeRecord) or record.cordoned_log_dirs is None
            ]
            # It walks through hash tables, so the order of partitions says nothing.
            encoded = [encode_metadata_record(record, version) for record, version in ours]
            assert sorted(encoded) == sorted(expected), batch.base_offset
        replay.apply(theirs, offset=batch.last_offset, epoch=batch.partition_leader_epoch)
    assert compared == events


def _is_active(image: MetadataImage) -> Callable[[int, PartitionImage], bool]:
    return lambda replica, _: image.brokers[replica].is_active


def test_in_sync_sets_that_kafka_s_leaders_proposed_come_out_the_same() -> None:
    compared = 0
    replay = Replay(image_of(cluster_id="cluster"))
    for batch in golden_batches("three_brokers"):
        if batch.is_control:
            continue
        records = read_metadata_batch(batch)
        replay.publish()
        image = replay.image
        is_proposal = all(isinstance(record, PartitionChangeRecord) for record in records)
        for record in records if is_proposal else ():
            if not isinstance(record, PartitionChangeRecord) or record.isr is None:
                continue
            found = image.topics_by_id[record.topic_id]
            partition = found.partitions[record.partition_id]
            rules = ClusterRules(_is_active(image), rules_of(image).min_isr(found), elr_enabled=True)
            wish = Wish(isr=record.isr)
            ours = change_partition(record.topic_id, record.partition_id, partition, wish, rules)
            assert ours == record, batch.base_offset
            compared += 1
        replay.apply(records, offset=batch.last_offset, epoch=batch.partition_leader_epoch)
    assert compared >= 8


# Rule by rule


def image(*partitions: Message, elr: int = 1, min_isr: int = 1) -> MetadataImage:
    setting = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=str(min_isr))
    return image_of(
        features(elr=elr), [broker(1), broker(2), broker(3)], topic("a", TOPIC, *partitions), setting
    )


def changed(
    before: MetadataImage, *, alive: Sequence[int] = (1, 2, 3), min_isr: int = 1, **wish: object
) -> PartitionImage:
    """The first partition after a wish came true."""
    partition_before = before.topics["a"].partitions[0]
    rules = ClusterRules(
        lambda replica, _: replica in alive, min_isr, before.eligible_leader_replicas_enabled
    )
    record = change_partition(TOPIC, 0, partition_before, Wish(**wish), rules)  # type: ignore[arg-type]
    return partition_before if record is None else changed_partition(partition_before, record)


class TestElections:
    def test_nothing_to_do_writes_nothing(self) -> None:
        before = image(partition([1, 2]))
        assert changed(before) is before.topics["a"].partitions[0]

    def test_a_leader_that_may_lead_stays(self) -> None:
        assert changed(image(partition([1, 2, 3], leader=2))).leader == 2

    def test_else_the_first_in_sync_replica_leads(self) -> None:
        after = changed(image(partition([1, 2, 3], [3, 2], leader=1)), alive=[2, 3])
        assert (after.leader, after.leader_epoch, after.isr) == (2, 6, (3, 2))

    def test_nobody_leads_when_no_in_sync_replica_is_alive(self) -> None:
        assert changed(image(partition([1, 2, 3], [1])), alive=[2, 3]).leader == -1

    def test_the_preferred_replica_takes_over(self) -> None:
        before = image(partition([1, 2], leader=2))
        assert changed(before, election=Election.PREFERRED).leader == 1
        assert changed(before, election=Election.PREFERRED, alive=[2]).leader == 2

    def test_the_preferred_replica_must_be_in_sync(self) -> None:
        assert changed(image(partition([1, 2], [2])), election=Election.PREFERRED).leader == 2

    def test_an_unclean_election_takes_any_that_is_alive(self) -> None:
        after = changed(image(partition([1, 2, 3], [1])), alive=[2, 3], election=Election.UNCLEAN)
        assert (after.leader, after.isr) == (2, (2,))
        assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING

    def test_an_unclean_election_prefers_a_clean_one(self) -> None:
        after = changed(image(partition([1, 2, 3], [1, 3])), alive=[2, 3], election=Election.UNCLEAN)
        assert (after.leader, after.isr) == (3, (1, 3))
        assert after.leader_recovery_state is LeaderRecoveryState.RECOVERED

    def test_an_unclean_election_of_an_eligible_replica_is_one_all_the_same(self) -> None:
        before = image(partition([1, 2], [1], leader=-1, elr=[2]))
        after = changed(before, alive=[2], min_isr=2, election=Election.UNCLEAN)
        assert (after.leader, after.isr, after.eligible_leader_replicas) == (2, (2,), ())
        assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING


class TestInSyncSets:
    def test_shrinking_does_not_touch_the_leader_epoch(self) -> None:
        after = changed(image(partition([1, 2, 3])), isr=[1, 2])
        assert (after.isr, after.leader_epoch, after.partition_epoch) == ((1, 2), 5, 8)

    def test_losing_a_replica_begins_a_new_leadership(self) -> None:
        after = changed(image(partition([1, 2, 3])), replicas=[1, 2], isr=[1, 2])
        assert (after.replicas, after.leader, after.leader_epoch) == ((1, 2), 1, 6)
        assert after.directories == (directory(1), directory(2))

    def test_below_the_minimum_those_who_leave_stay_eligible(self) -> None:
        after = changed(image(partition([1, 2, 3])), isr=[1], min_isr=2)
        assert (after.isr, after.eligible_leader_replicas) == ((1,), (2, 3))

    def test_those_who_are_eligible_stand_in_kafka_s_order(self) -> None:
        after = changed(image(partition([1, 2, 3], [2, 1], elr=[3], leader=2)), isr=[2], min_isr=3)
        assert after.eligible_leader_replicas == (1, 3)

    def test_the_minimum_reached_again_clears_them(self) -> None:
        after = changed(image(partition([1, 2, 3], [1], elr=[2, 3])), isr=[1, 2], min_isr=2)
        assert (after.isr, after.eligible_leader_replicas) == ((1, 2), ())

    def test_the_set_may_become_empty(self) -> None:
        after = changed(image(partition([1, 2], [1])), isr=[], alive=[2])
        assert (after.isr, after.leader) == ((), -1)
        assert (after.eligible_leader_replicas, after.last_known_elr) == ((1,), (1,))

    def test_an_eligible_replica_leads_an_empty_set(self) -> None:
        before = image(partition([1, 2, 3], [], leader=-1, elr=[2, 3], last_known_elr=[1]))
        after = changed(before, alive=[3], min_isr=2)
        assert (after.leader, after.isr) == (3, (3,))
        assert (after.eligible_leader_replicas, after.last_known_elr) == ((2,), ())

    def test_those_who_lost_records_are_not_eligible(self) -> None:
        after = changed(image(partition([1, 2, 3])), isr=[1], min_isr=2, unclean_shutdown=frozenset((2,)))
        assert after.eligible_leader_replicas == (3,)

    def test_the_last_leader_is_the_best_there_is(self) -> None:
        after = changed(image(partition([1, 2], [], leader=-1, last_known_elr=[2])))
        assert (after.leader, after.isr, after.last_known_elr) == (2, (2,), ())
        assert after.leader_recovery_state is LeaderRecoveryState.RECOVERING

    @pytest.mark.parametrize("known", [(2,), (1, 2), ()])
    def test_unless_it_is_not_there_or_not_known(self, known: Sequence[int]) -> None:
        after = changed(image(partition([1, 2], [], leader=-1, last_known_elr=known)), alive=[1])
        assert (after.leader, after.last_known_elr) == (-1, tuple(known))

    def test_it_is_remembered_while_others_are_in_sync_who_cannot_lead(self) -> None:
        after = changed(image(partition([1, 2])), isr=[2], alive=[])
        assert (after.leader, after.isr, after.last_known_elr) == (-1, (2,), (1,))

    def test_who_has_no_replica_any_more_does_not_lead(self) -> None:
        """Kafka's controller falls over it."""
        before = image_of(
            features(),
            [broker(1), broker(2)],
            topic("a", TOPIC, partition([2], [], leader=-1, last_known_elr=[1])),
        )
        found = before.topics["a"]
        assert list(broker_changes(before, [(found, 0)], rules_of(before), arriving=1)) == []

    def test_without_the_feature_the_last_one_stays_in_sync(self) -> None:
        after = changed(image(partition([1, 2], [1]), elr=0), isr=[], alive=[2])
        assert (after.isr, after.leader, after.eligible_leader_replicas) == ((1,), -1, ())

    def test_turned_off_the_feature_leaves_nothing(self) -> None:
        after = changed(image(partition([1, 2], [1], elr=[2]), elr=0), isr=[1])
        assert after.eligible_leader_replicas == ()


class TestReassignment:
    def test_it_ends_when_all_that_stay_are_in_sync(self) -> None:
        before = image(partition([3, 2, 1], [1, 2], removing=[1], adding=[3]))
        after = changed(before, isr=[1, 2, 3])
        assert (after.replicas, after.isr) == ((3, 2), (2, 3))
        assert (after.removing_replicas, after.adding_replicas) == ((), ())
        assert (after.leader, after.leader_epoch) == (3, 6)

    def test_it_goes_on_until_then(self) -> None:
        before = image(partition([3, 2, 1], [1, 2], removing=[1], adding=[3]))
        assert changed(before, isr=[1]).removing_replicas == (1,)

    def test_with_as_many_newcomers_as_leave_the_others_need_not_be_in_sync(self) -> None:
        before = image(partition([3, 2, 1], [1], removing=[1], adding=[3]))
        after = changed(before, isr=[1, 3])
        assert (after.replicas, after.isr) == ((3, 2), (3,))

    def test_with_fewer_newcomers_they_must(self) -> None:
        before = image(partition([3, 2, 1], [1], removing=[2, 1], adding=[3]))
        assert changed(before, isr=[1, 3]).replicas == (3,)
        fewer = image(partition([2, 3, 1], [1, 2], removing=[1]))
        assert changed(fewer, isr=[1, 2]).replicas == (2, 3, 1)
        assert changed(fewer, isr=[1, 2, 3]).replicas == (2, 3)

    def test_who_is_to_leave_before_it_has_come_is_not_waited_for(self) -> None:
        """Kafka waits for it without end."""
        before = image(partition([3, 2, 1], [1], removing=[2, 1], adding=[2]))
        assert changed(before, isr=[1, 3]).replicas == (3,)

    def test_new_replicas_and_their_directories(self) -> None:
        after = changed(image(partition([1, 2])), replicas=[1, 2, 3], adding=[3], directories={3: uuid(5)})
        assert after.replicas == (1, 2, 3)
        assert after.directories == (directory(1), directory(2), uuid(5))
        assert (after.leader_epoch, after.adding_replicas) == (5, (3,))


class TestTopicRules:
    def test_settings_of_topic_cluster_and_broker_in_this_order(self) -> None:
        made = image_of(
            [broker(1), broker(2), broker(3)],
            topic("a", TOPIC, partition([1, 2, 3])),
            topic("b", uuid(1001), partition([1, 2, 3])),
            ConfigRecord(resource_type=2, resource_name="a", name="min.insync.replicas", value="3"),
            ConfigRecord(
                resource_type=2, resource_name="a", name="unclean.leader.election.enable", value="true"
            ),
        )
        rules = TopicRules(made, default_min_isr=2, default_unclean_election=False)
        first, second = made.topics["a"], made.topics["b"]
        assert (rules.min_isr(first), rules.election(first)) == (3, Election.UNCLEAN)
        assert (rules.min_isr(second), rules.election(second)) == (2, Election.ONLINE)
        cluster = [
            ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
            ConfigRecord(
                resource_type=4, resource_name="", name="unclean.leader.election.enable", value="true"
            ),
        ]
        made = image_of(topic("b", uuid(1001), partition([1, 2, 3])), cluster)
        rules = TopicRules(made, default_min_isr=2, default_unclean_election=False)
        second = made.topics["b"]
        assert (rules.min_isr(second), rules.election(second)) == (1, Election.UNCLEAN)

    @pytest.mark.parametrize(("text", "unclean"), [("TRUE", True), ("True", True), (" true", False)])
    def test_how_the_words_are_read(self, text: str, unclean: bool) -> None:
        """As Kafka's controller does: it would fall over the blanks of a number."""
        for kind, resource in ((2, "a"), (4, "")):
            made = image_of(
                [broker(1), broker(2)],
                topic("a", TOPIC, partition([1, 2])),
                ConfigRecord(
                    resource_type=kind,
                    resource_name=resource,
                    name="unclean.leader.election.enable",
                    value=text,
                ),
                ConfigRecord(
                    resource_type=kind, resource_name=resource, name="min.insync.replicas", value="\x01 2 "
                ),
            )
            rules = TopicRules(made, default_min_isr=1, default_unclean_election=False)
            found = made.topics["a"]
            assert rules.election(found) is (Election.UNCLEAN if unclean else Election.ONLINE)
            assert rules.min_isr(found) == 2

    def test_what_is_set_for_the_controller_s_node_counts_before_the_cluster_s(self) -> None:
        values = {"": "true", "1": "false"}
        made = image_of(
            [broker(1), broker(2)],
            topic("a", TOPIC, partition([1, 2])),
            [
                ConfigRecord(
                    resource_type=4, resource_name=node, name="unclean.leader.election.enable", value=value
                )
                for node, value in values.items()
            ],
        )
        for controller_id, election in ((1, Election.ONLINE), (2, Election.UNCLEAN)):
            rules = TopicRules(
                made, default_min_isr=1, default_unclean_election=False, controller_id=controller_id
            )
            assert rules.election(made.topics["a"]) is election

    def test_not_more_than_there_are_replicas(self) -> None:
        made = image_of(topic("a", TOPIC, partition([1])))
        rules = TopicRules(made, default_min_isr=2, default_unclean_election=False)
        assert rules.min_isr(made.topics["a"]) == 1


class TestBrokerChanges:
    def test_a_replica_in_a_lost_directory_cannot_lead(self) -> None:
        before = image(partition([1, 2]))
        records = list(broker_changes(before, [(before.topics["a"], 0)], rules_of(before), leaving=1))
        assert [record.leader for record, _ in records] == [2]  # type: ignore[attr-defined]
        found = before.topics["a"]
        lost = found._replace(partitions=(found.partitions[0]._replace(directories=(directory(1), uuid(2))),))
        records = list(broker_changes(before, [(lost, 0)], rules_of(before), leaving=1))
        assert [record.leader for record, _ in records] == [-1]  # type: ignore[attr-defined]
