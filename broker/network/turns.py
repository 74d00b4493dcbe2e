"""Long steps take turns, so that a small request waits for one of them, however many peers are busy.

Between two looks at the sockets Trio lets every task run that can.  A step of a connection with a large
request (a megabyte received, or checked and written) takes as long as ten or twenty small requests: if each
of several busy peers made one, everybody else would wait for all of them.
"""

from collections import deque
from types import TracebackType

from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, reschedule, wait_task_rescheduled


class Turns:
    """At most one long step between two looks at the sockets, while ``run`` runs.

    ``await take()``, then make the step at once, inside ``with turns``; it must not await anything.  Whoever
    waits longest is the next.  A turn that is free costs nothing, not even a checkpoint.

    Invariant: nobody waits unless the turn is taken, and then somebody has been rescheduled who frees it.
    """

    __slots__ = ("_keeper", "_taken", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()
        self._keeper: Task | None = None
        self._taken = False

    async def run(self) -> None:
        """Free the turn again when the sockets have been looked at; until cancelled."""

        def abort(_: RaiseCancelT) -> Abort:
            self._keeper = None
            return Abort.SUCCEEDED

        while True:
            self._keeper = current_task()
            await wait_task_rescheduled(abort)
            self._free()

    async def take(self) -> None:
        """Wait for a turn, if another long step was made since the last look."""
        if not self._taken:
            self._taken = True
            return
        task = current_task()

        def abort(_: RaiseCancelT) -> Abort:
            self._waiting.remove(task)
            return Abort.SUCCEEDED

        self._waiting.append(task)
        await wait_task_rescheduled(abort)

    def __enter__(self) -> None:
        assert self._taken

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        keeper = self._keeper
        if self._waiting or keeper is None:
            self._free()  # whoever is next runs after the next look
        else:
            self._keeper = None
            reschedule(keeper)

    def _free(self) -> None:
        if self._waiting:
            reschedule(self._waiting.popleft())
        else:
            self._taken = False
