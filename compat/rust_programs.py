"""Rust programs of the project: built on first use, with the crates that they pin, and kept."""

import hashlib
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from compat.made_once import made_once

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "rust"
BUILD_TIMEOUT_SECONDS = 1800
"""Crates may have to be fetched, and there are dozens."""


class RustMissing(Exception):
    """A program cannot be built here; the text says why."""


class NotBuilt(Exception):
    """A program of ours is wrong; the text is what the compiler says."""


@cache
def built(sources: Path) -> Path:
    """The binary of the program in the folder ``sources``.  Raises RustMissing and NotBuilt."""
    known_by = hashlib.sha256()
    for file in sorted([*sources.glob("src/*.rs"), *sources.glob("Cargo.*")]):
        known_by.update(file.name.encode() + b"\0" + file.read_bytes())
    return made_once(
        CACHE / f"{sources.name}-{known_by.hexdigest()[:12]}", lambda binary: _build(sources, binary)
    )


def pinned_version(sources: Path, crate: str) -> str:
    """The version of a crate that a program is built with."""
    locked = (sources / "Cargo.lock").read_text()
    found = re.search(rf'name = "{crate}"\nversion = "(.*)"\n', locked)
    if found is None:
        raise ValueError(f"{sources.name} does not pin {crate}")
    return found[1]


def _build(sources: Path, binary: Path) -> None:
    """What is compiled of crates is kept for the next change of the program."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise RustMissing("cargo is not installed")
    try:
        _run(sources, [cargo, "fetch", "--locked"])
    except (NotBuilt, subprocess.TimeoutExpired) as error:
        raise RustMissing(f"the crates of {sources.name} cannot be had: {error}") from error
    target = CACHE / f"{sources.name}.target"
    _run(sources, [cargo, "build", "--quiet", "--locked", "--offline", "--target-dir", str(target)])
    shutil.copy(target / "debug" / sources.name, binary)


def _run(folder: Path, command: list[str]) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_SECONDS, check=False
    )
    if done.returncode:
        raise NotBuilt((done.stderr or done.stdout).strip())
