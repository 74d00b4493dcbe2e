"""How many connections there may be, and how soon new ones may come (KIP-308, KIP-402, KIP-612).

Plain bookkeeping: whoever accepts asks, waits as long as it is told, and says who has come and gone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.quotas.holders import NOBODY, Holder
from broker.quotas.ledgers import Ledger
from broker.quotas.rates import Rate, Windows

UNLIMITED: Final = 2**31 - 1
"""Kafka's default of every limit here: then nothing is counted."""

_NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


class ListenerLimits(NamedTuple):
    """What holds for the connections of one listener."""

    connections_max: int = UNLIMITED
    """``max.connections`` with the listener's prefix, or else the broker's."""

    rate_max: int = UNLIMITED
    """``max.connection.creation.rate`` likewise: new connections a second."""


class ConnectionLimits(NamedTuple):
    """What the settings say.  Those of the broker hold for all listeners but the protected one."""

    connections_max: int = UNLIMITED
    rate_max: int = UNLIMITED
    per_address_max: int = UNLIMITED
    per_address_overrides: Mapping[str, int] = _NOBODY
    listeners: Mapping[str, ListenerLimits] = MappingProxyType({})
    protected: str | None = None
    """The listener of other brokers, which clients must not keep out; None if it is the only one."""

    def of_address(self, address: str) -> int:
        """How many connections an address may have."""
        return self.per_address_overrides.get(address, self.per_address_max)

    def of_listener(self, listener: str) -> ListenerLimits:
        return self.listeners.get(listener, NO_LIMITS)


NO_LIMITS: Final = ListenerLimits()


class AddressLimits:
    """Connections a second that addresses may make: those of the ip entities."""

    def __init__(self, rates: Iterable[tuple[str | None, int]] = ()) -> None:
        self._rates = dict(rates)

    def __bool__(self) -> bool:
        return bool(self._rates)

    def holder(self, address: str, _: str) -> Holder:
        return Holder(address, NOBODY)

    def limit(self, holder: Holder) -> float | None:
        rate = self._rates.get(holder.user, self._rates.get(None, UNLIMITED))
        return None if rate == UNLIMITED else rate


class ConnectionQuotas:
    """The connections of some listeners, counted."""

    def __init__(self, limits: ConnectionLimits, windows: Windows) -> None:
        self.limits = limits
        self._windows = windows
        self._total = 0
        self._per_listener: Counter[str] = Counter()
        self._per_address: Counter[str] = Counter()
        self._rate = Rate(windows)
        self._rates: dict[str, Rate] = {}
        self._address_rates = Ledger(windows, Rate)
        self._address_rates.apply(AddressLimits())

    def apply_addresses(self, limits: AddressLimits) -> None:
        """Let these be the rates of addresses from now on."""
        self._address_rates.apply(limits)

    def knock(self, listener: str, now_ms: int) -> int:
        """Somebody wants to come in: for how long the listener has to let everybody wait first."""
        throttle_ms = 0
        for rate, limit in self._rates_of(listener):
            rate.record(1, now_ms)
            throttle_ms = max(throttle_ms, rate.throttle_ms(limit, now_ms))
        return min(throttle_ms, self._windows.size_ms)

    def has_room(self, listener: str) -> bool:
        """Whether one more may come in there."""
        limits = self.limits
        if self._per_listener[listener] >= limits.of_listener(listener).connections_max:
            return False
        return listener == limits.protected or self._total < limits.connections_max

    def refuse(self, listener: str, address: str, now_ms: int) -> int:
        """Whether somebody comes in too soon for its address: for how long it has to be kept outside.

        Then it does not count as one that has come, not even as one that wanted to.
        """
        ledger = self._address_rates
        account = ledger.account(address, NOBODY, now_ms) if ledger.limits else None
        if account is None:
            return 0
        account.used.record(1, now_ms)
        throttle_ms = account.used.throttle_ms(account.limit, now_ms)
        if throttle_ms:
            account.used.record(-1, now_ms)
            for rate, _ in self._rates_of(listener):
                rate.record(-1, now_ms)
        return min(throttle_ms, self._windows.size_ms)

    def is_full_for(self, address: str) -> bool:
        """Whether an address has as many connections as it may have."""
        return self._per_address[address] >= self.limits.of_address(address)

    def enter(self, listener: str, address: str) -> None:
        self._total += 1
        self._per_listener[listener] += 1
        self._per_address[address] += 1

    def leave(self, listener: str, address: str) -> None:
        self._total -= 1
        self._per_listener[listener] -= 1
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]

    @property
    def excess(self) -> int:
        """How many connections of unprotected listeners have to be closed."""
        return max(0, self._total - self.limits.connections_max)

    def _rates_of(self, listener: str) -> list[tuple[Rate, int]]:
        """The rates that count who comes in there, with their limits."""
        limits, rates = self.limits, []
        if limits.rate_max != UNLIMITED and listener != limits.protected:
            rates.append((self._rate, limits.rate_max))
        rate_max = limits.of_listener(listener).rate_max
        if rate_max != UNLIMITED:
            rates.append((self._rates.setdefault(listener, Rate(self._windows)), rate_max))
        return rates
