"""The list of Kafka Connect's scenarios is whole, and every one of it can be played."""

from pathlib import Path
from typing import cast

import pytest

from compat.connect import workers
from compat.connect.catalogue import connect_catalogue
from compat.connect.plays import plays
from compat.connect.workers import Worker, settings_of
from compat.oracle.jars import KafkaMissing
from compat.scenarios.missing import ClientMissing


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    nobody = cast(Worker, None)
    assert set(plays(nobody, nobody, (nobody, nobody), Path("nowhere"))) == set(connect_catalogue().scenarios)


def test_clusters_keep_what_they_know_in_topics_of_their_own() -> None:
    one, other = (settings_of("localhost:9092", cluster) for cluster in ("one", "other"))
    kept = {name for name in one if name.endswith(".storage.topic")}
    assert len({settings[name] for settings in (one, other) for name in kept}) == 2 * len(kept) == 6


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> list[str]:
        raise KafkaMissing("there is none")

    monkeypatch.setattr(workers, "program_command", missing)
    with pytest.raises(ClientMissing, match=r"^no Kafka Connect: there is none$"):
        workers.driver_command()
