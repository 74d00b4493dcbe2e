"""The list of Quix Streams' scenarios is whole, and every one of it can be played."""

from pathlib import Path

from compat.quix.catalogue import quix_catalogue
from compat.quix.plays import plays
from compat.quix.program import QUIX


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    assert list(plays(Path("nowhere"))) == list(quix_catalogue().scenarios)


def test_requirements_pin_every_package() -> None:
    lines = [line for line in QUIX.requirements.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if "==" not in line] == []
    assert f"quixstreams=={QUIX.pinned_version()}" in lines
