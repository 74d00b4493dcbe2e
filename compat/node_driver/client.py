"""A client for Node: a program of its own folder, which carries out calls with it."""

import sys
from pathlib import Path
from typing import NamedTuple

from compat import node_programs
from compat.node_programs import NodeMissing
from compat.scenarios.missing import ClientMissing


class NodeClient(NamedTuple):
    """Where the client is, and what it is called."""

    package: str
    """The Python package of its driver, which is the folder of its program."""
    module: str
    """The package of Node that is tried."""

    @property
    def sources(self) -> Path:
        return node_programs.ROOT / self.package.replace(".", "/")

    def command(self) -> list[str]:
        """The program; its packages are installed if need be.  Raises ClientMissing."""
        try:
            return node_programs.command(self.sources)
        except NodeMissing as missing:
            raise ClientMissing(f"no {self.module}: {missing}") from missing

    def driver_command(self) -> list[str]:
        """The driver that plays the scenarios with it.  Raises ClientMissing."""
        self.command()
        return [sys.executable, "-m", self.package]

    def pinned_version(self) -> str:
        return node_programs.pinned_version(self.sources, self.module)


KAFKAJS = NodeClient("compat.node_kafkajs", "kafkajs")
PLATFORMATIC = NodeClient("compat.node_platformatic", "@platformatic/kafka")
