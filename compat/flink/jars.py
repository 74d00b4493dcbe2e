"""Where the jars of Flink and its connector are, with those of the client that it is made for."""

from functools import cache
from pathlib import Path
from typing import Final

from compat.java_programs import ROOT
from compat.made_once import made_once
from compat.oracle.jars import find_jars, run_maven

VERSION: Final = "5.0.0-2.2"
"""The connector's latest; it takes kafka-clients 4.2.0."""

FLINK_VERSION: Final = "2.2.1"
"""The latest that the connector is made for."""

CACHE = ROOT / "build" / f"flink-connector-kafka-{VERSION}"


@cache
def find_flink_jars() -> Path:
    """The folder, filled through Maven if it is not there yet.  Raises KafkaMissing."""
    find_jars()  # against which all programs are compiled
    return made_once(
        CACHE,
        lambda folder: run_maven(
            Path(__file__).with_name("pom.xml"),
            folder,
            f"-Dconnector.version={VERSION}",
            f"-Dflink.version={FLINK_VERSION}",
        ),
    )
