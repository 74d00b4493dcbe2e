from pathlib import Path

import pytest

from benchmarks.peers.results import Collector, Results, Row, Spread, joined, newest, read, spread, write
from benchmarks.peers.steps import Figure

RATE = Figure("requests", "1/s", more_is_better=True)
DELAY = Figure("delay", "ms", more_is_better=False)


def row(figure: Figure, **values: list[float | None]) -> Row:
    return Row("Speed", figure, dict(values), {})


def test_a_spread_is_the_middle_and_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(median=2.0, lowest=1.0, highest=3.0)


def test_ratios_are_taken_round_by_round() -> None:
    # The second round was disturbed for both alike: a ratio of medians would not see it.
    measured = row(RATE, ottla=[100.0, 10.0, 90.0], peer=[50.0, 5.0, 60.0])
    assert measured.ratio("ottla", "peer") == Spread(median=2.0, lowest=1.5, highest=2.0)


def test_a_round_without_a_value_has_no_ratio() -> None:
    measured = row(RATE, ottla=[100.0, 100.0], peer=[None, 50.0])
    assert measured.ratio("ottla", "peer") == Spread(2.0, 2.0, 2.0)
    assert row(RATE, ottla=[1.0], peer=[None]).ratio("ottla", "peer") is None
    assert row(RATE, ottla=[1.0], peer=[0.0]).ratio("ottla", "peer") is None
    assert row(RATE, ottla=[1.0]).ratio("ottla", "peer") is None


@pytest.mark.parametrize(("figure", "is_ahead"), [(RATE, True), (DELAY, False)])
def test_more_is_ahead_only_where_more_is_better(figure: Figure, is_ahead: bool) -> None:
    measured = row(figure, ottla=[3.0], peer=[2.0])
    assert measured.is_ahead("ottla", "peer") is is_ahead
    assert measured.is_ahead("peer", "ottla") is not is_ahead


def test_the_collector_keeps_values_in_their_round_and_the_first_reason() -> None:
    collector = Collector({RATE: "Speed", DELAY: "Speed"}, ["ottla", "peer"])
    collector.begin_round("ottla")
    collector.add("ottla", {"requests": 1.0})
    collector.begin_round("ottla")
    collector.fail("ottla", [RATE], "it hung")
    collector.begin_round("ottla")
    collector.add("ottla", {"requests": 3.0})
    collector.fail("ottla", [RATE], "another reason")
    (found,) = collector.rows()
    assert found.values["ottla"] == [1.0, None, 3.0]
    assert found.failures == {"ottla": "it hung"}


def test_the_collector_refuses_figures_that_no_step_announced() -> None:
    collector = Collector({RATE: "Speed"}, ["ottla"])
    collector.begin_round("ottla")
    with pytest.raises(KeyError):
        collector.add("ottla", {"surprise": 1.0})


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    failed = Row("Speed", DELAY, {"ottla": [1.5, 2.0], "peer": [None, None]}, {"peer": "no result in 5 s"})
    results = Results("1 May 2027", "2 cores", {"ottla": "1", "peer": "2"}, 2, False, [failed])
    path = tmp_path / "new" / "2027-05-01.json"
    write(results, path)
    assert read(path) == results


def test_the_newest_results_are_those_of_the_latest_day(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    for day in ("2027-05-01", "2027-11-30", "2027-06-09"):
        (tmp_path / f"{day}.json").touch()
    found = newest(tmp_path)
    assert found is not None
    assert found.name == "2027-11-30.json"


def test_figures_of_two_runs_are_joined_if_they_are_of_the_same_brokers() -> None:
    def run(**values: float) -> Results:
        figures = {Figure(name, "s", more_is_better=False): "section" for name in values}
        collector = Collector(figures, ["Ottla"])
        collector.begin_round("Ottla")
        collector.add("Ottla", values)
        return Results("1 May 2026", "a machine", {"Ottla": "1"}, 1, False, collector.rows())

    both = joined(run(start=1.0, stop=2.0), run(stop=3.0, write=4.0))
    assert [(row.figure.name, row.values["Ottla"]) for row in both.rows] == [
        ("start", [1.0]),
        ("stop", [3.0]),
        ("write", [4.0]),
    ]
    with pytest.raises(ValueError, match="versions"):
        joined(run(start=1.0)._replace(versions={"Ottla": "2"}), run(stop=3.0))
