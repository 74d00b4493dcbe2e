"""The scenarios of Kafka Streams: those of ``scenarios.toml``, with each of the two protocols."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from compat.scenarios.catalogue import Area, Catalogue, Scenario

BEHAVIOURS_FILE = Path(__file__).with_name("scenarios.toml")

PROTOCOLS: Final = {
    "classic": "Classic protocol of Kafka Streams",
    "streams": "Streams protocol of Kafka Streams (KIP-1071)",
}

TITLE = (
    "Kafka Streams, which processes exactly once, has a [list](compat/streams/scenarios.toml) of its own,"
    " and brokers with short sessions:"
)


@cache
def behaviours() -> dict[str, dict[str, Any]]:
    """What is tried, by name: the fields of a scenario."""
    with BEHAVIOURS_FILE.open("rb") as file:
        return tomllib.load(file)


@cache
def streams_catalogue() -> Catalogue:
    return Catalogue(
        TITLE,
        tuple(Area(name, title) for name, title in PROTOCOLS.items()),
        {
            f"{protocol}-{name}": Scenario(name=f"{protocol}-{name}", area=protocol, **fields)
            for protocol in PROTOCOLS
            for name, fields in behaviours().items()
        },
    )
