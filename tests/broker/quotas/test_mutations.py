"""Partitions that a client may make and remove (KIP-599)."""

import pytest
import trio
from trio.testing import MockClock

from broker.quotas.ledgers import Account
from broker.quotas.mutations import MutationQuota
from broker.quotas.rates import TokenBucket, Windows
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError


def account(limit: float = 1.0) -> Account[TokenBucket]:
    return Account(TokenBucket(Windows(11, 1000)), limit, 0)


async def test_a_strict_quota_lets_through_what_is_too_much_and_nothing_after_that(
    autojump_clock: MockClock,
) -> None:
    shared = account()
    quota = MutationQuota(None, shared, is_strict=True)
    quota.take(20)
    assert quota.throttle_ms == 0
    with pytest.raises(KafkaError) as refusal:
        quota.take(1)
    assert refusal.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert quota.throttle_ms == 9000
    await trio.sleep(4)
    assert quota.throttle_ms == 5000
    await trio.sleep(5)
    MutationQuota(None, shared, is_strict=True).take(1)


async def test_a_lenient_quota_lets_everything_through_and_its_client_wait(
    autojump_clock: MockClock,
) -> None:
    quota = MutationQuota(None, account(), is_strict=False)
    quota.take(11)
    assert quota.throttle_ms == 0
    quota.take(2)
    quota.take(3)
    assert quota.throttle_ms == 5000


async def test_without_an_account_there_is_no_quota() -> None:
    quota = MutationQuota(None, None, is_strict=True)
    quota.take(1_000_000)
    quota.take(1)
    quota.charge()
    assert quota.throttle_ms == 0
