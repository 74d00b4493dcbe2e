"""Programs that put questions to Kafka's own classes, one a line, as JSON."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat.java_programs import program_command


def ask_judge(folder: Path, name: str, questions: Iterable[Any]) -> list[Any]:
    """Kafka's answers.  Raises KafkaMissing where Java or Kafka's jars are not to be had."""
    asked = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(
        program_command(folder, name),
        input=asked,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=300,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
