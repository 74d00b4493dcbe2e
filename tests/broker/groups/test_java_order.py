"""Names come in the order in which Kafka would look at them."""

import pytest

from broker.groups.java_order import (
    counted_in_timeline_order,
    in_java_order,
    in_java_order_of_computed,
    joined_numbers_in_java_order,
    members_in_kafka_order,
)


def test_names_of_one_bucket_come_as_they_were_put_there() -> None:
    assert in_java_order(["cleo", "anna", "bert"]) == ["bert", "cleo", "anna"]
    assert in_java_order(["anna", "bert", "cleo"]) == ["bert", "anna", "cleo"]


@pytest.mark.parametrize(
    ("copied", "added", "joined"),
    [
        ([3], [1, 2], [1, 2, 3]),
        ([18, 2], [1, 34, 2], [1, 18, 2, 34]),
        ([1001, 1002], [17, 1], [17, 1, 1001, 1002]),
        (
            [40, 3, 20, 1, 16, 32, 48, 64, 80, 96, 112, 128],
            [17, 33],
            [32, 64, 96, 128, 1, 33, 3, 40, 16, 48, 80, 112, 17, 20],
        ),
        ([], [100_000, 65_537, 3], [65_537, 100_000, 3]),
    ],
)
def test_numbers_that_are_added_to_others(copied: list[int], added: list[int], joined: list[int]) -> None:
    """As a ``HashSet`` of Java's has said."""
    assert joined_numbers_in_java_order(copied, added) == joined


def test_what_is_computed_goes_before_its_bucket_and_the_table_grows_late() -> None:
    assert in_java_order_of_computed(["anna", "cleo", "anna"], 3) == ["cleo", "anna"]
    assert in_java_order_of_computed(["r", "q", "p"], 3) == ["p", "q", "r"]
    four = ["t", "s", "r", "q", "p"]  # they would come from two buckets of four, were it not for growing
    assert in_java_order_of_computed(four, 1) == ["p", "q", "r", "s", "t"]


def test_members_that_are_there_come_out_of_a_table_of_their_own() -> None:
    """Which random histories on Kafka have shown: ``anna`` and ``cleo`` share a bucket."""
    assert members_in_kafka_order(["anna", "cleo"], []) == ["anna", "cleo"]
    assert members_in_kafka_order(["cleo", "anna"], ["cleo"]) == ["cleo", "anna"]
    assert members_in_kafka_order(["anna", "cleo"], ["cleo"]) == ["cleo", "anna"]
    assert members_in_kafka_order(["anna", "cleo"], ["anna", "cleo"]) == ["cleo", "anna"]
    assert members_in_kafka_order(["anna", "cleo"], ["cleo", "anna"]) == ["anna", "cleo"]
    three = ["anna", "cleo", "bert"]
    assert members_in_kafka_order(three, three) == ["bert", "cleo", "anna"]
    assert members_in_kafka_order(["a"], ["b", "c"]) == ["a"]


def test_numbers_in_a_table_of_kafka_s_own() -> None:
    """As a ``TimelineHashMap`` has said."""
    assert [counted_in_timeline_order(count)[0] for count in range(1, 10)] == [0, 0, 2, 2, 2, 5, 5, 5, 5]
    assert counted_in_timeline_order(13) == [0, 5, 10, 2, 7, 12, 4, 9, 1, 6, 11, 3, 8]
