"""Where the jars of Kafka Streams are: beside those of the broker, in a folder of their own."""

from functools import cache
from pathlib import Path

from compat.made_once import made_once
from compat.oracle.jars import KAFKA_VERSION, find_jars, run_maven

CACHE = Path(__file__).resolve().parents[2] / "build" / f"kafka-streams-{KAFKA_VERSION}"


@cache
def find_streams_jars() -> Path:
    """The folder, filled through Maven if it is not there yet.  Raises KafkaMissing."""
    find_jars()
    return made_once(CACHE, lambda folder: run_maven(Path(__file__).with_name("pom.xml"), folder))
