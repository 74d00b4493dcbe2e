"""Elections that nobody asks for."""

from collections.abc import Callable

import pytest

from broker.controller.balance import balance_leaders, elect_uncleanly
from broker.controller.decision import Decision
from broker.controller.elections import TopicRules
from broker.metadata.image import LeaderRecoveryState, MetadataImage, PartitionImage
from protocol.schema import Message
from protocol.stored.metadata_records import ConfigRecord
from tests.broker.metadata.records import after, broker, features, image_of, partition, topic, uuid

TOPIC = uuid(1000)


def cluster(*partitions: Message, unclean: bool = False) -> MetadataImage:
    setting = ConfigRecord(
        resource_type=2, resource_name="a", name="unclean.leader.election.enable", value=str(unclean).lower()
    )
    brokers = [broker(1), broker(2), broker(3, fenced=True)]
    return image_of(features(), brokers, topic("a", TOPIC, *partitions), setting)


def decide(
    decision: Callable[..., Decision[bool]], image: MetadataImage, *, elections_max: int = 10
) -> tuple[bool, tuple[PartitionImage, ...]]:
    rules = TopicRules(image, default_min_isr=1, default_unclean_election=False)
    records, is_more_to_do = decision(image, rules, elections_max=elections_max)
    return is_more_to_do, after(image, [record for record, _ in records]).topics["a"].partitions


class TestBalance:
    def test_preferred_replicas_lead_where_they_are_in_sync_and_alive(self) -> None:
        image = cluster(
            partition([1, 2], leader=2),
            partition([1, 2], [2]),
            partition([3, 2], leader=2),
            partition([2, 1]),
        )
        is_more_to_do, partitions = decide(balance_leaders, image)
        assert [found.leader for found in partitions] == [1, 2, 2, 2]
        assert [found.leader_epoch for found in partitions] == [6, 5, 5, 5]
        assert not is_more_to_do

    def test_somebody_leads_what_nobody_led(self) -> None:
        _, (found,) = decide(balance_leaders, cluster(partition([1, 2], [2], leader=-1)))
        assert found.leader == 2

    @pytest.mark.parametrize(("elections_max", "leaders"), [(1, [1, 2]), (2, [1, 1])])
    def test_not_all_at_once(self, elections_max: int, leaders: list[int]) -> None:
        image = cluster(partition([1, 2], leader=2), partition([1, 2], leader=2))
        is_more_to_do, partitions = decide(balance_leaders, image, elections_max=elections_max)
        assert [found.leader for found in partitions] == leaders
        assert is_more_to_do


class TestUncleanElections:
    def test_where_the_topic_allows_it(self) -> None:
        image = cluster(partition([3, 1], [3], leader=-1), partition([3, 2], [2]), unclean=True)
        is_more_to_do, (elected, led) = decide(elect_uncleanly, image)
        assert (elected.leader, elected.isr) == (1, (1,))
        assert elected.leader_recovery_state is LeaderRecoveryState.RECOVERING
        assert led == image.topics["a"].partitions[1]
        assert not is_more_to_do

    def test_and_nowhere_else(self) -> None:
        image = cluster(partition([3, 1], [3], leader=-1))
        _, partitions = decide(elect_uncleanly, image)
        assert partitions == image.topics["a"].partitions

    def test_who_is_not_there_is_not_elected(self) -> None:
        _, (found,) = decide(elect_uncleanly, cluster(partition([3], [3], leader=-1), unclean=True))
        assert found.leader == -1
