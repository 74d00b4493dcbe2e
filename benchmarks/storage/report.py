"""README's block of figures of storage, printed from the newest results."""

from pathlib import Path

from benchmarks.peers import results, tables
from benchmarks.storage.brokers import EarlierOttla

FOLDER = results.FOLDER / "storage"
README = Path(__file__).resolve().parent.parent.parent / "README.md"
BEGIN = "<!-- storage figures: printed by `python -m benchmarks storage --readme` -->"
END = "<!-- end of storage figures -->"
LAST_SECTION = "## Reading on\n"


def markdown(found: results.Results) -> str:
    """A table beside Kafka, and a sentence on appends and fetches."""
    ours, kafka, *_ = found.brokers
    rounds = "one round" if found.rounds == 1 else f"{found.rounds} rounds in turn"
    amounts = "small amounts, " if found.is_quick else ""
    lines = [
        BEGIN,
        f"Taken on {found.date} on {found.machine}, {amounts}{rounds},",
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
    return "\n".join([*lines, END])


def update_readme() -> None:
    """Raises SystemExit if there are no results."""
    newest = results.newest(FOLDER)
    if newest is None:
        raise SystemExit(f"there are no results in {FOLDER}")
    README.write_text(
        with_block(README.read_text(encoding="utf-8"), markdown(results.read(newest))), encoding="utf-8"
    )


def with_block(document: str, block: str) -> str:
    """The document with this block, in the place of an older one or before its last section."""
    if BEGIN in document:
        return tables.replace_block(document, block, begin=BEGIN, end=END)
    before, heading, after = document.partition(LAST_SECTION)
    return f"{before}{block}\n\n{heading}{after}"
