"""Ottla on damaged directories, held against what Kafka was recorded to do with the same."""

import re
from pathlib import Path

import pytest

from compat.damaged import runs
from compat.damaged.damages import all_damages
from compat.damaged.differences import EXPLAINED, reason_for


def test_every_damage_has_a_name_of_its_own_and_was_recorded() -> None:
    names = [damage.name for damage in all_damages()]
    assert len(names) == len(set(names))
    assert list(runs.read()) == names


def test_every_reason_is_for_some_damage() -> None:
    names = [damage.name for damage in all_damages()]
    for explained in EXPLAINED:
        assert any(re.fullmatch(explained.damages, name) for name in names), explained


@pytest.mark.slow
def test_ottla_does_as_kafka_does_or_for_a_reason_not(tmp_path: Path) -> None:
    found = runs.differences(runs.read(), runs.examine(tmp_path, runs.Ottla))
    assert [str(each) for each in found if reason_for(each.damage, each.fact) is None] == []
    for explained in EXPLAINED:
        assert any(
            each.fact in explained.facts and re.fullmatch(explained.damages, each.damage) for each in found
        ), f"there is no such difference any more: {explained}"
