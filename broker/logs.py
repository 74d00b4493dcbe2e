"""One line per event on standard error.  The standard ``logging`` would cost a fifth of the start-up time."""

import sys
import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, TextIO


class Level(IntEnum):
    """How urgent a line is; the names are what the terminal shows.  No line is of the first or the last."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50


ROOT: Final = "root"
REQUESTS: Final = "kafka.request.logger"

_LOGGER_OF_MODULES: Final = (
    ("broker.partitions.cleaning", "org.apache.kafka.storage.internals.log.LogCleaner"),
    ("broker.partitions", "org.apache.kafka.storage.internals.log"),
    ("broker.controller", "org.apache.kafka.controller"),
    ("broker.metadata", "org.apache.kafka.controller"),
    ("broker.raft", "org.apache.kafka.controller"),
    ("broker.groups", "org.apache.kafka.coordinator.group"),
    ("broker.share", "org.apache.kafka.coordinator.share"),
    ("broker.transactions", "org.apache.kafka.coordinator.transaction"),
    ("broker.coordination", "org.apache.kafka.coordinator"),
    ("broker.network", "kafka.network"),
    ("", "kafka.server"),
)
"""Whose lines are whose: the first that fits."""

LOGGERS: Final = tuple(
    sorted({ROOT, REQUESTS, "kafka", "org.apache.kafka", *(logger for _, logger in _LOGGER_OF_MODULES)})
)
"""Named as Kafka's operators know them.  One without a level of its own has that of the next one above."""


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
        self._levels: dict[str, Level] = {ROOT: level, REQUESTS: Level.WARN}
        self._on_requests: list[Callable[[bool], None]] = []

    # Which lines are wanted

    @property
    def level(self) -> Level:
        """That of lines whose logger has none of its own, nor one above it."""
        return self._levels[ROOT]

    def levels(self) -> Mapping[str, Level]:
        """The level that counts for each logger."""
        return {logger: self._level_of(logger) for logger in LOGGERS}

    def set_level(self, logger: str, level: Level | None) -> None:
        """Give a logger a level of its own, or (not the root) take it away."""
        if level is None:
            self._levels.pop(logger, None)
        else:
            self._levels[logger] = level
        for follow in self._on_requests:
            follow(self.shows_requests)

    def set_levels(self, levels: Mapping[str, Level]) -> None:
        """Give loggers levels of their own."""
        for logger, level in levels.items():
            self.set_level(logger, level)

    @property
    def shows_requests(self) -> bool:
        """Whether each request is to be logged, with ``request``."""
        return self._level_of(REQUESTS) <= Level.DEBUG

    def on_requests(self, follow: Callable[[bool], None]) -> None:
        """Call ``follow`` whenever ``shows_requests`` may have changed, and now if it is true already."""
        self._on_requests.append(follow)
        if self.shows_requests:
            follow(True)

    def _level_of(self, logger: str) -> Level:
        while logger:
            level = self._levels.get(logger)
            if level is not None:
                return level
            logger = logger.rpartition(".")[0]
        return self._levels[ROOT]

    def _shows(self, level: Level) -> bool:
        """Whether the line that somebody is about to write is wanted: the module it comes from decides."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals["__name__"] == __name__:
            frame = frame.f_back
        return self._level_of(logger_of(frame.f_globals["__name__"])) <= level

    # Lines

    def request(self, message: str) -> None:
        """A request has come.  Only where ``shows_requests``."""
        self._write(Level.DEBUG, message)

    def debug(self, message: str) -> None:
        """What only somebody who debugs the broker wants to read; hidden by default."""
        if self._shows(Level.DEBUG):
            self._write(Level.DEBUG, message)

    def info(self, message: str) -> None:
        """What happened, as intended.  Never once per request."""
        if self._shows(Level.INFO):
            self._write(Level.INFO, message)

    def warn(self, message: str) -> None:
        """Something a reader may want to change; the broker goes on."""
        if self._shows(Level.WARN):
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
        if self._shows(Level.ERROR):
            self._write(Level.ERROR, message)

    def failure(self, message: str, error: BaseException) -> None:
        """An error that nobody expected: the line, then the traceback that finds it."""
        if not self._shows(Level.ERROR):
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


def logger_of(module: str) -> str:
    """Which logger the lines of a module belong to."""
    return next(
        logger for name, logger in _LOGGER_OF_MODULES if not name or f"{module}.".startswith(f"{name}.")
    )


def one_line(text: str) -> str:
    """``text`` with everything unprintable escaped, so that it is one line and only text."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
