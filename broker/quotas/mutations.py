"""How many partitions a client may make and remove (KIP-599)."""

from typing import TYPE_CHECKING

from broker.quotas.desk import now_ms
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.network.call import Call
    from broker.quotas.desk import Meter
    from broker.quotas.ledgers import Account
    from broker.quotas.rates import TokenBucket


class MutationQuota:
    """The quota of one request.

    A strict one refuses what comes once there is nothing left; the other lets it through, and its client
    wait.  Without an account everything is let through.
    """

    def __init__(
        self, meter: "Meter | None", account: "Account[TokenBucket] | None", *, is_strict: bool
    ) -> None:
        self._meter = meter
        self._account = account
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._throttled_at_ms = 0

    def take(self, count: int) -> None:
        """Take permission for so many partitions; raises THROTTLING_QUOTA_EXCEEDED."""
        account = self._account
        if account is None:
            return
        now = now_ms()
        if not self._is_strict:
            account.used.take(count, account.limit, now)
        debt_ms = account.used.debt_ms(account.limit, now)
        if debt_ms is not None:
            self._throttle_ms = debt_ms
            self._throttled_at_ms = now
        if self._is_strict:
            if debt_ms is not None:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            account.used.take(count, account.limit, now)

    @property
    def throttle_ms(self) -> int:
        """How long the client has to wait from now on."""
        return max(0, self._throttle_ms - (now_ms() - self._throttled_at_ms))

    def charge(self) -> None:
        """Let the client wait for what it has changed."""
        if self._meter is not None:
            self._meter.charge(self.throttle_ms)


def mutation_quota(call: "Call", *, strict_from: int) -> MutationQuota:
    """What a request may change; it is refused beyond that from this version of its API on."""
    meter = call.meter
    account = None if meter is None else meter.mutations()
    return MutationQuota(meter, account, is_strict=call.version >= strict_from)
