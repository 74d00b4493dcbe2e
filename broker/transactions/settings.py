"""The broker's settings that transactions go by."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig


class TransactionSettings(NamedTuple):
    """Under Kafka's names, more or less; times in ms."""

    max_timeout_ms: int = 900_000
    two_phase_commit: bool = False
    """Whether producers may ask for transactions that only their participants end (KIP-939)."""
    timeout_check_interval_ms: int = 10_000
    """How often open transactions are looked through for those whose time is over."""
    expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    """After this time at rest a transactional id is forgotten."""
    expiration_check_interval_ms: int = 3_600_000

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "TransactionSettings":
        return cls(
            max_timeout_ms=config.get("transaction.max.timeout.ms"),
            two_phase_commit=config.get("transaction.two.phase.commit.enable"),
            timeout_check_interval_ms=config.get(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            expiration_ms=config.get("transactional.id.expiration.ms"),
            expiration_check_interval_ms=config.get(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
        )
