"""The scenarios of Spring Kafka."""

from functools import cache
from pathlib import Path
from typing import Final

from compat.scenarios.catalogue import Catalogue, read

SCENARIOS_FILE = Path(__file__).with_name("scenarios.toml")

TITLE: Final = "Spring Kafka, with a [list](compat/spring/scenarios.toml) of what applications do with it:"


@cache
def spring_catalogue() -> Catalogue:
    return read(TITLE, SCENARIOS_FILE)
