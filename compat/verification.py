"""``ottla verify`` on the directories of whatever broker has left them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def findings(*directories: Path) -> list[dict[str, Any]]:
    """What the command says of log directories that no broker uses, damage before notes."""
    command = [sys.executable, "-m", "ottla", "verify", "--json", *map(str, directories)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    *found, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == (1 if summary["damage"] else 0)
    return sorted(found, key=lambda finding: str(finding["severity"]))


def damages(*directories: Path) -> list[dict[str, Any]]:
    """Only what is lost or wrong."""
    return [finding for finding in findings(*directories) if finding["severity"] == "damage"]
