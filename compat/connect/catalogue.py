"""The scenarios of Kafka Connect."""

from functools import cache
from pathlib import Path

from compat.scenarios.catalogue import Catalogue, read

TITLE = (
    "Kafka Connect, with workers in distributed mode that write exactly once (KIP-618),"
    " has a [list](compat/connect/scenarios.toml) of its own:"
)


@cache
def connect_catalogue() -> Catalogue:
    return read(TITLE, Path(__file__).with_name("scenarios.toml"))
