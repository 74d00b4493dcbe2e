"""Long steps take turns, so that a small request waits for one of them, however many peers are busy.

Between two looks at the sockets Trio lets every task run that can.  A step of a connection with a large
request (a megabyte received, or checked and written) takes as long as ten or twenty small requests: if each
of several busy peers made one, everybody else would wait for all of them.
"""

from collections import deque
from types import TracebackType

from trio.lowlevel import (
    Abort,
    RaiseCancelT,
    Task,
    cancel_shielded_checkpoint,
    current_task,
    reschedule,
    wait_task_rescheduled,
)

STEPS_ALONE = 8
"""So many long steps in a row of one task say that no other is about to make one."""


class Turns:
    """At most one task makes long steps between two looks at the sockets.

    ``await take()``, then make the step at once, inside ``with turns``; it must not await anything.  Whoever
    waits longest is the next.  When nobody else makes long steps they cost a task nothing, not even a
    checkpoint: so is it believed to be after ``STEPS_ALONE``.

    Invariant: nobody waits unless the turn is given to somebody, who passes it on when the step is made.
    """

    __slots__ = ("_in_a_row", "_is_given", "_last", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()
        self._is_given = False
        self._last: Task | None = None
        """Who made the last step."""
        self._in_a_row = 0
        """How many steps before that were made by the same task."""

    async def take(self) -> None:
        """Wait for a turn, if there may have been a long step since the last look."""
        task = current_task()
        if self._is_given:

            def abort(_: RaiseCancelT) -> Abort:
                self._waiting.remove(task)
                return Abort.SUCCEEDED

            self._waiting.append(task)
            await wait_task_rescheduled(abort)
        else:
            self._is_given = True
            if self._last is not task or self._in_a_row < STEPS_ALONE:
                await cancel_shielded_checkpoint()
        if self._last is task:
            self._in_a_row += 1
        else:
            self._last = task
            self._in_a_row = 0

    def __enter__(self) -> None:
        assert self._is_given

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._waiting:
            reschedule(self._waiting.popleft())  # it runs after the next look
        else:
            self._is_given = False
