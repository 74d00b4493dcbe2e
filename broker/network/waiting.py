"""The place of an answer that is not ready yet."""

from collections.abc import Callable
from typing import Generic, TypeVar

import trio

Answer = TypeVar("Answer")


class NotYet(Exception):
    """A handler raises it that has done nothing so far: the request is handled anew when ``waiting`` is
    answered."""

    def __init__(self, waiting: "Waiting[None]") -> None:
        super().__init__("something that the request needs is being made")
        self.waiting = waiting


class Waiting(Generic[Answer]):
    """What a handler returns when it cannot answer at once: a long poll, a joining member, a write on its
    way.

    Whoever holds it calls ``answer`` (or ``answer_with``, or ``fail``) when the time has come; the first
    call wins and later ones are ignored, so that an event and a deadline may race.  The connection sends
    the answer in its turn.  All calls happen in the Trio thread.

    ``deadline`` is Trio's time: when it passes unanswered, ``on_deadline`` is called, which normally answers.

    The request's bytes (a produced batch) are overwritten as soon as the handler has returned.  A handler
    whose work goes on with them, in a thread, says ``exclusive=True``: until the answer, or until
    ``release``, they stay, and no other request of the connection starts, so that batches are still
    appended in their order.

    ``droppable`` says that nothing is lost when no answer ever comes (long polls, joins): a stopping broker
    closes such connections at once instead of giving them time to finish.
    """

    __slots__ = (
        "_abandoned",
        "_abandoned_callbacks",
        "_answer",
        "_answered",
        "_build",
        "_error",
        "_notify",
        "_on_deadline",
        "deadline",
        "droppable",
        "exclusive",
    )

    def __init__(
        self,
        deadline: float | None = None,
        on_deadline: Callable[[], None] | None = None,
        *,
        exclusive: bool = False,
        droppable: bool = False,
    ) -> None:
        if deadline is not None and on_deadline is None:
            raise ValueError("a deadline needs somebody who answers when it passes")
        self.deadline = deadline
        self.exclusive = exclusive
        self.droppable = droppable
        self._on_deadline = on_deadline
        self._answer: Answer | None = None
        self._build: Callable[[], Answer] | None = None
        self._error: Exception | None = None
        self._answered = False
        self._abandoned = False
        self._notify: Callable[[], None] | None = None
        self._abandoned_callbacks: list[Callable[[], None]] | None = None

    def __repr__(self) -> str:
        state = "answered" if self._answered else "abandoned" if self._abandoned else "open"
        return f"<Waiting {state} deadline={self.deadline}>"

    @property
    def is_answered(self) -> bool:
        return self._answered

    @property
    def is_abandoned(self) -> bool:
        """The connection is gone: nobody will read an answer."""
        return self._abandoned

    def answer(self, response: Answer) -> None:
        """Settle the request.  ``None`` settles it without sending anything."""
        if not self._answered:
            self._answer = response
            self._settle()

    def answer_with(self, build: Callable[[], Answer]) -> None:
        """Settle the request with what ``build`` returns when the connection's own task comes to send it.

        The caller is not kept waiting: one produced batch may wake many long polls.
        """
        if not self._answered:
            self._build = build
            self._settle()

    def fail(self, error: Exception) -> None:
        """Settle the request as if its handler had raised ``error``."""
        if not self._answered:
            self._error = error
            self._settle()

    def release(self) -> None:
        """The request's bytes are not needed any longer, and the next request may start."""
        if self.exclusive:
            self.exclusive = False
            if self._notify is not None:
                self._notify()

    def result(self) -> Answer:
        """The answer.  Only once it is there; raises what ``fail`` was given, or what ``build`` raises."""
        if not self._answered:
            raise RuntimeError("not answered yet")
        if self._error is not None:
            raise self._error
        if self._build is not None:
            self._answer, self._build = self._build(), None
        return self._answer  # type: ignore[return-value]  # None only where Answer includes it

    def pass_on(self, to: "Waiting[Answer]") -> None:
        """Let ``to`` be answered, or released, when and as this one is."""

        def notified() -> None:
            if not self.exclusive:
                to.release()
            if not self._answered:
                self.notify(notified)
            elif self._error is not None:
                to.fail(self._error)
            else:
                to.answer_with(self.result)

        notified()

    async def wait(self) -> Answer:
        """Wait for the answer and return it.  For callers other than a connection: one at a time."""
        if not self._answered:
            answered = trio.Event()
            self.notify(answered.set)
            await answered.wait()
        return self.result()

    def on_abandoned(self, callback: Callable[[], None]) -> None:
        """Call this if the connection ends before the answer, so that nobody keeps waiting for it in vain."""
        if self._abandoned:
            callback()
        elif self._abandoned_callbacks is None:
            self._abandoned_callbacks = [callback]
        else:
            self._abandoned_callbacks.append(callback)

    # What follows is the connection's side.

    def notify(self, callback: Callable[[], None]) -> None:
        """Call this, once, in the moment of the answer; also in that of ``release``."""
        self._notify = callback

    def expire(self) -> None:
        """The deadline has passed."""
        if not self._answered and not self._abandoned and self._on_deadline is not None:
            self._on_deadline()

    def abandon(self) -> None:
        """The connection is gone.  Answers are ignored from now on."""
        if self._answered or self._abandoned:
            return
        self._abandoned = True
        self._notify = None
        callbacks, self._abandoned_callbacks = self._abandoned_callbacks, None
        for callback in callbacks or ():
            callback()

    def _settle(self) -> None:
        self._answered = True
        self._abandoned_callbacks = None
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()
