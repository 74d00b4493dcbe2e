"""Programs for Node: run where they are, with the packages that they pin, which are kept elsewhere."""

import hashlib
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

from compat.made_once import made_once

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "node"
PINS = ("package.json", "package-lock.json")
NODE_MIN = (20, 19)
"""The first that lets ``require`` load what is written as modules of ECMAScript."""

INSTALL_TIMEOUT_SECONDS = 600
"""Packages may have to be fetched."""


class NodeMissing(Exception):
    """A program cannot be run here; the text says why."""


def command(sources: Path) -> list[str]:
    """The command line that runs ``main.js`` of the folder ``sources``.  Raises NodeMissing."""
    node, packages = find_node(), installed(sources)
    return ["/usr/bin/env", f"NODE_PATH={packages / 'node_modules'}", node, str(sources / "main.js")]


@cache
def find_node() -> str:
    """Raises NodeMissing."""
    node = shutil.which("node")
    if node is None:
        raise NodeMissing("node is not installed")
    done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=True)
    major, minor, *_ = map(int, done.stdout.strip().removeprefix("v").split("."))
    if (major, minor) < NODE_MIN:
        raise NodeMissing(f"node {done.stdout.strip()} is too old")
    return node


@cache
def installed(sources: Path) -> Path:
    """The folder with the packages that ``sources`` pins.  Raises NodeMissing."""
    known_by = hashlib.sha256(b"\0".join((sources / name).read_bytes() for name in PINS))
    return made_once(
        CACHE / f"{sources.name}-{known_by.hexdigest()[:12]}", lambda folder: _install(sources, folder)
    )


def pinned_version(sources: Path, package: str) -> str:
    """The version of a package that a program is run with."""
    version: str = json.loads((sources / "package.json").read_text())["dependencies"][package]
    return version


def _install(sources: Path, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissing("npm is not installed")
    folder.mkdir()
    for name in PINS:
        shutil.copy(sources / name, folder)
    try:
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NodeMissing(f"the packages of {sources.name} did not come in time") from error
    if done.returncode:
        raise NodeMissing(f"the packages of {sources.name} cannot be had: {done.stderr.strip()[-500:]}")
