"""Followers that may copy only so much from this broker (KIP-73)."""

from typing import TYPE_CHECKING

from broker.quotas.replication import ReplicationQuota, is_named

if TYPE_CHECKING:
    from broker.partitions.leader import Leader
    from broker.services import Services


class ThrottledFollowers:
    """Counts what followers copy of replicas named as throttled; holds back those that are not in sync."""

    def __init__(self, services: "Services") -> None:
        self._node_id = services.node_id
        self._quota = ReplicationQuota(
            services.config, "leader.replication.throttled.rate", services.clock.now_ms
        )

    def holds_back(self, leader: "Leader", follower_id: int) -> bool:
        """Whether a follower gets no records now; never one that is in sync."""
        replication = leader.replication
        return (
            replication is not None
            and follower_id not in replication.isr
            and self._is_throttled(leader)
            and self._quota.throttle_ms() > 0
        )

    def note_replicated(self, leader: "Leader", size_bytes: int) -> None:
        """Records were sent to a follower: they count if the partition is named, in sync or not."""
        if self._is_throttled(leader):
            self._quota.record(size_bytes)

    def _is_throttled(self, leader: "Leader") -> bool:
        named = leader.settings["leader.replication.throttled.replicas"]
        return is_named(named, leader.partition, self._node_id)
