"""Quotas of replication (KIP-73): how much brokers may copy for replicas that are named as throttled."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from broker.quotas.rates import Rate, Windows

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig

ALL_REPLICAS: Final = "*"


def is_named(throttled: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether ``*.replication.throttled.replicas`` of the topic names this replica."""
    return bool(throttled) and (ALL_REPLICAS in throttled or f"{partition}:{broker_id}" in throttled)


class _SteadyRate(Rate):
    """The rate since the oldest window that counts began, over one window at least."""

    def window_ms(self, now_ms: int) -> int:
        self._forget(now_ms)
        if not self._samples:
            return self.windows.size_ms
        return max(now_ms - min(sample.began_ms for sample in self._samples), self.windows.size_ms)


class ReplicationQuota:
    """What throttled replicas have copied lately, on one side, and whether that is too much."""

    def __init__(self, config: "BrokerConfig", setting: str, now_ms: Callable[[], int]) -> None:
        """``setting`` names the limit, in bytes a second, which may change at any time."""
        self._config = config
        self._setting = setting
        self._now_ms = now_ms
        self._rate = _SteadyRate(
            Windows(
                config.get("replication.quota.window.num"),
                config.get("replication.quota.window.size.seconds") * 1000,
            )
        )

    def record(self, size_bytes: int) -> None:
        """Count what was copied for a replica that is named, in sync or not."""
        self._rate.record(size_bytes, self._now_ms())

    def throttle_ms(self) -> int:
        """How long replicas that are named, and not in sync, have to wait; 0 if they have not."""
        return self._rate.throttle_ms(self._config.get(self._setting), self._now_ms())
