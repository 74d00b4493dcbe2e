"""Runs kcat."""

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from compat.scenarios.missing import ClientMissing
from compat.scenarios.python.checks import Unexpected
from compat.waiting import wait_until

CLIENT: Final = "kcat"
VERSION: Final = "1.7.1"
"""That of Debian 12, on librdkafka 2.0.2."""

PATIENCE_SECONDS = 30.0

SOON = ("-X", "fetch.wait.max.ms=100", "-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=200")
"""What makes no difference but in time."""


class Done(NamedTuple):
    """What kcat said until it ended."""

    exit_code: int
    output: bytes
    errors: str

    def records(self) -> list[dict[str, Any]]:
        """What ``-J`` printed."""
        return [json.loads(line) for line in self.output.splitlines()]


@cache
def find_kcat() -> Path:
    """Raises ClientMissing."""
    found = shutil.which("kcat")
    if found is None:
        raise ClientMissing("no kcat: it is not installed")
    return Path(found)


def installed_version() -> str:
    told = subprocess.run([find_kcat(), "-V"], capture_output=True, text=True, check=True).stdout
    return told.partition("Version ")[2].split()[0]


def run(address: str, *arguments: str | Path, given: bytes = b"", check: bool = True) -> Done:
    """Run kcat to its end, with ``given`` as its input."""
    done = subprocess.run(
        [find_kcat(), "-b", address, *arguments],
        input=given,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    found = Done(done.returncode, done.stdout, done.stderr.decode())
    if check and found.exit_code:
        raise Unexpected(f"kcat ended with {found.exit_code}: {found.errors}")
    return found


class Running:
    """A kcat that goes on, whose output and errors are files in ``folder``."""

    def __init__(self, address: str, folder: Path, *arguments: str, given: bytes | None = None) -> None:
        """With ``given``, its input begins so and does not end."""
        self._output = folder / "output"
        self._errors = folder / "errors"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [find_kcat(), "-b", address, *arguments],
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=output,
                stderr=errors,
            )
        if given is not None:
            assert self._process.stdin is not None
            self._process.stdin.write(given)
            self._process.stdin.flush()

    def records(self) -> list[dict[str, Any]]:
        """What ``-J`` printed so far."""
        whole = self._output.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def errors(self) -> str:
        return self._errors.read_text()

    def wait_for(self, holds: Callable[["Running"], object], what: str) -> None:
        wait_until(lambda: holds(self), what, patience_seconds=PATIENCE_SECONDS)

    def interrupt(self) -> int:
        """End it as Ctrl-C does; its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        if self._process.stdin is not None:
            self._process.stdin.close()  # which it is waiting for
        try:
            return self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
