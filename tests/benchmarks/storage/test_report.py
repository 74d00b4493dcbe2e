"""README's block of storage figures."""

from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.coordinators import report as coordinators
from benchmarks.peers import results
from benchmarks.peers.steps import less, more
from benchmarks.storage import report
from benchmarks.storage import report as storage
from benchmarks.storage.brokers import EarlierOttla, StoredKafka, StoredOttla

NAMES = (StoredOttla.name, StoredKafka.name, EarlierOttla.name)


def found(*, is_quick: bool = False) -> results.Results:
    start, rate, produce = less("start", "s"), more("recovery", "MB/s"), more("produce 1 KB", "MB/s")
    collector = results.Collector({start: "Partitions", rate: "Recovery", produce: "Append"}, NAMES)
    for seconds in (2.0, 3.0):
        for name in NAMES:
            collector.begin_round(name)
        collector.add(StoredOttla.name, {"start": seconds, "produce 1 KB": 300})
        collector.add(StoredKafka.name, {"start": 10})
        collector.add(EarlierOttla.name, {"produce 1 KB": 200})
    collector.add(StoredOttla.name, {"recovery": 900})
    collector.fail(StoredKafka.name, [rate], "no end within 300 s")
    return results.Results(
        "1 May 2026", "a machine", dict.fromkeys(NAMES, "4.4.0"), 2, is_quick, collector.rows()
    )


def test_what_is_beside_kafka_is_a_table_and_the_rest_a_sentence() -> None:
    text = report.markdown([found()])
    assert "| start | s ↓ | 2.5 | 10 · **0.25 (0.20 to 0.30)** |" in text
    assert "| recovery | MB/s ↑ | 900 | fails: no end within 300 s |" in text
    assert "| produce" not in text
    assert "in one run: produce 1 KB 1.50." in text


def test_small_amounts_are_said_to_be_small() -> None:
    assert "small amounts" in report.markdown([found(is_quick=True)])
    assert "small amounts" not in report.markdown([found()])


def test_the_block_is_put_in_and_replaced() -> None:
    first, second = report.markdown([found()]), report.markdown([found(is_quick=True)])
    document = report.with_block(f"before\n\n{report.LAST_SECTION}\nafter\n", first)
    assert document == f"before\n\n{first}\n\n{report.LAST_SECTION}\nafter\n"
    assert report.with_block(document, second) == document.replace(first, second)


def test_a_run_of_some_sections_leaves_the_others_to_older_ones(tmp_path: Path) -> None:
    older, newer = found(), found()._replace(date="2 May 2026")
    results.write(older, tmp_path / "2026-05-01.json")
    results.write(newer._replace(rows=newer.rows[:1]), tmp_path / "2026-05-01-b.json")
    text = report.markdown(results.newest_of_each_section(tmp_path))
    assert text.count("| start |") == text.count("| recovery |") == text.count("produce 1 KB") == 1
    assert text.index("2 May 2026") < text.index("| start |") < text.index("1 May 2026, of Ottla 4.4.0")
    assert text.index("1 May 2026") < text.index("| recovery |")


@pytest.mark.parametrize("shown", [storage, coordinators])
def test_readme_shows_the_newest_results_if_there_are_any(shown: ModuleType) -> None:
    runs = results.newest_of_each_section(shown.FOLDER)
    document = report.README.read_text(encoding="utf-8")
    if not runs:
        assert shown.BEGIN not in document
    else:
        assert report.markdown(runs, shown.BEGIN, shown.END) in document
