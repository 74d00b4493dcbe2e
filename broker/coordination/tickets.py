"""The place of one request's answer while a machine and a log decide about it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.network.waiting import Waiting

Outcome = TypeVar("Outcome")
Answer = TypeVar("Answer")


class Ticket(Generic[Outcome]):
    """What a machine hands back together with an outcome.

    ``refused`` makes the outcome of a request that could not be decided at all: the coordinator is
    loading, has moved away, or could not write.  The first outcome counts, later ones are ignored.
    """

    __slots__ = ("_notify", "_outcome", "_refused", "is_settled")

    def __init__(self, refused: Callable[[ErrorCode], Outcome]) -> None:
        self._refused = refused
        self._outcome: Outcome | None = None
        self._notify: Callable[[], None] | None = None
        self.is_settled = False

    def settle(self, outcome: Outcome) -> None:
        if self.is_settled:
            return
        self.is_settled = True
        self._outcome = outcome
        if self._notify is not None:
            self._notify()

    def refuse(self, code: ErrorCode) -> None:
        if not self.is_settled:
            self.settle(self._refused(code))

    @property
    def outcome(self) -> Outcome:
        """Only once it is settled."""
        if not self.is_settled:
            raise RuntimeError("not settled yet")
        return self._outcome  # type: ignore[return-value]  # None only where Outcome includes it

    def when_settled(self, notify: Callable[[], None]) -> None:
        """Call this, once, in the moment of the outcome.  Only while there is none."""
        self._notify = notify

    def then(self, act: Callable[[], None]) -> None:
        """Call this, once, when there is an outcome; now, if there is one already."""
        if self.is_settled:
            act()
        else:
            self.when_settled(act)


def answer_of(
    ticket: Ticket[Outcome], render: Callable[[Outcome], Answer], *, droppable: bool = False
) -> "Answer | Waiting[Answer]":
    """What a handler returns: the rendered outcome, or the place where it will appear.

    ``droppable`` as ``Waiting`` has it: nothing is lost when no answer ever comes.
    """
    if ticket.is_settled:
        return render(ticket.outcome)
    from broker.network.waiting import Waiting

    waiting: Waiting[Answer] = Waiting(droppable=droppable)
    ticket.when_settled(lambda: waiting.answer_with(lambda: render(ticket.outcome)))
    return waiting


def answer_of_all(
    tickets: Sequence[Ticket[Any]],
    render: Callable[[], Answer],
    *,
    timeout_seconds: float | None = None,
) -> "Answer | Waiting[Answer]":
    """The same for a request that several partitions decide about: rendered when the last has.

    After ``timeout_seconds`` the others are refused with REQUEST_TIMED_OUT.
    """
    open_tickets = [ticket for ticket in tickets if not ticket.is_settled]
    if not open_tickets:
        return render()
    from broker.network.waiting import Waiting

    def time_is_over() -> None:
        for ticket in open_tickets:
            ticket.refuse(ErrorCode.REQUEST_TIMED_OUT)

    waiting: Waiting[Answer]
    if timeout_seconds is None:
        waiting = Waiting()
    else:
        waiting = Waiting(trio.current_time() + timeout_seconds, time_is_over)
    missing = len(open_tickets)

    def one_settled() -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            waiting.answer_with(render)

    for ticket in open_tickets:
        ticket.when_settled(one_settled)
    return waiting
