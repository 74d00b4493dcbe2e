"""One line per event on standard error.  The standard ``logging`` would cost a fifth of the start-up time."""

import sys
import time
from collections.abc import Callable
from enum import IntEnum
from typing import TextIO


class Level(IntEnum):
    """How urgent a line is; the names are what the terminal shows."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


REPEAT_MS = 60_000
"""How long ``warn_seldom`` keeps silent about what it has said."""

REPEATED_MAX = 100
"""Different messages that ``warn_seldom`` remembers."""


class _Repeated:
    __slots__ = ("left_out", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        self.left_out = 0


class Log:
    """Writes lines such as ``2026-03-01 09:30:00.123 WARN  closed 10.0.0.7:4711: …``.

    Messages may quote what a peer sent: whatever would break the line or move the terminal's cursor is
    escaped. A standard error that cannot be written to (the terminal is gone, the pipe is closed) never
    stops the broker.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        level: Level = Level.INFO,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._now_ms = now_ms
        self._repeated: dict[str, _Repeated] = {}
        self.level = level

    def debug(self, message: str) -> None:
        """What only somebody who debugs the broker wants to read; hidden by default."""
        if self.level <= Level.DEBUG:
            self._write(Level.DEBUG, message)

    def info(self, message: str) -> None:
        """What happened, as intended.  Never once per request."""
        if self.level <= Level.INFO:
            self._write(Level.INFO, message)

    def warn(self, message: str) -> None:
        """Something a reader may want to change; the broker goes on."""
        if self.level <= Level.WARN:
            self._write(Level.WARN, message)

    def warn_seldom(self, message: str, *, about: str | None = None) -> None:
        """Warn of what many clients may cause many times: once a minute for all that is ``about`` the same.

        Without ``about`` that is the message itself.  What is left out is counted in the next line.
        """
        about = message if about is None else about
        now_ms = self._now_ms()
        known = self._repeated.get(about)
        if known is not None and now_ms - known.since_ms < REPEAT_MS:
            known.left_out += 1
            return
        if len(self._repeated) >= REPEATED_MAX:
            self._repeated.clear()
        self._repeated[about] = _Repeated(now_ms)
        if known is not None and known.left_out:
            message += f" (and {known.left_out} times more before)"
        self.warn(message)

    def error(self, message: str) -> None:
        """Something failed that should have worked."""
        if self.level <= Level.ERROR:
            self._write(Level.ERROR, message)

    def failure(self, message: str, error: BaseException) -> None:
        """An error that nobody expected: the line, then the traceback that finds it."""
        if self.level > Level.ERROR:
            return
        import traceback  # loaded by Trio anyway; here so that this module costs nothing

        lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
        self._write(Level.ERROR, message, [f"    {one_line(line)}" for line in lines])

    def _write(self, level: Level, message: str, more: list[str] | None = None) -> None:
        now_ms = self._now_ms()
        seconds, milliseconds = divmod(now_ms, 1000)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
        text = f"{moment}.{milliseconds:03d} {level.name:<5} {one_line(message)}\n"
        if more:
            text += "\n".join(more) + "\n"
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream has been closed
            pass


def one_line(text: str) -> str:
    """``text`` with everything unprintable escaped, so that it is one line and only text."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
