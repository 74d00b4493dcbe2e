"""Virtual environments of libraries that tests do not share: made on first use, kept below ``build``."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from compat.made_once import made_once
from compat.scenarios.missing import ClientMissing

CACHE = Path(__file__).resolve().parent.parent / "build" / "clients"
INSTALL_TIMEOUT_SECONDS = 600
SHOWN = 400


class Environment(NamedTuple):
    """The environment of one library."""

    package: str
    requirements: Path
    """Names every package that it has, each with its version."""

    def pinned_version(self) -> str:
        """The version of the library that the requirements name."""
        for line in self.requirements.read_text().splitlines():
            if line.startswith(f"{self.package}=="):
                return line.partition("==")[2].strip()
        raise ValueError(f"{self.requirements.name} does not pin {self.package}")

    def find_python(self) -> Path:
        """The Python that has the library.  Raises ClientMissing."""
        known_by = hashlib.sha256(self.requirements.read_bytes()).hexdigest()[:8]
        kind = f"{sys.implementation.cache_tag}-{known_by}"
        environment = made_once(CACHE / f"{self.package}-{self.pinned_version()}-{kind}", self._install)
        return environment / "bin" / "python"

    def _install(self, environment: Path) -> None:
        self._run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
        # This environment's pip installs into the other one, which needs none of its own.
        python = environment / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        self._run([*pip, "install", "--quiet", "--no-deps", "--requirement", str(self.requirements)])

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClientMissing(f"{self._missing()}: {error}") from error
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-SHOWN:]
            raise ClientMissing(f"{self._missing()}: {said}")

    def _missing(self) -> str:
        return f"no environment for {self.package} {self.pinned_version()}"
