from pathlib import Path

import pytest

from benchmarks.peers import results, tables
from benchmarks.peers.results import Results, Row
from benchmarks.peers.steps import HEADLINES, Figure, steps

ROOT = Path(__file__).resolve().parent.parent.parent.parent
RATE = Figure("one-record requests", "1/s", more_is_better=True)
DELAY = Figure("end to end, p50", "ms", more_is_better=False)
ASIDE = Figure("nobody asks for this", "ms", more_is_better=False)

FOUND = Results(
    date="1 May 2027",
    machine="2 cores",
    versions={"Ottla": "0.9", "Other": "7"},
    rounds=2,
    is_quick=False,
    rows=[
        Row("Speed", RATE, {"Ottla": [200.0, 300.0], "Other": [100.0, 100.0]}, {}),
        Row("Speed", DELAY, {"Ottla": [0.25, 0.25], "Other": [None, None]}, {"Other": "it hung"}),
        Row("Speed", ASIDE, {"Ottla": [1.0, 1.0], "Other": [2.0, 2.0]}, {}),
    ],
)


def test_text_has_every_figure_with_ratio_and_spread() -> None:
    lines = [" ".join(line.split()) for line in tables.text_table(FOUND).splitlines()]
    assert "figure Ottla Other Ottla / Other" in lines
    assert "one-record requests 1/s ↑ 250 100 2.50 (2.00 to 3.00)" in lines
    assert "end to end, p50 ms ↓ 0.25 fails: it hung" in lines
    assert "nobody asks for this ms ↓ 1 2 0.50" in lines


def test_text_says_when_and_where() -> None:
    assert tables.text_table(FOUND).startswith("1 May 2027, 2 cores; 2 rounds in turn.\nOttla 0.9, Other 7.")


def test_markdown_has_the_headlines_and_marks_where_we_are_ahead() -> None:
    assert tables.markdown(FOUND).splitlines() == [
        tables.BEGIN,
        "Taken on 1 May 2027 on 2 cores, 2 rounds in turn, beside Other 7.",
        "A peer's cell shows its median, and Ottla's figure divided by it: median (lowest to highest),",
        "bold where Ottla is ahead. ↑: more is better, ↓: less is better.",
        "",
        "| Speed | unit | Ottla | Other |",
        "|---|---|--:|--:|",
        "| one-record requests | 1/s ↑ | 250 | 100 · **2.50 (2.00 to 3.00)** |",
        "| end to end, p50 | ms ↓ | 0.25 | fails: it hung |",
        tables.END,
    ]


def test_a_block_is_replaced_and_found_again() -> None:
    old = f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n"
    block = tables.markdown(FOUND)
    new = tables.replace_block(old, block)
    assert new == f"before\n{block}\nafter\n"
    assert tables.block_of(new) == block


@pytest.mark.parametrize("document", ["nothing", f"{tables.BEGIN} without end", f"{tables.END} only"])
def test_a_document_without_a_block_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match="no block"):
        tables.replace_block(document, "new")
    with pytest.raises(ValueError, match="no block"):
        tables.block_of(document)


def test_every_headline_is_measured() -> None:
    measured = {figure.name for step in steps(with_ten_thousand=True) for figure in step.figures}
    start_and_memory = {name for name in HEADLINES if name.startswith(("start to", "memory, "))}
    assert HEADLINES - measured == start_and_memory
    assert len(start_and_memory) == 3


def test_readme_shows_the_newest_results() -> None:
    """``python -m benchmarks peers --readme`` brings it up to date."""
    newest = results.newest()
    assert newest is not None
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tables.block_of(readme) == tables.markdown(results.read(newest))
