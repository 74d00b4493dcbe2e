"""Where new replicas go."""

from collections import Counter
from random import Random

import pytest

from broker.controller.placement import UsableBroker, place
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    """Brokers 1, 2, … in these racks."""
    return [UsableBroker(number, rack, number in fenced) for number, rack in enumerate(racks, start=1)]


def test_one_broker_takes_everything(chance: Random) -> None:
    placed = place(brokers(None), partition_count=3, replication_factor=1, chance=chance)
    assert placed == [(1,)] * 3


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_leaders_and_replicas_are_spread_evenly(chance: Random, count: int, replicas: int) -> None:
    replicas = min(replicas, count)
    placed = place(
        brokers(*[None] * count), partition_count=count * 4, replication_factor=replicas, chance=chance
    )
    assert all(len(set(each)) == replicas for each in placed)
    assert set(Counter(each[0] for each in placed).values()) == {4}
    everyone = Counter(broker for each in placed for broker in each)
    assert len(everyone) == count
    assert len(set(everyone.values())) == 1


def test_the_replicas_of_a_partition_go_to_different_racks(chance: Random) -> None:
    usable = brokers("a", "a", "a", "b", "b", "b", "c", "c", "c")
    racks = {broker.id: broker.rack for broker in usable}
    placed = place(usable, partition_count=90, replication_factor=3, chance=chance)
    assert all({racks[broker] for broker in each} == {"a", "b", "c"} for each in placed)
    assert set(Counter(each[0] for each in placed)) == set(racks)


def test_with_one_replica_all_brokers_of_a_rack_get_their_turn(chance: Random) -> None:
    placed = place(brokers("a", "a", "b", "b"), partition_count=4, replication_factor=1, chance=chance)
    assert Counter(each[0] for each in placed) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_more_replicas_than_racks(chance: Random) -> None:
    placed = place(brokers("a", "a", "a", "b"), partition_count=8, replication_factor=4, chance=chance)
    assert all(sorted(each) == [1, 2, 3, 4] for each in placed)


def test_a_fenced_broker_does_not_come_first(chance: Random) -> None:
    usable = brokers("a", "b", "b", "c", fenced=(1, 2))
    placed = place(usable, partition_count=40, replication_factor=3, chance=chance)
    assert {each[0] for each in placed} == {3, 4}
    assert any(1 in each for each in placed)


def test_fenced_brokers_come_after_the_others_of_their_rack(chance: Random) -> None:
    placed = place(
        brokers("a", "a", "b", fenced=(1,)), partition_count=9, replication_factor=2, chance=chance
    )
    assert all(1 not in each for each in placed)


TOO_FEW = (
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)


@pytest.mark.parametrize(
    ("usable", "replicas", "text"),
    [
        (brokers(None), 0, "Invalid replication factor 0: the replication factor must be positive."),
        (brokers(None), -1, "Invalid replication factor -1: the replication factor must be positive."),
        ([], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            brokers(None, None, fenced=(1, 2)),
            1,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        (
            brokers(None, None),
            3,
            TOO_FEW,
        ),
    ],
)
def test_refusals(usable: list[UsableBroker], replicas: int, text: str) -> None:
    with pytest.raises(KafkaError) as raised:
        place(usable, partition_count=1, replication_factor=replicas, chance=Random(1))
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert raised.value.message == text
