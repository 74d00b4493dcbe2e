"""The scenarios of kcat."""

from functools import cache
from pathlib import Path
from typing import Final

from compat.scenarios.catalogue import Catalogue, read

SCENARIOS_FILE = Path(__file__).with_name("scenarios.toml")

TITLE: Final = "kcat, with a [list](compat/c_kcat/scenarios.toml) of what one does with it:"


@cache
def kcat_catalogue() -> Catalogue:
    return read(TITLE, SCENARIOS_FILE)
