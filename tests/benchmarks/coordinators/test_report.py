"""README's block of coordinators' figures."""

from benchmarks.coordinators import report
from benchmarks.peers import results
from benchmarks.peers.steps import less
from benchmarks.storage.brokers import StoredKafka, StoredOttla
from benchmarks.storage.report import markdown, with_block


def test_the_block_stands_between_its_own_marks() -> None:
    names = (StoredOttla.name, StoredKafka.name)
    joins = less("a member joins", "ms")
    collector = results.Collector({joins: "Rebalances"}, names)
    for name, value in zip(names, (10.0, 20.0), strict=True):
        collector.begin_round(name)
        collector.add(name, {joins.name: value})
    found = results.Results(
        "1 May 2026", "a machine", dict.fromkeys(names, "4.4.0"), 1, False, collector.rows()
    )
    block = markdown([found], report.BEGIN, report.END)
    assert "| a member joins | ms ↓ | 10 | 20 · **0.50** |" in block
    document = with_block("before\n## Reading on\nafter\n", block, report.BEGIN, report.END)
    assert document.startswith(f"before\n{report.BEGIN}")
    assert with_block(document, block, report.BEGIN, report.END) == document
