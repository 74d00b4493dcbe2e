"""What becomes of a driver's outcomes, whatever else it does."""

import os
import signal
import sys
from pathlib import Path

import pytest

from compat.matrix import run
from compat.matrix.drivers import DRIVERS
from compat.matrix.run import run_driver
from compat.scenarios.outcome import FAILED, PASSED, Outcome

CLIENT = DRIVERS["confluent-kafka"]
GOOD = Outcome("keys", CLIENT.client, "1.0", PASSED)


def command(text: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        f"import subprocess, sys, time\nprint({GOOD.to_line()!r}, flush=True)\n{text}",
    ]


def test_what_a_driver_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    note, ended = tmp_path / "pid", tmp_path / "ended"
    child = f"import time; time.sleep(10); open({str(ended)!r}, 'w')"
    leaves = (
        f"left = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"open({str(note)!r}, 'w').write(str(left.pid))"
    )
    outcomes = run_driver(CLIENT, command(leaves), "nowhere:1", ["keys"])
    os.kill(int(note.read_text()), signal.SIGKILL)
    assert not ended.exists()
    assert outcomes == {"keys": GOOD}


def test_outcomes_of_a_driver_that_hangs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "DRIVER_SECONDS_MAX", 1)
    outcomes = run_driver(CLIENT, command("time.sleep(60)"), "nowhere:1", ["keys", "headers"])
    assert outcomes["keys"] == GOOD
    assert outcomes["headers"].result == FAILED
    assert outcomes["headers"].reason == "the driver says nothing: it was stopped after 1 s"
