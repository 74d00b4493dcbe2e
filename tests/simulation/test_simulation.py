"""Some histories of a cluster; ``python -m tests.simulation`` has many more."""

import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.histories import History, Outcome, make_history, play

ROOT = Path(__file__).parents[2]


def lines_of(seed: str, hash_seed: str) -> bytes:
    """What happens in another process, in which sets of text have another order."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.simulation",
            "--first",
            seed,
            "--seeds",
            "1",
            "--nodes",
            "1",
            "--lines",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    ).stdout.rpartition(b"all is well")[0]


def test_a_seed_gives_the_same_history_again_byte_for_byte() -> None:
    history = make_history("7", nodes=1)
    first, second = play(history), play(history)
    assert first.lines == second.lines
    assert len(first.lines) > 100
    assert lines_of("7", "1") == lines_of("7", "2") == ("\n".join(first.lines) + "\n").encode()


def failed(outcome: Outcome, history: History) -> BaseException | None:
    if outcome.failure is not None:
        outcome.failure.add_note(str(history))
    return outcome.failure


def test_one_node() -> None:
    for seed in range(1, 11):
        history = make_history(str(seed), nodes=1)
        failure = failed(play(history), history)
        if failure is not None:
            raise failure
