"""Compaction and retention, held against what Kafka's log and cleaner were recorded to do."""

from tests.storage.cleaning import recorded
from tests.storage.cleaning.comparing import compare


def test_what_is_left_of_a_log_is_what_kafka_leaves_of_it() -> None:
    rounds = 0
    for history, kafka in recorded.read():
        compared = compare(kafka, history)
        assert compared.differences == [], f"history {history.name!r}, step {compared.step}"
        rounds += compared.rounds
    assert rounds > 50
