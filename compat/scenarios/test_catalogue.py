"""The list of scenarios is whole, and every one of it can be played."""

import pytest

from compat.scenarios.catalogue import areas, scenarios
from compat.scenarios.outcome import FAILED, NOT_OFFERED, PASSED, Outcome, from_line
from compat.scenarios.python.plays import PLAYS


def test_every_scenario_has_a_function_and_every_function_a_scenario() -> None:
    assert set(PLAYS) == set(scenarios())


def test_every_scenario_says_what_it_does_and_what_holds() -> None:
    names = {area.name for area in areas()}
    for scenario in scenarios().values():
        assert scenario.area in names
        assert scenario.title
        assert scenario.does.endswith(".")
        assert scenario.holds.endswith(".") or scenario.holds.endswith(".)")


def test_titles_tell_scenarios_apart() -> None:
    titles = [scenario.title for scenario in scenarios().values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("keys", "a client", "1.2", PASSED, "", 0.25),
        Outcome("keys", "a client", "1.2", FAILED, "it said “no”", 0.25),
        Outcome("keys", "a client", "1.2", NOT_OFFERED, "it has none", 0.25),
    ],
)
def test_an_outcome_comes_back_from_its_line(outcome: Outcome) -> None:
    line = outcome.to_line()
    assert "\n" not in line
    assert from_line(line) == outcome


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[]",
        '{"scenario": "keys"}',
        Outcome("keys", "a client", "1.2", "fine").to_line(),
        Outcome("keys", "a client", "1.2", PASSED, "but").to_line(),
        Outcome("keys", "a client", "1.2", FAILED).to_line(),
    ],
)
def test_what_is_no_outcome_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_line(line)
