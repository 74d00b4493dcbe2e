"""Exactly-once under fire: workers and the broker are killed at random in the middle of transactions."""

import random

import pytest

from tests.integration.conftest import StartBroker
from tests.integration.exactly_once import SETTINGS, run_pipeline

pytestmark = pytest.mark.slow

KILLS = 4
"""``python -m tests.integration.exactly_once 50`` takes its time."""


def test_each_record_is_transformed_once(start_broker: StartBroker, chance: random.Random) -> None:
    broker = start_broker(settings=SETTINGS)
    assert run_pipeline(broker, KILLS, chance) == []
