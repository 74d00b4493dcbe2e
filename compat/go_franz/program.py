"""The program that carries out calls with franz-go."""

import sys
from pathlib import Path

from compat import go_programs
from compat.go_programs import GoMissing, built
from compat.scenarios.missing import ClientMissing

SOURCES = Path(__file__).resolve().parent
MODULE = "github.com/twmb/franz-go"


def command() -> list[str]:
    """Builds it if need be.  Raises ClientMissing."""
    try:
        return [str(built(SOURCES))]
    except GoMissing as missing:
        raise ClientMissing(f"no franz-go: {missing}") from missing


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    command()
    return [sys.executable, "-m", "compat.go_franz"]


def pinned_version() -> str:
    return go_programs.pinned_version(SOURCES, MODULE)
