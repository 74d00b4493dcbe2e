"""The scenarios of Quix Streams."""

from functools import cache
from pathlib import Path
from typing import Final

from compat.scenarios.catalogue import Catalogue, read

SCENARIOS_FILE = Path(__file__).with_name("scenarios.toml")

TITLE: Final = (
    "Quix Streams, which keeps state in changelogs, has a [list](compat/quix/scenarios.toml) of its own:"
)


@cache
def quix_catalogue() -> Catalogue:
    return read(TITLE, SCENARIOS_FILE)
