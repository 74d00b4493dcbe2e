"""How a member moves towards its target: it gives up first, and gets what others have given up (KIP-1071)."""

from collections.abc import Callable, Collection, Mapping, Set

from broker.groups.streams.member import StreamsMember, StreamsMemberState
from broker.groups.streams.tasks import OwnedTasks, Tasks, TaskSets
from protocol.error_codes import ErrorCode
from protocol.errors import KafkaError

ProcessesOf = Callable[[str, int], Collection[str]]
"""Processes that have a task, by subtopology and partition, be it that they have to give it up."""


class Holders:
    """Which processes have a task in each role."""

    def __init__(self, active: ProcessesOf, standby: ProcessesOf, warmup: ProcessesOf) -> None:
        self.active = active
        self.standby = standby
        self.warmup = warmup


class _Changes:
    """What becomes of the tasks that a member has, or should have, in one role."""

    def __init__(
        self, owned: Mapping[str, Collection[int]], wanted: Tasks, is_held: Callable[[str, int], bool]
    ) -> None:
        self.kept: dict[str, set[int]] = {}
        self.revoked: dict[str, set[int]] = {}
        self.given: dict[str, set[int]] = {}
        self.waits = False
        """Somebody else has yet to give up something."""
        for subtopology in dict.fromkeys((*wanted, *owned)):
            target: Set[int] = wanted.get(subtopology, frozenset())
            has = owned.get(subtopology, ())
            for partition in has:
                _add(self.kept if partition in target else self.revoked, subtopology, partition)
            for partition in target:
                if partition in has:
                    continue
                if is_held(subtopology, partition):
                    self.waits = True
                else:
                    _add(self.given, subtopology, partition)

    def give_now(self, subtopology: str, partition: int) -> bool:
        """A task that comes is kept as if the member had it already; whether there was such a task."""
        if partition not in self.given.get(subtopology, ()):
            return False
        _discard(self.given, subtopology, partition)
        _add(self.kept, subtopology, partition)
        return True


