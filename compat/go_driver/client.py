"""A Go client: a program of its own folder, which carries out calls with it."""

import sys
from pathlib import Path
from typing import NamedTuple

from compat import go_programs
from compat.go_programs import GoMissing, built
from compat.scenarios.missing import ClientMissing


class GoClient(NamedTuple):
    """Where the client is, and what it is called."""

    package: str
    """The package of its driver, which is the folder of its program."""
    module: str
    """The Go module that is tried."""

    @property
    def sources(self) -> Path:
        return go_programs.ROOT / self.package.replace(".", "/")

    def command(self) -> list[str]:
        """The program; it is built if need be.  Raises ClientMissing."""
        try:
            return [str(built(self.sources))]
        except GoMissing as missing:
            raise ClientMissing(f"no {self.module}: {missing}") from missing

    def driver_command(self, module: str = "") -> list[str]:
        """The driver that plays the scenarios with it, or another module of it.  Raises ClientMissing."""
        self.command()
        return [sys.executable, "-m", self.package + module]

    def pinned_version(self) -> str:
        return go_programs.pinned_version(self.sources, self.module)


FRANZ = GoClient("compat.go_franz", "github.com/twmb/franz-go")
SARAMA = GoClient("compat.go_sarama", "github.com/IBM/sarama")
SEGMENTIO = GoClient("compat.go_segmentio", "github.com/segmentio/kafka-go")
