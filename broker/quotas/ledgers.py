"""What everybody that has a quota of one kind has used of it."""

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from broker.quotas.holders import Holder, Limits
from broker.quotas.rates import Windows

IDLE_MS: Final = 3_600_000
"""Who has used nothing for so long is forgotten, as in Kafka."""

ACCOUNTS_PRUNED_AT: Final = 64
"""Number of accounts from which on idle ones are looked for, each time that there are twice as many."""

CLIENTS_KEPT_MAX: Final = 10_000
"""Clients whose accounts are found at once; beyond them those of all are looked for again."""

Used = TypeVar("Used")
"""What keeps count: a ``Rate`` or a ``TokenBucket``."""


class WhoHas(Protocol):
    """Who has which limit: see ``Limits``."""

    def __bool__(self) -> bool: ...

    def holder(self, user: str, client_id: str, /) -> Holder: ...

    def limit(self, holder: Holder, /) -> float | None: ...


class Account(Generic[Used]):
    """What one holder has used, and may use."""

    __slots__ = ("last_ms", "limit", "used")

    def __init__(self, used: Used, limit: float, now_ms: int) -> None:
        self.used = used
        self.limit = limit
        self.last_ms = now_ms


class Ledger(Generic[Used]):
    """The accounts of one kind of quota.  Who has no limit has no account."""

    def __init__(self, windows: Windows, begin: Callable[[Windows], Used]) -> None:
        self.windows = windows
        self.limits: WhoHas = Limits(())
        self._begin = begin
        self._accounts: dict[Holder, Account[Used]] = {}
        self._by_client: dict[tuple[str, str], Account[Used] | None] = {}
        self._prune_at = ACCOUNTS_PRUNED_AT

    def __len__(self) -> int:
        return len(self._accounts)

    def apply(self, limits: WhoHas) -> None:
        """Let these limits hold from now on, also for what has been used before."""
        self.limits = limits
        self._by_client.clear()
        for holder, account in list(self._accounts.items()):
            limit = limits.limit(holder)
            if limit is None:
                del self._accounts[holder]
            else:
                account.limit = limit

    def account(self, user: str, client_id: str, now_ms: int) -> Account[Used] | None:
        """The account that a client uses now; None if it may use whatever it wants."""
        key = (user, client_id)
        if key in self._by_client:
            account = self._by_client[key]
            if account is None:
                return None
            if now_ms - account.last_ms <= IDLE_MS:
                account.last_ms = now_ms
                return account
        if len(self._by_client) >= CLIENTS_KEPT_MAX:
            self._by_client.clear()
        account = self._by_client[key] = self._find(self.limits.holder(user, client_id), now_ms)
        return account

    def limit(self, user: str, client_id: str) -> float | None:
        """How much a client may use; None if that is not limited."""
        return self.limits.limit(self.limits.holder(user, client_id))

    def _find(self, holder: Holder, now_ms: int) -> Account[Used] | None:
        account = self._accounts.get(holder)
        if account is not None and now_ms - account.last_ms <= IDLE_MS:
            account.last_ms = now_ms
            return account
        limit = self.limits.limit(holder)
        if limit is None:
            return None
        if len(self._accounts) >= self._prune_at:
            self._prune(now_ms)
        account = self._accounts[holder] = Account(self._begin(self.windows), limit, now_ms)
        return account

    def _prune(self, now_ms: int) -> None:
        self._accounts = {
            holder: account
            for holder, account in self._accounts.items()
            if now_ms - account.last_ms <= IDLE_MS
        }
        self._by_client.clear()
        self._prune_at = max(ACCOUNTS_PRUNED_AT, 2 * len(self._accounts))
