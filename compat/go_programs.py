"""Go programs of the project: built on first use, with the modules that they pin, and kept."""

import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

from compat.made_once import made_once

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "go"
BUILD_TIMEOUT_SECONDS = 900
"""Modules may have to be fetched."""


class GoMissing(Exception):
    """A program cannot be built here; the text says why."""


class NotBuilt(Exception):
    """A program of ours is wrong; the text is what the compiler says."""


@cache
def built(sources: Path) -> Path:
    """The binary of the program in the folder ``sources``.  Raises GoMissing and NotBuilt."""
    known_by = hashlib.sha256()
    for folder in (sources, *_modules_beside(sources)):
        for file in sorted([*folder.glob("*.go"), *folder.glob("go.*")]):
            known_by.update(file.name.encode() + b"\0" + file.read_bytes())
    return made_once(
        CACHE / f"{sources.name}-{known_by.hexdigest()[:12]}", lambda binary: _build(sources, binary)
    )


def _modules_beside(sources: Path) -> list[Path]:
    """Folders of the project that a program takes modules from."""
    lines = (sources / "go.mod").read_text().splitlines()
    return [sources / line.partition("=> ")[2] for line in lines if "=> ../" in line]


def pinned_version(sources: Path, module: str) -> str:
    """The version of a module that a program is built with, without its ``v``."""
    for line in (sources / "go.mod").read_text().splitlines():
        words = line.removeprefix("require").split()
        if words[:1] == [module]:
            return words[1].removeprefix("v")
    raise ValueError(f"{sources.name} does not pin {module}")


def _build(sources: Path, binary: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise GoMissing("go is not installed")
    try:
        _run(sources, [go, "mod", "download"])
    except (NotBuilt, subprocess.TimeoutExpired) as error:
        raise GoMissing(f"the modules of {sources.name} cannot be had: {error}") from error
    _run(sources, [go, "build", "-trimpath", "-o", str(binary), "."])


def _run(folder: Path, command: list[str]) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_SECONDS, check=False
    )
    if done.returncode:
        raise NotBuilt((done.stderr or done.stdout).strip())
