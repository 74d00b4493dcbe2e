"""The program that carries out calls with a version of Kafka's Java client.

It is compiled against the newest one.  What an older one does not have is found out when it is called.
"""

import sys
from pathlib import Path

from compat.java_programs import CACHE, program_command
from compat.made_once import made_once
from compat.oracle.jars import KAFKA_VERSION, KafkaMissing, find_java, run_maven
from compat.scenarios.missing import ClientMissing

SOURCES = Path(__file__).resolve().parent
HEAP_MEBIBYTES = 256

NEWEST = KAFKA_VERSION
OLDER = ("3.9.1", "2.8.2", "2.1.1", "1.1.1", "0.11.0.3")
"""Down to the oldest that Apache Kafka 4.4 serves; ``refused.py`` has one that is older."""


def client_of(version: str) -> str:
    """What the matrix calls the client of a version."""
    return "kafka-clients" if version == NEWEST else f"kafka-clients ({'.'.join(version.split('.')[:2])})"


def command(version: str) -> list[str]:
    """Fetches and compiles what is not there yet.  Raises ClientMissing."""
    try:
        jars = None if version == NEWEST else _jars_of(version)
        return program_command(SOURCES, "Driver", heap_mebibytes=HEAP_MEBIBYTES, jars=jars)
    except KafkaMissing as missing:
        raise ClientMissing(f"no Java client {version}: {missing}") from missing


def driver_command(version: str) -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command(version)
    return [sys.executable, "-m", "compat.java_client", version]


def _jars_of(version: str) -> Path:
    find_java()
    return made_once(
        CACHE / f"kafka-clients-{version}",
        lambda folder: run_maven(SOURCES / "pom.xml", folder, f"-Dclients.version={version}"),
    )
