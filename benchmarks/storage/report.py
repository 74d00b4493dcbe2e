"""README's block of figures of storage, printed from the newest results."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import results, tables
from benchmarks.storage.brokers import EarlierOttla

FOLDER = results.FOLDER / "storage"
README = Path(__file__).resolve().parent.parent.parent / "README.md"
BEGIN = "<!-- storage figures: printed by `python -m benchmarks storage --readme` -->"
END = "<!-- end of storage figures -->"
LAST_SECTION = "## Reading on\n"


def markdown(runs: Sequence[results.Results], begin: str = BEGIN, end: str = END) -> str:
    """Tables beside Kafka, and sentences on what is compared with an earlier Ottla; between two marks."""
    return "\n\n".join([f"{begin}\n{_of_one_run(runs[0])}", *map(_of_one_run, runs[1:])]) + f"\n{end}"


def _of_one_run(found: results.Results) -> str:
    ours, kafka, *_ = found.brokers
    rounds = "one round" if found.rounds == 1 else f"{found.rounds} rounds in turn"
    amounts = "small amounts, " if found.is_quick else ""
    lines = [
        f"Taken on {found.date}, of {ours} {found.versions[ours]}, on {found.machine}, {amounts}{rounds},",
        f"beside {kafka} {found.versions[kafka]}.",
    ]
    section = ""
    for row in found.rows:
        if row.of(kafka) is None and kafka not in row.failures:
            continue
        if row.section != section:
            section = row.section
            lines += ["", f"| {section} | unit | {ours} | {kafka} |", "|---|---|--:|--:|"]
        cells = [row.figure.name, tables.unit_of(row.figure), tables.value_of(row, ours)]
        lines.append("| " + " | ".join([*cells, tables.peer_cell(row, ours, kafka)]) + " |")
    ratios = [
        f"{row.figure.name} {tables.ratio_text(ratio)}"
        for row in found.rows
        if (ratio := row.ratio(ours, EarlierOttla.name)) is not None
    ]
    if ratios:
        lines += ["", "Beside the first complete Ottla, in one run: " + "; ".join(ratios) + "."]
    return "\n".join(lines)


def update_readme(folder: Path = FOLDER, begin: str = BEGIN, end: str = END) -> None:
    """Print the newest results of ``folder`` between these marks.

    Raises SystemExit if there are no results.
    """
    runs = results.newest_of_each_section(folder)
    if not runs:
        raise SystemExit(f"there are no results in {folder}")
    block = markdown(runs, begin, end)
    document = README.read_text(encoding="utf-8")
    README.write_text(with_block(document, block, begin, end), encoding="utf-8")


def with_block(document: str, block: str, begin: str = BEGIN, end: str = END) -> str:
    """The document with this block, in the place of an older one or before its last section."""
    if begin in document:
        return tables.replace_block(document, block, begin=begin, end=end)
    before, heading, after = document.partition(LAST_SECTION)
    return f"{before}{block}\n\n{heading}{after}"
