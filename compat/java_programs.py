"""Java programs of the project: compiled on first use against Kafka's jars, and kept."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from compat.made_once import made_once
from compat.oracle.jars import KAFKA_VERSION, KafkaMissing, find_jars, find_java
from compat.oracle.java import QUICK_START, java_command

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "java"
JAVA_RELEASE = 17
"""The oldest Java that runs Kafka's broker."""

WARNINGS = "-Xlint:cast,deprecation,fallthrough,rawtypes,static,unchecked"
"""What all compilers warn of alike; a warning fails."""

COMPILE_TIMEOUT_SECONDS = 300


class NotCompiled(Exception):
    """A program of ours is wrong; the text is what the compiler says."""


def program_command(
    sources: Path,
    main_class: str,
    *arguments: str,
    heap_mebibytes: int = 256,
    options: Sequence[str] = QUICK_START,
    libraries: Path | None = None,
    jars: Path | None = None,
) -> list[str]:
    """The command line that runs ``main_class`` of the folder ``sources``.

    ``libraries``: a folder of jars that are needed beside Kafka's.  ``jars``: those of another Kafka, to run
    what is compiled for ours.  Raises KafkaMissing where a compiler or Kafka's jars are not to be had, and
    NotCompiled.
    """
    beside = [str(compiled(sources, libraries))]
    if libraries is not None:
        beside.append(f"{libraries}/*")
    return java_command(
        main_class,
        *arguments,
        heap_mebibytes=heap_mebibytes,
        options=options,
        beside=beside,
        jars=jars,
    )


@cache
def compiled(sources: Path, libraries: Path | None = None) -> Path:
    """The folder with the classes of all Java files of the folder ``sources``."""
    files = sorted(sources.glob("*.java"))
    known_by = hashlib.sha256(f"{KAFKA_VERSION} {JAVA_RELEASE}".encode())
    for file in files:
        known_by.update(file.name.encode() + b"\0" + file.read_bytes())
    return made_once(
        CACHE / f"{sources.name}-{known_by.hexdigest()[:12]}",
        lambda classes: _compile(files, classes, libraries),
    )


def _compile(files: Sequence[Path], classes: Path, libraries: Path | None) -> None:
    jars = [f"{folder}/*" for folder in (libraries, find_jars()) if folder is not None]
    command = [str(_find_compiler()), "--release", str(JAVA_RELEASE), WARNINGS, "-Werror", "-proc:none"]
    command += ["-cp", os.pathsep.join(jars), "-d", str(classes), *map(str, files)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_SECONDS, check=False
    )
    if done.returncode:
        raise NotCompiled(done.stdout + done.stderr)


def _find_compiler() -> Path:
    """The ``javac`` beside ``java``, or any other."""
    beside = find_java().with_name("javac")
    found = str(beside) if beside.exists() else shutil.which("javac")
    if found is None:
        raise KafkaMissing("javac is not installed, only java")
    return Path(found)
