"""Exactly-once on a cluster: workers and nodes are killed at random in the middle of transactions."""

import random
from pathlib import Path

import pytest

from tests.integration.cluster.exactly_once import run_with_kills

pytestmark = pytest.mark.slow

KILLS = 3
"""``python -m tests.integration.cluster.exactly_once --kills 50`` takes its time."""


def test_each_record_is_transformed_once(tmp_path: Path, chance: random.Random) -> None:
    said: list[str] = []
    assert run_with_kills(tmp_path, KILLS, chance.getrandbits(32), said.append) == [], said
