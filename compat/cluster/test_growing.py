"""One Ottla broker grows into a cluster of Apache Kafka, and back; its controller moves amid kills."""

import random
from pathlib import Path

import pytest

from compat.cluster.growing import grow_and_return
from compat.cluster.interrupted_handover import hand_over_and_kill, rounds_by_chance

pytestmark = pytest.mark.slow

RELEASE = "4.2"
"""Not the newest one, so that a cluster's features grow with it."""

ROUNDS = 8
"""Each victim at each moment; ``python -m compat.cluster.interrupted_handover`` goes on for longer."""


@pytest.fixture
def chance() -> random.Random:
    seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}")
    return random.Random(seed)


def test_ottla_grows_into_a_cluster_of_kafka_and_back(
    kafka_jars: Path, tmp_path: Path, chance: random.Random
) -> None:
    said: list[str] = []
    broken = grow_and_return(tmp_path, chance, said.append, release=RELEASE)
    assert broken == [], said


def test_somebody_is_killed_while_the_controller_is_handed_over(
    kafka_jars: Path, tmp_path: Path, chance: random.Random
) -> None:
    said: list[str] = []
    broken = hand_over_and_kill(tmp_path, chance, rounds_by_chance(chance, ROUNDS), said.append)
    assert broken == [], said
