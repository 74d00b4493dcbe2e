"""Real broker processes on a disk that refuses, held against what Kafka was recorded to answer.

``python -m compat.disk_faults compare`` tries all; that every operation may fail on every kind of file, and
nothing acknowledged is lost by it, is in ``tests/broker/test_disk_faults.py``.
"""

import shutil
from pathlib import Path

import pytest

from compat.disk_faults import runs
from compat.disk_faults.trials import all_trials

TRIED = ("append, disk full", "roll, no descriptors", "flush, device error", "creation, disk full")


def test_every_trial_was_recorded() -> None:
    assert list(runs.read()) == [trial.name for trial in all_trials()]
    assert all(outcome["was met"] for outcome in runs.read().values())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="the faults need a C compiler")
def test_producers_and_admins_get_kafka_s_errors(tmp_path: Path) -> None:
    trials = [trial for trial in all_trials() if trial.name in TRIED]
    outcomes = runs.run_all(tmp_path, runs.Ottla, trials)
    assert runs.differences(runs.read(), outcomes) == []
    assert all(outcome["was met"] for outcome in outcomes.values())
