"""The program that carries out calls with the Java client."""

import sys
from pathlib import Path

from compat.java_programs import program_command
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing

SOURCES = Path(__file__).resolve().parent
HEAP_MEBIBYTES = 256


def command() -> list[str]:
    """Compiles it if need be.  Raises ClientMissing."""
    try:
        return program_command(SOURCES, "Driver", heap_mebibytes=HEAP_MEBIBYTES)
    except KafkaMissing as missing:
        raise ClientMissing(f"no Java client: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.java_client"]
