"""Quotas at work: what each request uses, and how long its client has to wait for that.

A client over its quota is answered at once and told how long to wait; its connection is deaf meanwhile
(KIP-219).
"""

from typing import TYPE_CHECKING, Final

import trio

from broker.metadata.image import MetadataImage
from broker.quotas.holders import Limits
from broker.quotas.keys import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from broker.quotas.ledgers import Account, Ledger
from broker.quotas.rates import Rate, TokenBucket, Windows
from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.clock import BrokerClock
    from broker.config.broker_config import BrokerConfig
    from broker.metadata.replay import MetadataChanges
    from broker.network.call import ConnectionState

ANONYMOUS: Final = "ANONYMOUS"
"""The user of whoever does not say who he is, which is everybody while there is no authentication."""

EXEMPT: Final = frozenset((ApiKey.WRITE_TXN_MARKERS,))
"""What brokers ask of each other takes no time of anybody's."""

FETCH_BYTES_MAX: Final = 2**31 - 1
"""What one fetch can bring."""

PERCENT_OF_NS: Final = 100 / 1_000_000_000
"""A nanosecond's part of one thread's second."""


class ClientQuotas:
    """The desk at which clients pay.  While nobody has a quota ``is_active`` is False, and nothing counts."""

    def __init__(self, config: "BrokerConfig", clock: "BrokerClock") -> None:
        self.clock = clock
        windows = _windows(config, "quota.window")
        self.produce = Ledger(windows, Rate)
        self.fetch = Ledger(windows, Rate)
        self.request = Ledger(windows, Rate)
        self.mutations = Ledger(_windows(config, "controller.quota.window"), TokenBucket)
        self.is_active = False

    def load(self, image: MetadataImage) -> None:
        """Let the quotas of ``image`` hold."""
        for key, ledger in (
            (PRODUCER_BYTE_RATE, self.produce),
            (CONSUMER_BYTE_RATE, self.fetch),
            (REQUEST_PERCENTAGE, self.request),
            (CONTROLLER_MUTATION_RATE, self.mutations),
        ):
            ledger.apply(_limits(image, key))
        self.is_active = bool(
            self.produce.limits or self.fetch.limits or self.request.limits or self.mutations.limits
        )

    def publish(self, image: MetadataImage, changes: "MetadataChanges") -> None:
        """Follow a newly committed image."""
        if changes.quotas:
            self.load(image)

    def meter(self, client_id: str | None, size_bytes: int, connection: "ConnectionState") -> "Meter":
        """What one request uses, counted from now on; ``size_bytes`` is its own size."""
        return Meter(self, client_id or "", size_bytes, connection)


