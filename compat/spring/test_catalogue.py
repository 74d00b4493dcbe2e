"""The list of Spring Kafka's scenarios is whole, and every one of it can be played."""

from pathlib import Path
from typing import cast

import pytest

from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.spring import program
from compat.spring.catalogue import spring_catalogue
from compat.spring.plays import plays
from compat.spring.program import Applications


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    nobody = cast(Applications, None)
    assert list(plays(nobody)) == list(spring_catalogue().scenarios)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise KafkaMissing("there is none")

    monkeypatch.setattr(program, "find_spring_jars", missing)
    with pytest.raises(ClientMissing, match=r"^no Spring Kafka: there is none$"):
        program.driver_command()