class TaskReconciler:
    """Takes one step for one member, from what is true now.

    ``claimed`` is what the member says it has; None if it does not say.
    """

    def __init__(
        self,
        member: StreamsMember,
        *,
        target_epoch: int,
        target: TaskSets,
        claimed: TaskSets | None,
        holders: Holders,
    ) -> None:
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._claimed = claimed
        self._holders = holders

    def step(self) -> StreamsMember:
        """The member as it is after this step; the same one if it cannot move."""
        member = self._member
        if member.state is StreamsMemberState.STABLE:
            return (
                member if member.member_epoch == self._target_epoch else self._approach(member.member_epoch)
            )
        if member.state is StreamsMemberState.UNREVOKED_TASKS:
            if self._has_still(member.revoking):
                return member
            return self._approach(member.member_epoch + 1)
        if member.state is StreamsMemberState.UNRELEASED_TASKS:
            return self._approach(member.member_epoch)
        if self._claimed is None or any(self._claimed):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. "
                "The member must abandon all its tasks and rejoin.",
            )
        return self._approach(self._target_epoch)

    def _has_still(self, revoked: OwnedTasks) -> bool:
        return self._claimed is None or self._claimed.share_any(revoked)

    def _approach(self, member_epoch: int) -> StreamsMember:
        owned, target = self._member.assigned, self._target
        active = _Changes(owned.active, target.active, self._is_active_held)
        standby = _Changes(owned.standby, target.standby, self._is_standby_held)
        warmup = _Changes(owned.warmup, target.warmup, self._is_warmup_held)
        # What depends on nobody else happens at once, so that the member keeps the state that it has on disk.
        for subtopology, partitions in owned.active.items():
            for partition in partitions:
                standby.give_now(subtopology, partition)
        _convert(owned.standby, standby, warmup)
        _convert(owned.warmup, warmup, standby)
        # What the member will work on itself it need not give up as a copy.
        for copies, changes in ((owned.standby, standby), (owned.warmup, warmup)):
            for subtopology, partition in _each(copies):
                if partition in target.active.get(subtopology, ()):
                    _discard(changes.revoked, subtopology, partition)
        revoked = OwnedTasks(
            {of: {each: owned.active[of][each] for each in parts} for of, parts in active.revoked.items()},
            standby.revoked,
            warmup.revoked,
        )
        must_revoke = not revoked.is_empty and self._has_still(revoked)
        for copies, changes in ((owned.standby, standby), (owned.warmup, warmup)):
            for subtopology, partition in _each(copies):
                if partition not in target.active.get(subtopology, ()):
                    continue
                if must_revoke or partition not in active.given.get(subtopology, ()):
                    _add(changes.kept, subtopology, partition)  # until it can be promoted
        kept = {of: {each: owned.active[of][each] for each in parts} for of, parts in active.kept.items()}
        if must_revoke:
            return self._moved(
                member_epoch,
                StreamsMemberState.UNREVOKED_TASKS,
                OwnedTasks(kept, standby.kept, warmup.kept),
                revoked,
            )
        for subtopology, partition in _each(active.given):
            kept.setdefault(subtopology, {})[partition] = self._target_epoch
        waits = active.waits or standby.waits or warmup.waits
        return self._moved(
            self._target_epoch,
            StreamsMemberState.UNRELEASED_TASKS if waits else StreamsMemberState.STABLE,
            OwnedTasks(kept, _merged(standby.kept, standby.given), _merged(warmup.kept, warmup.given)),
            OwnedTasks(),
        )

    def _moved(
        self, member_epoch: int, state: StreamsMemberState, assigned: OwnedTasks, revoking: OwnedTasks
    ) -> StreamsMember:
        return self._member._replace(
            member_epoch=member_epoch,
            previous_member_epoch=self._member.member_epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    # Whether somebody has what the member should get: a task runs in one process, and once in a process

    def _is_active_held(self, subtopology: str, partition: int) -> bool:
        return (
            bool(self._holders.active(subtopology, partition))
            or self._is_standby_of_another(subtopology, partition)
            or self._is_warmup_of_another(subtopology, partition)
        )

    def _is_standby_held(self, subtopology: str, partition: int) -> bool:
        process_id = self._member.process_id
        runs_here = process_id in self._holders.active(subtopology, partition)
        return (
            (runs_here and partition not in self._member.assigned.active.get(subtopology, ()))
            or process_id in self._holders.standby(subtopology, partition)
            or self._is_warmup_of_another(subtopology, partition)
        )

    def _is_warmup_held(self, subtopology: str, partition: int) -> bool:
        process_id = self._member.process_id
        return (
            process_id in self._holders.active(subtopology, partition)
            or self._is_standby_of_another(subtopology, partition)
            or process_id in self._holders.warmup(subtopology, partition)
        )

    def _is_standby_of_another(self, subtopology: str, partition: int) -> bool:
        is_here = self._member.process_id in self._holders.standby(subtopology, partition)
        return is_here and partition not in self._member.assigned.standby.get(subtopology, ())

    def _is_warmup_of_another(self, subtopology: str, partition: int) -> bool:
        is_here = self._member.process_id in self._holders.warmup(subtopology, partition)
        return is_here and partition not in self._member.assigned.warmup.get(subtopology, ())


def _convert(owned: Tasks, old_role: _Changes, new_role: _Changes) -> None:
    """A copy of one kind becomes one of the other: the member does the same with both."""
    for subtopology, partition in _each(owned):
        if new_role.give_now(subtopology, partition):
            _discard(old_role.revoked, subtopology, partition)


def _each(tasks: Mapping[str, Collection[int]]) -> list[tuple[str, int]]:
    return [(subtopology, partition) for subtopology, parts in tasks.items() for partition in parts]


def _add(tasks: dict[str, set[int]], subtopology: str, partition: int) -> None:
    tasks.setdefault(subtopology, set()).add(partition)


def _discard(tasks: dict[str, set[int]], subtopology: str, partition: int) -> None:
    partitions = tasks.get(subtopology)
    if partitions is not None:
        partitions.discard(partition)
        if not partitions:
            del tasks[subtopology]


def _merged(some: Mapping[str, set[int]], others: Mapping[str, set[int]]) -> Tasks:
    return {of: some.get(of, set()) | others.get(of, set()) for of in dict.fromkeys((*some, *others))}
