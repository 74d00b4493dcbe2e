"""Reads ``scenarios.toml``, the one list of scenarios."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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


@cache
def areas() -> tuple[Area, ...]:
    """All areas, in the order of the list."""
    return tuple(Area(name, table["title"]) for name, table in _document().items())


@cache
def scenarios() -> dict[str, Scenario]:
    """All scenarios by name, in the order of the list."""
    found: dict[str, Scenario] = {}
    for area, table in _document().items():
        for name, fields in table["scenarios"].items():
            if name in found:
                raise ValueError(f"{SCENARIOS_FILE.name} has two scenarios called {name}")
            found[name] = Scenario(name=name, area=area, **fields)
    return found


@cache
def _document() -> dict[str, Any]:
    with SCENARIOS_FILE.open("rb") as file:
        return tomllib.load(file)
