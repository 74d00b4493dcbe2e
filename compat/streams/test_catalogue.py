"""The list of Kafka Streams' scenarios is whole, and every one of it can be played."""

from pathlib import Path
from typing import cast

import pytest

from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing
from compat.streams import program
from compat.streams.catalogue import PROTOCOLS, behaviours, streams_catalogue
from compat.streams.plays import BEHAVIOURS, plays
from compat.streams.program import Applications


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    assert set(BEHAVIOURS) == set(behaviours())
    nobody = cast(Applications, None)
    assert set(plays(nobody, Path("nowhere"))) == set(streams_catalogue().scenarios)


def test_each_behaviour_is_tried_with_each_protocol() -> None:
    scenarios = streams_catalogue().scenarios
    assert len(scenarios) == len(PROTOCOLS) * len(behaviours())
    assert {scenario.area for scenario in scenarios.values()} == {"classic", "streams"}
    assert scenarios["classic-crash"].does == scenarios["streams-crash"].does


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise KafkaMissing("there is none")

    monkeypatch.setattr(program, "find_streams_jars", missing)
    with pytest.raises(ClientMissing, match=r"^no Kafka Streams: there is none$"):
        program.driver_command()
