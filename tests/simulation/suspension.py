"""A process that stands still while the others go on."""

import math

import trio
import trio._core._run as trio_run


class Suspension:
    """All timers below ``scope`` stand, until ``end``: then those go off whose time has come meanwhile.

    Begins between two steps of its tasks, when all of them wait.  Whoever else could wake one of them has to
    keep that for later.
    """

    def __init__(self, scope: trio.CancelScope) -> None:
        self.over = trio.Event()
        self._deadlines = [(each, each.deadline) for each in _scopes(scope) if each.deadline < math.inf]
        for each, _ in self._deadlines:
            each.deadline = math.inf

    def end(self) -> None:
        for each, deadline in self._deadlines:
            each.deadline = deadline
        self.over.set()


def _scopes(scope: trio.CancelScope) -> list[trio.CancelScope]:
    """It and all that are open in it, in whatever tasks."""
    statuses: list[trio_run.CancelStatus] = [] if scope._cancel_status is None else [scope._cancel_status]
    for status in statuses:
        statuses += status.children
    return [status._scope for status in statuses]
