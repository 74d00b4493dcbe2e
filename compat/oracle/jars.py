"""Where Kafka's jars are: a cache folder that Maven fills on first use."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from compat.made_once import made_once

KAFKA_VERSION = "4.4.0"
HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / "build" / f"kafka-{KAFKA_VERSION}"
JARS_VARIABLE = "OTTLA_KAFKA_JARS"
"""Names a folder of jars that is there already; nothing is fetched then."""

FETCH_TIMEOUT_SECONDS = 900


class KafkaMissing(Exception):
    """Kafka cannot run here; the text says what is not there."""


@cache
def find_java() -> Path:
    """The ``java`` to run Kafka with.  Raises KafkaMissing."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java")
    if found is None:
        raise KafkaMissing("java is not installed")
    return Path(found)


@cache
def find_jars() -> Path:
    """The folder of Kafka's jars, fetched through Maven if it is not there yet.  Raises KafkaMissing."""
    find_java()
    given = os.environ.get(JARS_VARIABLE)
    if given:
        if not any(Path(given).glob(f"kafka-clients-{KAFKA_VERSION}.jar")):
            raise KafkaMissing(f"{JARS_VARIABLE} names a folder without kafka-clients-{KAFKA_VERSION}.jar")
        return Path(given)
    return made_once(CACHE, lambda folder: run_maven(HERE / "pom.xml", folder))


def run_maven(project: Path, folder: Path, *properties: str) -> None:
    """Put all that a project depends on into ``folder``.  Raises KafkaMissing."""
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaMissing("Kafka's jars are not there, nor is mvn to fetch them")
    goal = "dependency:copy-dependencies"
    command = [maven, "-B", "-q", "-f", str(project), goal, f"-DoutputDirectory={folder}", *properties]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise KafkaMissing("Maven did not fetch Kafka's jars in time") from error
    if done.returncode:
        raise KafkaMissing(f"Maven could not fetch Kafka's jars: {done.stdout.strip()[-500:]}")
