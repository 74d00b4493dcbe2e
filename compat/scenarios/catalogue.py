"""Lists of scenarios: the one in ``scenarios.toml`` that most clients share, and what others are made of."""

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

SCENARIOS_FILE = Path(__file__).with_name("scenarios.toml")


class Area(NamedTuple):
    """Scenarios that belong together; a column of the README's matrix."""

    name: str
    title: str


class Scenario(NamedTuple):
    """One behaviour that a client is tried with."""

    name: str
    area: str
    title: str
    does: str
    holds: str
    alone: bool = False
    """Whether no other scenario may run meanwhile, of this client or another."""


class Catalogue(NamedTuple):
    """A list of scenarios."""

    title: str
    """What the README says above the results; empty for the list that most clients share."""
    areas: tuple[Area, ...]
    scenarios: dict[str, Scenario]
    """By name, in order."""


@cache
def shared() -> Catalogue:
    """The list that most clients share."""
    return read("", SCENARIOS_FILE)


def areas() -> tuple[Area, ...]:
    """All areas of the shared list."""
    return shared().areas


def scenarios() -> dict[str, Scenario]:
    """All scenarios of the shared list by name."""
    return shared().scenarios


def read(title: str, file: Path) -> Catalogue:
    """A list that is written down in a file."""
    document = tomllib.loads(file.read_text())
    found: dict[str, Scenario] = {}
    for area, table in document.items():
        for name, fields in table["scenarios"].items():
            if name in found:
                raise ValueError(f"{file.name} has two scenarios called {name}")
            found[name] = Scenario(name=name, area=area, **fields)
    return Catalogue(title, tuple(Area(name, table["title"]) for name, table in document.items()), found)
