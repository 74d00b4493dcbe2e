"""The tables are those of the committed results, and show what a reader must see."""

import json
from pathlib import Path

import pytest

from compat.go_sarama import versions as sarama_versions
from compat.matrix import results, tables
from compat.matrix.drivers import DRIVERS
from compat.matrix.results import Cell, Row, Verdict
from compat.scenarios.catalogue import areas, scenarios
from compat.scenarios.outcome import FAILED, NOT_OFFERED, PASSED, Outcome
from compat.streams.catalogue import streams_catalogue

PASS = Verdict(PASSED, "")
FAIL = Verdict(FAILED, "it broke")
NONE = Verdict(NOT_OFFERED, "it has none")

GOOD = Cell(PASS, PASS)
BUG = Cell(PASS, FAIL)
LIMIT = Cell(FAIL, FAIL)
ABSENT = Cell(NONE, NONE)


def row_of(**cells: Cell) -> Row:
    return Row(
        "kafka-python", "Python", "9.9", {name.replace("_", "-"): cell for name, cell in cells.items()}
    )


def test_the_readme_has_the_table_of_the_results() -> None:
    assert tables.in_readme() == tables.summary(results.load()), "run: python -m compat.matrix refresh"


def test_the_page_of_all_scenarios_is_that_of_the_results() -> None:
    assert tables.ALL_FILE.read_text() == tables.everything(results.load())


def test_every_client_has_a_result_for_every_scenario() -> None:
    rows = results.load()
    assert list(rows) == list(DRIVERS)
    for row in rows.values():
        assert list(row.cells) == list(DRIVERS[row.client].catalogue().scenarios), row.client


@pytest.mark.parametrize("client", DRIVERS)
def test_results_are_those_of_the_pinned_version(client: str) -> None:
    assert results.load()[client].version == DRIVERS[client].pinned_version()


def test_no_committed_result_is_a_bug() -> None:
    assert [bug for row in results.load().values() for bug in results.bugs(row)] == []


def test_versions_of_sarama_that_kafka_does_not_serve_fail_alike() -> None:
    for version, cell in results.load()[sarama_versions.CLIENT].cells.items():
        assert cell.ottla == cell.kafka, version


def test_saved_results_are_the_ones_that_are_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = results.load()
    before = results.RESULTS_FILE.read_text()
    assert json.loads(before)
    monkeypatch.setattr(results, "RESULTS_FILE", tmp_path / "results.json")
    assert results.load() == {}
    results.save(rows)
    assert results.load() == rows
    assert results.RESULTS_FILE.read_text() == before


def test_a_score_counts_what_the_client_can_do() -> None:
    row = row_of(cluster=GOOD, topics=BUG, keys=LIMIT, headers=ABSENT)
    assert tables.score(row, list(scenarios().values())) == "1 of 2"


def test_each_kind_of_cell_has_its_mark() -> None:
    assert [tables.mark(cell) for cell in (GOOD, BUG, LIMIT, ABSENT, None)] == ["✓", "✗", "≠", "·", "?"]


def test_reasons_stand_below_the_table() -> None:
    page = tables.everything({"kafka-python": row_of(cluster=BUG, topics=LIMIT, keys=ABSENT, headers=ABSENT)})
    assert "* kafka-python 9.9: it has none (`keys`, `headers`)." in page
    assert page.count("it broke") == 2
    for area in areas():
        assert f"## {area.title}\n" in page


def test_clients_with_a_list_of_their_own_have_tables_of_their_own() -> None:
    cells = dict.fromkeys(streams_catalogue().scenarios, GOOD)
    rows = {
        "kafka-python": row_of(cluster=GOOD),
        "kafka-streams": Row("kafka-streams", "Java", "9.8", cells),
    }
    first, title, second = tables.summary(rows).split("\n\n")
    assert "kafka-python" in first
    assert "kafka-streams" not in first
    assert title == streams_catalogue().title
    assert second.splitlines()[-1].startswith("| kafka-streams | Java | 9.8 | 10 of 10 | ")
    page = tables.everything(rows)
    assert "| Count words | ✓ |" in page
    assert "| Describe the cluster | ✓ |" in page


def test_a_bug_is_what_passes_against_kafka_alone() -> None:
    row = row_of(cluster=GOOD, topics=BUG, keys=LIMIT, headers=ABSENT, nulls=Cell(PASS, NONE))
    assert results.bugs(row) == [
        "kafka-python, topics: failed: it broke",
        "kafka-python, nulls: not offered: it has none",
    ]


def test_a_row_wants_one_version() -> None:
    one = {name: Outcome(name, "kafka-python", "1.0", PASSED) for name in scenarios()}
    silent = {name: Outcome(name, "kafka-python", "", FAILED, "it said nothing") for name in scenarios()}
    other = {**one, "keys": one["keys"]._replace(version="2.0")}
    assert results.make_row("kafka-python", one, silent).version == "1.0"
    with pytest.raises(ValueError, match=r"several versions or none: \['1.0', '2.0'\]"):
        results.make_row("kafka-python", one, other)
    with pytest.raises(ValueError, match=r"several versions or none: \[\]"):
        results.make_row("kafka-python", silent, silent)
