"""Who has an account, and for how long."""

from broker.quotas.holders import Limits
from broker.quotas.ledgers import ACCOUNTS_PRUNED_AT, CLIENTS_KEPT_MAX, IDLE_MS, Ledger
from broker.quotas.rates import Rate, Windows

WINDOWS = Windows(11, 1000)
EVERY_CLIENT = Limits([((("client-id", None),), 10.0)])


def ledger(limits: Limits = EVERY_CLIENT) -> Ledger[Rate]:
    opened = Ledger(WINDOWS, Rate)
    opened.apply(limits)
    return opened


def test_who_has_no_limit_has_no_account() -> None:
    opened = ledger(Limits([((("client-id", "c"),), 10.0)]))
    assert opened.account("u", "d", 0) is None
    assert opened.account("u", "c", 0) is not None
    assert len(opened) == 1


def test_a_new_limit_holds_for_what_was_used_before() -> None:
    opened = ledger()
    account = opened.account("u", "c", 0)
    assert account is not None
    account.used.record(50, 0)
    opened.apply(Limits([((("client-id", None),), 1.0)]))
    again = opened.account("u", "c", 0)
    assert again is account
    assert again.used.throttle_ms(again.limit, 0) == 40_000


def test_an_hour_without_use_is_forgotten() -> None:
    opened = ledger()
    account = opened.account("u", "c", 0)
    assert opened.account("u", "c", IDLE_MS) is account
    assert opened.account("u", "c", 2 * IDLE_MS + 1) is not account


def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    opened = ledger()
    for number in range(3 * CLIENTS_KEPT_MAX):
        opened.account("u", f"c{number}", number * IDLE_MS // 10)
    assert len(opened) <= ACCOUNTS_PRUNED_AT
    assert len(opened._by_client) <= CLIENTS_KEPT_MAX
