"""What Apache Kafka's own image of the metadata holds, loaded from the files of a node."""

import subprocess
from pathlib import Path

from compat.java_programs import program_command

SOURCES = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 120


def kafka_image(directory: Path) -> list[str]:
    """The lines of ``MetadataImages`` for a ``__cluster_metadata-0`` that nobody has open.

    Raises KafkaMissing.
    """
    command = program_command(SOURCES, "MetadataImages", str(directory))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"Kafka cannot load {directory}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()
