"""The broker's settings that groups go by."""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member's JoinGroup waits for the others: a client that went away must not stay for ever."""

PENDING_MEMBERS_MAX = 10_000
"""Ids given out by one group whose owners have not come back with them: one more is told
GROUP_MAX_SIZE_REACHED."""


class MigrationPolicy(Enum):
    """Whether groups with members may change their protocol (``group.consumer.migration.policy``)."""

    DISABLED = "DISABLED"
    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    BIDIRECTIONAL = "BIDIRECTIONAL"

    @property
    def allows_upgrade(self) -> bool:
        """From classic to consumer."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """From consumer to classic."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class GroupSettings(NamedTuple):
    """Under Kafka's names without the prefix; times in ms."""

    group_max_size: int = 2_147_483_647
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    offset_metadata_max_bytes: int = 4_096
    """Counted in UTF-16 units, as Kafka does in spite of the name."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    consumer_max_size: int = 2_147_483_647
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the default."""
    consumer_migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000
    share_max_size: int = 200
    share_initialize_retry_ms: int = 30_000
    streams_max_size: int = 2_147_483_647

    def allows_metadata(self, metadata: str) -> bool:
        """Whether so much may be committed with an offset."""
        limit = self.offset_metadata_max_bytes
        if metadata.isascii():
            return len(metadata) <= limit
        return len(metadata) + sum(character > "\uffff" for character in metadata) <= limit

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "GroupSettings":
        return cls(
            group_max_size=config.get("group.max.size"),
            min_session_timeout_ms=config.get("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.get("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.get("group.initial.rebalance.delay.ms"),
            offset_metadata_max_bytes=config.get("offset.metadata.max.bytes"),
            offsets_retention_ms=config.get("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=config.get("offsets.retention.check.interval.ms"),
            consumer_max_size=config.get("group.consumer.max.size"),
            consumer_assignors=tuple(map(_assignor_name, config.get("group.consumer.assignors"))),
            consumer_migration=MigrationPolicy(config.get("group.consumer.migration.policy").upper()),
            regex_refresh_interval_ms=config.get("group.consumer.regex.refresh.interval.ms"),
            share_max_size=config.get("group.share.max.size"),
            share_initialize_retry_ms=config.get("group.share.initialize.retry.interval.ms"),
            streams_max_size=config.get("group.streams.max.size"),
        )


def _assignor_name(name: str) -> str:
    """What clients call an assignor that may be set by the name of its class in Kafka."""
    return name.rpartition(".")[2].removesuffix("Assignor").lower()
