"""The list of Flink's scenarios is whole, and every one of it can be played."""

from pathlib import Path
from typing import cast

import pytest

from compat.flink import program
from compat.flink.catalogue import flink_catalogue
from compat.flink.plays import plays
from compat.flink.program import Cluster
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    nobody = cast(Cluster, None)
    assert list(plays(nobody)) == list(flink_catalogue().scenarios)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise KafkaMissing("there is none")

    monkeypatch.setattr(program, "find_flink_jars", missing)
    with pytest.raises(ClientMissing, match=r"^no Flink: there is none$"):
        program.driver_command()
