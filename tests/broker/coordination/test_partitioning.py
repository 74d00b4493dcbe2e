import pytest

from broker.coordination.partitioning import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99_162_322),
        ("polygenelubricants", -(1 << 31)),
        ("é", 233),
        ("\U0001f600", 31 * 0xD83D + 0xDE00),  # two UTF-16 units
    ],
)
def test_java_string_hash(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


@pytest.mark.parametrize(
    ("key", "partition"),
    [("my-group", 12), ("test-consumer-group", 31), ("txn-1", 10), ("polygenelubricants", 0)],
)
def test_kafka_s_partition_of_a_key(key: str, partition: int) -> None:
    assert partition_for(key, 50) == partition
