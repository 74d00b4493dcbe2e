"""When committed offsets go, and with the last of them the group that nobody is in."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from broker.coordination.decision import Decision, Moment, in_batches
from broker.groups.group import Group
from broker.groups.offsets import OffsetTable, is_expired, offset_tombstones
from broker.groups.settings import GroupSettings

TOMBSTONES_PER_BATCH: Final = 1000
"""What is deleted at once: far below the smallest ``max.message.bytes`` that anybody would set."""

GROUPS_CLEANED_PER_TURN: Final = 100
"""Groups whose offsets are looked through before requests have their turn."""


class Retention:
    """Looks through all groups every ``offsets.retention.check.interval.ms``, some at a time."""

    def __init__(self, settings: GroupSettings, groups: Mapping[str, Group], offsets: OffsetTable) -> None:
        self._settings = settings
        self._groups = groups
        self._offsets = offsets
        self._to_clean: deque[str] = deque()
        self._next_ms: int | None = None

    def begin(self, now: Moment) -> None:
        """The groups are loaded."""
        self._next_ms = now.steady_ms + self._settings.offsets_retention_check_interval_ms

    def deadline_ms(self) -> int | None:
        """The steady time at which ``advance`` has something to do."""
        return 0 if self._to_clean else self._next_ms

    def advance(self, now: Moment) -> Decision:
        """Drop offsets whose time is over, and groups without members that have none left."""
        if not self._to_clean:
            if self._next_ms is None or self._next_ms > now.steady_ms:
                return Decision()
            self._next_ms = now.steady_ms + self._settings.offsets_retention_check_interval_ms
            self._to_clean.extend(self._groups)
        for _ in range(GROUPS_CLEANED_PER_TURN):
            if not self._to_clean:
                break
            group = self._groups.get(self._to_clean.popleft())
            if group is None or not group.expires:
                continue
            decision = self._clean(group, now)
            if decision.records:
                return decision
        return Decision()

    def _clean(self, group: Group, now: Moment) -> Decision:
        group_id = group.group_id
        pending = set(self._offsets.pending_partitions(group_id))
        expired: list[tuple[str, int]] = []
        kept = len(pending)
        for topic, partitions in self._offsets.of_group(group_id).items():
            for partition, committed in partitions.items():
                since_ms = group.retention_began_ms(topic, committed.commit_timestamp_ms)
                if (
                    since_ms is not None
                    and (topic, partition) not in pending
                    and is_expired(committed, since_ms, now.wall_ms, self._settings.offsets_retention_ms)
                ):
                    expired.append((topic, partition))
                else:
                    kept += 1
        last = Decision(tentative=True)
        if not kept and group.is_empty:
            last.records += group.tombstones()
        return in_batches(offset_tombstones(group_id, expired), TOMBSTONES_PER_BATCH, last)
