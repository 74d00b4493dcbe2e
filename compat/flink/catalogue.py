"""The scenarios of Flink's connector."""

from functools import cache
from pathlib import Path
from typing import Final

from compat.scenarios.catalogue import Catalogue, read

SCENARIOS_FILE = Path(__file__).with_name("scenarios.toml")

TITLE: Final = "Apache Flink's connector, whose jobs have a [list](compat/flink/scenarios.toml) of their own:"


@cache
def flink_catalogue() -> Catalogue:
    return read(TITLE, SCENARIOS_FILE)
