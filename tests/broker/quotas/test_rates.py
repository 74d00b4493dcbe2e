"""Rates and tokens by hand.  Kafka's own figures stand in ``test_against_kafka``."""

from broker.quotas.rates import THROTTLE_MS_MAX, Rate, TokenBucket, Windows

DEFAULT = Windows(11, 1000)


def test_a_new_client_may_use_at_once_what_ten_seconds_bring() -> None:
    rate = Rate(DEFAULT)
    rate.record(1000, 0)
    assert rate.throttle_ms(100, 0) == 0
    rate.record(1, 0)
    assert rate.throttle_ms(100, 0) == 10


def test_who_waits_as_long_as_told_is_within_the_quota() -> None:
    rate, now_ms = Rate(DEFAULT), 0
    for value in (5000, 10, 700, 12_345):
        rate.record(value, now_ms)
        now_ms += rate.throttle_ms(100, now_ms)
        assert rate.throttle_ms(100, now_ms) <= 1  # what rounding leaves


def test_what_is_taken_back_was_never_used() -> None:
    rate = Rate(DEFAULT)
    rate.record(500, 0)
    rate.record(900, 100)
    rate.record(-900, 100)
    assert rate.per_second(100) == 500 / 10.1


def test_all_is_forgotten_when_all_windows_have_passed() -> None:
    rate = Rate(DEFAULT)
    rate.record(1_000_000, 0)
    assert rate.throttle_ms(1, 10_999) > 0
    assert rate.throttle_ms(1, 11_000) == 0


def test_a_throttle_is_no_longer_than_an_answer_can_say() -> None:
    rate = Rate(DEFAULT)
    rate.record(1e15, 0)
    assert rate.throttle_ms(1, 0) == THROTTLE_MS_MAX
    assert rate.throttle_ms(5e-324, 0) == THROTTLE_MS_MAX
    assert rate.throttle_ms(0, 0) == THROTTLE_MS_MAX
    bucket = TokenBucket(DEFAULT)
    bucket.take(1, 5e-324, 0)
    assert bucket.debt_ms(5e-324, 0) == THROTTLE_MS_MAX


def test_a_new_bucket_is_full_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(DEFAULT)
    bucket.take(20, 1, 0)  # eleven are there
    assert bucket.debt_ms(1, 0) == 9000
    assert bucket.debt_ms(1, 8999) == 1
    assert bucket.debt_ms(1, 9000) is None


def test_a_bucket_holds_no_more_than_comes_in_during_all_windows() -> None:
    bucket = TokenBucket(DEFAULT)
    bucket.take(1, 1, 0)
    bucket.take(11, 1, 1_000_000)
    assert bucket.debt_ms(1, 1_000_000) is None
    bucket.take(1, 1, 1_000_000)
    assert bucket.debt_ms(1, 1_000_000) == 1000
