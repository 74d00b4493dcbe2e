import io
import re

import pytest

from broker.logs import Level, Log, one_line


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
