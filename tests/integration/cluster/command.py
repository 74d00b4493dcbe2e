"""What the commands share that put a cluster under strain: options, and what they tell."""

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path


def new_parser(module: str) -> argparse.ArgumentParser:
    """Of ``python -m module``, with ``--seed`` and ``--folder``."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--folder", type=Path, help="kept, for a look at what went wrong")
    return parser


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def conclude(broken: Sequence[str]) -> int:
    """Say which promises are broken, if any; the command's exit code."""
    for line in broken:
        say(f"BROKEN: {line}")
    say(f"{len(broken)} promises are broken" if broken else "all promises were kept")
    return 1 if broken else 0
