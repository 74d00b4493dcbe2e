"""Several of Kafka's tools in one Java process: what takes a second each is then done in a moment."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat.java_programs import program_command
from compat.oracle.java import TOOLS

PROGRAMS = Path(__file__).resolve().parent
END_OF_TOOL = "\x1e"
TIMEOUT_SECONDS = 120


def run_tools(address: str, *commands: Sequence[str]) -> list[str]:
    """What each command prints: a name of ``TOOLS`` with its arguments, which are about the broker there."""
    lines = [
        "\t".join((TOOLS[tool], "--bootstrap-server", address, *arguments)) for tool, *arguments in commands
    ]
    done = subprocess.run(
        program_command(PROGRAMS, "Tools"),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    printed: list[str] = []
    so_far: list[str] = []
    for line in done.stdout.split("\n"):
        if not line.startswith(END_OF_TOOL):
            so_far.append(line)
            continue
        assert line == f"{END_OF_TOOL}0", f"{commands[len(printed)]}: {so_far}, {done.stderr}"
        printed.append("\n".join(so_far))
        so_far.clear()
    assert len(printed) == len(commands), done.stdout + done.stderr
    return printed
