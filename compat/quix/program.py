"""The processes that run applications of Quix Streams."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from compat.python_environments import Environment

CLIENT: Final = "quixstreams"
QUIX: Final = Environment(CLIENT, Path(__file__).with_name("requirements.txt"))
PROGRAM = Path(__file__).with_name("application.py")
STOP_SECONDS_MAX = 60

SETTINGS: Final = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""A broker that misses whoever has crashed soon enough for a scenario."""


def driver_command() -> list[str]:
    """The driver that plays the scenarios with it.  Raises ClientMissing."""
    QUIX.find_python()
    return [sys.executable, "-m", "compat.quix"]


class Process:
    """A process with one application, which begins to start."""

    def __init__(self, told: Mapping[str, object]) -> None:
        self._process = subprocess.Popen(
            [str(QUIX.find_python()), "-W", "ignore", str(PROGRAM), json.dumps(told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait(STOP_SECONDS_MAX)

    def stop(self) -> int:
        """Let it commit and leave; its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