class Meter:
    """What one request uses.  It is settled once, when the answer is there."""

    __slots__ = (
        "_client_id",
        "_connection",
        "_is_exempt",
        "_is_settled",
        "_quotas",
        "_since_ns",
        "_size_bytes",
        "_throttle_ms",
        "_used_ns",
    )

    def __init__(
        self, quotas: ClientQuotas, client_id: str, size_bytes: int, connection: "ConnectionState"
    ) -> None:
        self._quotas = quotas
        self._client_id = client_id
        self._size_bytes = size_bytes
        self._connection = connection
        self._used_ns = 0
        self._throttle_ms = 0
        self._is_exempt = False
        self._is_settled = False
        self.resume()

    def resume(self) -> None:
        """The request is worked at again."""
        self._since_ns = self._quotas.clock.work_ns()

    def pause(self) -> None:
        """The request has to wait for something: that is nobody's time."""
        self._used_ns += self._quotas.clock.work_ns() - self._since_ns

    def settle(self, key: int, answer: object) -> int:
        """Count what the request has used, make the connection deaf if that was too much, and return for how
        long; ``answer`` is None if none is sent."""
        if not self._is_settled:
            self._is_settled = True
            now = now_ms()
            throttle_ms = self._throttle_ms
            if key == ApiKey.PRODUCE:
                throttle_ms = max(throttle_ms, self._throttle(self._quotas.produce, self._size_bytes, now))
            self._is_exempt = key in EXEMPT or (key == ApiKey.PRODUCE and answer is None)
            if not self._is_exempt:
                throttle_ms = max(throttle_ms, self._request_throttle(now))
            self._throttle_ms = throttle_ms
            self._mute()
        return self._throttle_ms

    def settle_fetch(self, size_bytes: int) -> int:
        """The same for an answer with records of that size, which is not sent if that would be too much."""
        self._is_settled = True
        now = now_ms()
        request_ms = self._request_throttle(now)
        fetch_ms = self._throttle(self._quotas.fetch, size_bytes, now)
        self._throttle_ms = max(request_ms, fetch_ms)
        if self._throttle_ms:
            account = self._quotas.fetch.account(ANONYMOUS, self._client_id, now)
            if account is not None:
                account.used.record(-size_bytes, now)
        self._mute()
        return self._throttle_ms

    def has_answered(self) -> None:
        """The answer is made: that was work, too, which the next request may have to wait for."""
        ledger = self._quotas.request
        if ledger.limits and not self._is_exempt:
            now = now_ms()
            account = ledger.account(ANONYMOUS, self._client_id, now)
            if account is not None:
                self.pause()
                account.used.record(self._used_ns * PERCENT_OF_NS, now)

    def settle_exempt(self) -> None:
        """The request comes from a broker, which does not have to wait."""
        self._is_settled = self._is_exempt = True

    @property
    def counts_fetched(self) -> bool:
        """Whether the size of what is fetched matters."""
        ledger = self._quotas.fetch
        return bool(ledger.limits) and ledger.limit(ANONYMOUS, self._client_id) is not None

    @property
    def fetch_bytes_max(self) -> int:
        """More than this at once would be too much whatever was fetched before."""
        ledger = self._quotas.fetch
        limit = ledger.limit(ANONYMOUS, self._client_id) if ledger.limits else None
        if limit is None:
            return FETCH_BYTES_MAX
        samples, size_ms = ledger.windows
        return min(int(limit * (samples - 1) * (size_ms // 1000)), FETCH_BYTES_MAX)

    def mutations(self) -> "Account[TokenBucket] | None":
        """What the client may change of the cluster; None if that is not limited."""
        ledger = self._quotas.mutations
        return ledger.account(ANONYMOUS, self._client_id, now_ms()) if ledger.limits else None

    def charge(self, throttle_ms: int) -> None:
        """Let the client wait for at least so long."""
        self._throttle_ms = max(self._throttle_ms, throttle_ms)

    def _request_throttle(self, now: int) -> int:
        ledger = self._quotas.request
        if not ledger.limits:
            return 0
        self.pause()
        self.resume()
        used_ns, self._used_ns = self._used_ns, 0
        return min(self._throttle(ledger, used_ns * PERCENT_OF_NS, now), ledger.windows.size_ms)

    def _throttle(self, ledger: Ledger[Rate], value: float, now: int) -> int:
        account = ledger.account(ANONYMOUS, self._client_id, now) if ledger.limits else None
        if account is None:
            return 0
        account.used.record(value, now)
        return account.used.throttle_ms(account.limit, now)

    def _mute(self) -> None:
        if self._throttle_ms:
            self._connection.mute(trio.current_time() + self._throttle_ms / 1000)


def _limits(image: MetadataImage, key: str) -> Limits:
    return Limits((entity, quotas[key]) for entity, quotas in image.quotas.items() if key in quotas)


def _windows(config: "BrokerConfig", name: str) -> Windows:
    return Windows(config.get(f"{name}.num"), config.get(f"{name}.size.seconds") * 1000)


def now_ms() -> int:
    """The time of quotas, which does not go back."""
    return round(trio.current_time() * 1000)
