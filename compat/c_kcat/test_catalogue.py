"""The list of what kcat is tried with is whole, and every one of it can be played."""

import shutil

import pytest

from compat.c_kcat import command
from compat.c_kcat.catalogue import kcat_catalogue
from compat.c_kcat.plays import PLAYS
from compat.matrix.drivers import DRIVERS
from compat.scenarios.missing import ClientMissing


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    assert set(PLAYS) == set(kcat_catalogue().scenarios)


def test_where_it_is_not_installed_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    command.find_kcat.cache_clear()
    with pytest.raises(ClientMissing, match=r"^no kcat: it is not installed$"):
        DRIVERS[command.CLIENT].command()
