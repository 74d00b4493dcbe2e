"""One Ottla broker grows into a cluster of Apache Kafka, and back; its controller moves amid kills."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat.cluster.growing import Journey, journey_in
from compat.cluster.interrupted_handover import hand_over_and_kill, rounds_by_chance
from compat.cluster.lengthy import LENGTHY

pytestmark = [pytest.mark.slow, LENGTHY]

RELEASE = "4.2"
"""Not the newest one, so that a cluster's features grow with it."""

ROUNDS = 8
"""Each victim at each moment; ``python -m compat.cluster.interrupted_handover`` goes on for longer."""


def chance() -> random.Random:
    seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}")
    return random.Random(seed)


class Travelled(NamedTuple):
    journey: Journey
    said: list[str]
    broken: list[str]
    """On the way there."""


@pytest.fixture(scope="module")
def travelled(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Travelled]:
    """The way there, behind which the way back begins."""
    said: list[str] = []
    with journey_in(tmp_path_factory.mktemp("growing"), chance(), said.append, release=RELEASE) as journey:
        yield Travelled(journey, said, journey.grow())


def test_ottla_grows_into_a_cluster_of_kafka(travelled: Travelled) -> None:
    assert travelled.broken == [], travelled.said


def test_a_cluster_of_kafka_becomes_a_lone_ottla(travelled: Travelled) -> None:
    assert travelled.journey.go_back() == [], travelled.said


def test_somebody_is_killed_while_the_controller_is_handed_over(kafka_jars: Path, tmp_path: Path) -> None:
    said: list[str] = []
    luck = chance()
    broken = hand_over_and_kill(tmp_path, luck, rounds_by_chance(luck, ROUNDS), said.append)
    assert broken == [], said
