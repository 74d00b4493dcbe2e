"""Where the program that carries out calls with rskafka is."""

import sys
from pathlib import Path

from compat import rust_programs
from compat.rust_programs import RustMissing, built
from compat.scenarios.missing import ClientMissing

SOURCES = Path(__file__).resolve().parent
CRATE = "rskafka"


def command() -> list[str]:
    """The program; it is built if need be.  Raises ClientMissing."""
    try:
        return [str(built(SOURCES))]
    except RustMissing as missing:
        raise ClientMissing(f"no {CRATE}: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.rust_rskafka"]


def pinned_version() -> str:
    return rust_programs.pinned_version(SOURCES, CRATE)
