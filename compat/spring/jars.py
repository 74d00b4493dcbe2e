"""Where the jars of Spring Kafka are, with those of the client that it is made for."""

from functools import cache
from pathlib import Path
from typing import Final

from compat.java_programs import ROOT
from compat.made_once import made_once
from compat.oracle.jars import find_jars, run_maven

VERSION: Final = "4.1.2"
"""Its latest; it takes kafka-clients 4.2.2."""

CACHE = ROOT / "build" / f"spring-kafka-{VERSION}"


@cache
def find_spring_jars() -> Path:
    """The folder, filled through Maven if it is not there yet.  Raises KafkaMissing."""
    find_jars()  # against which all programs are compiled
    return made_once(
        CACHE,
        lambda folder: run_maven(Path(__file__).with_name("pom.xml"), folder, f"-Dspring.version={VERSION}"),
    )
