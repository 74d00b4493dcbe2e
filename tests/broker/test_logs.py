import io
import re

import pytest

from broker.logs import LOGGERS, REQUESTS, ROOT, Level, Log, logger_of, one_line


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_line_has_time_level_and_message() -> None:
    output = io.StringIO()
    log = Log(output, now_ms=lambda: 1_700_000_000_042)
    log.info("ready")
    log.error("disk full")
    first, second = output.getvalue().splitlines()
    assert re.fullmatch(r"2023-11-1\d \d\d:\d\d:20\.042 INFO  ready", first)
    assert second.endswith(" ERROR disk full")


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (Level.DEBUG, ["DEBUG", "INFO", "WARN", "ERROR", "ERROR"]),
        (Level.INFO, ["INFO", "WARN", "ERROR", "ERROR"]),
        (Level.WARN, ["WARN", "ERROR", "ERROR"]),
        (Level.ERROR, ["ERROR", "ERROR"]),
    ],
)
def test_what_is_below_the_level_is_not_shown(level: Level, shown: list[str]) -> None:
    output = io.StringIO()
    log = Log(output, level=level)
    log.debug("a")
    log.info("b")
    log.warn("c")
    log.error("d")
    log.failure("e", ValueError())
    lines = [line for line in output.getvalue().splitlines() if not line.startswith(" ")]
    assert [line.split()[2] for line in lines] == shown


def test_debug_is_hidden_by_default() -> None:
    output = io.StringIO()
    Log(output).debug("details")
    assert output.getvalue() == ""


def test_an_exception_shows_where_it_came_from() -> None:
    output = io.StringIO()

    def broken() -> None:
        raise ZeroDivisionError("a mistake\x1b[2J")

    try:
        broken()
    except ZeroDivisionError as error:
        Log(output).failure("it failed", error)
    first, *rest = output.getvalue().splitlines()
    assert first.endswith("ERROR it failed")
    assert all(line.startswith("    ") for line in rest)
    assert any("in broken" in line for line in rest)
    assert rest[-1].endswith(r"ZeroDivisionError: a mistake\x1b[2J")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße: ok", "Grüße: ok"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[31mred\r", r"\x1b[31mred\r"),
        ("\u202eright to left", r"\u202eright to left"),
    ],
)
def test_a_peer_cannot_write_lines_of_its_own(text: str, shown: str) -> None:
    assert one_line(text) == shown
    output = io.StringIO()
    Log(output).warn(text)
    assert len(output.getvalue().splitlines()) == 1


def test_a_terminal_that_is_gone_stops_nobody() -> None:
    Log(Broken()).error("unheard")
    closed = io.StringIO()
    closed.close()
    Log(closed).error("unheard")


def test_what_many_clients_cause_is_said_once_a_minute() -> None:
    output = io.StringIO()
    now_ms = [0]
    log = Log(output, now_ms=lambda: now_ms[0])
    for port in (1, 2, 3):
        log.warn_seldom(f"closed {port}", about="closed")
    log.warn_seldom("something else")
    now_ms[0] = 60_000
    log.warn_seldom("closed 4", about="closed")
    log.warn_seldom("something else")
    messages = [line.partition(" WARN  ")[2] for line in output.getvalue().splitlines()]
    assert messages == [
        "closed 1",
        "something else",
        "closed 4 (and 2 times more before)",
        "something else",
    ]


# Loggers


@pytest.mark.parametrize(
    ("module", "logger"),
    [
        ("broker.app", "kafka.server"),
        ("broker.network.listener", "kafka.network"),
        ("broker.partitions.cleaning", "org.apache.kafka.storage.internals.log.LogCleaner"),
        ("broker.partitions.cleanings", "org.apache.kafka.storage.internals.log"),
        ("broker.groups.streams.internal_topics", "org.apache.kafka.coordinator.group"),
        ("storage.worker", "kafka.server"),
    ],
)
def test_a_module_s_lines_have_a_logger(module: str, logger: str) -> None:
    assert logger_of(module) == logger
    assert logger in LOGGERS


def written_by(module: str, log: Log, message: str) -> None:
    """What ``log.warn_seldom`` does when a module calls it."""
    exec("log.warn_seldom(message)", {"__name__": module, "log": log, "message": message})


def test_the_module_that_writes_a_line_decides_whether_it_is_shown() -> None:
    output = io.StringIO()
    log = Log(output)
    log.set_level("org.apache.kafka.coordinator", Level.ERROR)
    log.set_level("org.apache.kafka.coordinator.share", Level.TRACE)
    written_by("broker.groups.service", log, "hidden")
    written_by("broker.share.service", log, "shown")
    written_by("broker.network.listener", log, "shown, too")
    log.set_level("org.apache.kafka.coordinator", None)
    written_by("broker.groups.service", log, "shown again")
    assert [line.partition("  ")[2] for line in output.getvalue().splitlines()] == [
        "shown",
        "shown, too",
        "shown again",
    ]


def test_requests_are_logged_when_somebody_wants_them() -> None:
    log = Log(io.StringIO())
    told: list[bool] = []
    log.on_requests(told.append)
    log.set_level(ROOT, Level.DEBUG)
    log.set_level(REQUESTS, Level.DEBUG)
    log.set_level(REQUESTS, None)
    log.set_level(ROOT, Level.INFO)
    assert told == [False, True, True, False]


def test_nothing_is_as_bad_as_fatal() -> None:
    output = io.StringIO()
    log = Log(output, level=Level.FATAL)
    log.error("hidden")
    log.failure("hidden", ValueError())
    assert output.getvalue() == ""
