"""Habits that are easy to lose sight of, read off the source."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("ottla", "broker", "storage", "protocol", "tests", "compat", "benchmarks")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
TESTS = [path for path in SOURCES if path.name.startswith("test_")]
REAL_TIME_FOLDERS = ("integration",)
"""Here a real process is waited for, so time really passes."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_left_for_later(path: Path) -> None:
    if path == Path(__file__):
        return
    unfinished = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    assert unfinished.findall(path.read_text()) == []


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_really_sleeps(path: Path) -> None:
    if path.parent.name in REAL_TIME_FOLDERS or "compat" in path.parts:
        return
    assert re.findall(r"\btime\.sleep\(|\basyncio\.sleep\(", path.read_text()) == []


def test_nothing_names_a_place_on_somebody_s_machine() -> None:
    places = re.compile(
        r"/(?:home|root|Users|work)/\w+|https?://(?:[\w.-]*pypi|[\w.-]*pythonhosted|repo\w*\.maven)"
    )
    settings = [ROOT / name for name in ("Makefile", "pyproject.toml", ".ci/run", "compat/oracle/pom.xml")]
    texts = [*SOURCES, *ROOT.glob("*.md"), *settings]
    found = {str(path): places.findall(path.read_text()) for path in texts if path != Path(__file__)}
    assert {path: hits for path, hits in found.items() if hits} == {}


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_name_files_that_exist(name: str) -> None:
    """Paths in backticks; those with a placeholder such as ``<api>`` name no file."""
    paths = re.findall(r"`([a-z_]+/[\w./-]+)`", (ROOT / name).read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []
