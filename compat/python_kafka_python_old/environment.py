"""The virtual environment of the old client: made on first use, kept in a folder that Git ignores."""

import hashlib
import subprocess
import sys
from functools import cache
from pathlib import Path

from compat.made_once import made_once
from compat.scenarios.missing import ClientMissing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REQUIREMENTS = HERE / "requirements.txt"
CACHE = ROOT / "build" / "clients"
INSTALL_TIMEOUT_SECONDS = 300
SHOWN = 400


def pinned_version() -> str:
    """The version of kafka-python that the requirements name."""
    for line in REQUIREMENTS.read_text().splitlines():
        if line.startswith("kafka-python=="):
            return line.partition("==")[2].strip()
    raise ValueError(f"{REQUIREMENTS.name} does not pin kafka-python")


@cache
def find_python() -> Path:
    """The Python that has the old client.  Raises ClientMissing."""
    kind = f"{sys.implementation.cache_tag}-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:8]}"
    environment = made_once(CACHE / f"kafka-python-{pinned_version()}-{kind}", _make)
    return environment / "bin" / "python"


def _make(environment: Path) -> None:
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    # This environment's pip installs into the other one, which needs none of its own.
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--no-deps", "--requirement", str(REQUIREMENTS)])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientMissing(f"no environment for kafka-python {pinned_version()}: {error}") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-SHOWN:]
        raise ClientMissing(f"no environment for kafka-python {pinned_version()}: {said}")
