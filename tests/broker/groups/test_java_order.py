"""Names come in the order in which Kafka would look at them."""

from broker.groups.java_order import in_java_order, in_java_order_of_computed, members_in_kafka_order


def test_names_of_one_bucket_come_as_they_were_put_there() -> None:
    assert in_java_order(["cleo", "anna", "bert"]) == ["bert", "cleo", "anna"]
    assert in_java_order(["anna", "bert", "cleo"]) == ["bert", "anna", "cleo"]


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
