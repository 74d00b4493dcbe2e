"""Habits that are easy to lose sight of, read off the source."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("ottla", "broker", "storage", "protocol", "tests", "compat", "benchmarks")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
TESTS = [path for path in SOURCES if path.name.startswith("test_")]
REAL_TIME_FOLDERS = {"integration", "compat"}
"""Here a real process is waited for, so time really passes."""


def hits(pattern: str, paths: Iterable[Path]) -> dict[str, list[str]]:
    """What of the pattern is in the files, this one apart."""
    wanted = re.compile(pattern)
    found = {
        str(path.relative_to(ROOT)): wanted.findall(path.read_text())
        for path in paths
        if path != Path(__file__)
    }
    return {path: hits for path, hits in found.items() if hits}


def test_nothing_is_left_for_later() -> None:
    assert hits(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", SOURCES) == {}


def test_no_test_really_sleeps() -> None:
    paths = [path for path in TESTS if REAL_TIME_FOLDERS.isdisjoint(path.parts)]
    assert hits(r"\btime\.sleep\(|\basyncio\.sleep\(", paths) == {}


def test_nothing_names_a_place_on_somebody_s_machine() -> None:
    places = r"/(?:home|root|Users|work)/\w+|https?://(?:[\w.-]*pypi|[\w.-]*pythonhosted|repo\w*\.maven)"
    settings = [ROOT / name for name in ("Makefile", "pyproject.toml", ".ci/run", "compat/oracle/pom.xml")]
    assert hits(places, [*SOURCES, *ROOT.glob("*.md"), *settings]) == {}


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_documents_name_files_that_exist(name: str) -> None:
    """Paths in backticks; those with a placeholder such as ``<api>`` name no file."""
    paths = re.findall(r"`([a-z_]+/[\w./-]+)`", (ROOT / name).read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []
