"""The line that tells how far long work is."""

import io

import pytest

from ottla.progress import Progress, size_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("ottla.progress.time.monotonic", lambda: now[0])
    return now


def test_short_work_shows_nothing(clock: list[float]) -> None:
    terminal = Terminal()
    shown = Progress(100, terminal)
    shown.moved(50)
    shown.hide()
    assert terminal.getvalue() == ""


def test_long_work_shows_how_far_it_is_and_what_is_left(clock: list[float]) -> None:
    terminal = Terminal()
    shown = Progress(4 << 20, terminal)
    clock[0] += 1
    shown.moved(1 << 20)
    bar = "█" * 7
    assert terminal.getvalue() == f"\r\x1b[K 25% |{bar:<30}| 1.0 MiB of 4.0 MiB, 1.0 MiB/s, 3 s left"
    shown.moved(1 << 20)
    assert terminal.getvalue().count("\r") == 1, "not so soon again"
    shown.hide()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_what_is_no_terminal_gets_no_line(clock: list[float]) -> None:
    stream = io.StringIO()
    shown = Progress(10, stream)
    clock[0] += 10
    shown.moved(5)
    shown.hide()
    assert stream.getvalue() == ""


def test_more_than_was_expected_is_no_more_than_all(clock: list[float]) -> None:
    terminal = Terminal()
    shown = Progress(0, terminal)
    clock[0] += 1
    shown.moved(5)
    assert "100%" in terminal.getvalue()


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes_for_people(count: int, text: str) -> None:
    assert size_text(count) == text
