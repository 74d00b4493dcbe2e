"""Prints results as the README's table, and as one of all scenarios."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compat.matrix.drivers import DRIVERS
from compat.matrix.results import Cell, Row
from compat.oracle.jars import KAFKA_VERSION
from compat.scenarios.catalogue import Catalogue, Scenario, shared
from compat.scenarios.outcome import NOT_OFFERED, PASSED

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
ALL_FILE = Path(__file__).with_name("README.md")

BEGIN = "<!-- The table is printed by `python -m compat.matrix print`; `make matrix` measures anew. -->"
END = "<!-- The end of the table. -->"

HEAD = f"""# Scenarios by client

Printed from `results.json` by `python -m compat.matrix print --all`. What each scenario does stands in
`compat/scenarios/scenarios.toml`, or in the lists that some clients have of their own.

| mark | meaning |
| --- | --- |
| ✓ | passes against Ottla, as against Apache Kafka {KAFKA_VERSION} |
| ✗ | passes against Apache Kafka only |
| ≠ | fails against Apache Kafka, too: the client's own limit |
| · | is not offered by the client |"""


def by_catalogue(rows: Mapping[str, Row]) -> list[tuple[Catalogue, dict[str, Row]]]:
    """The lists of scenarios, each with the rows of its clients; first the one that most share."""
    found: dict[str, tuple[Catalogue, dict[str, Row]]] = {"": (shared(), {})}
    for client, row in rows.items():
        catalogue = DRIVERS[client].catalogue()
        found.setdefault(catalogue.title, (catalogue, {}))[1][client] = row
    return list(found.values())


def summary(rows: Mapping[str, Row]) -> str:
    """For each list of scenarios a table: a line for each client, a column for each area."""
    parts = []
    for catalogue, some in by_catalogue(rows):
        parts += [catalogue.title, summary_table(catalogue, some)]
    return "\n\n".join(filter(None, parts))


def summary_table(catalogue: Catalogue, rows: Mapping[str, Row]) -> str:
    everything = list(catalogue.scenarios.values())
    by_area = {area: [each for each in everything if each.area == area.name] for area in catalogue.areas}
    header = [
        "client",
        "language",
        "version",
        *(f"{area.title} ({len(of_area)})" for area, of_area in by_area.items()),
        f"all ({len(everything)})",
    ]
    lines = [
        [
            row.client,
            row.language,
            row.version,
            *(score(row, of_area) for of_area in by_area.values()),
            score(row, everything),
        ]
        for row in rows.values()
    ]
    return markdown_table(header, lines)


def score(row: Row, among: Sequence[Scenario]) -> str:
    """How many pass, of those that the client can do."""
    cells = [row.cells[each.name] for each in among if each.name in row.cells]
    counted = [cell for cell in cells if cell.counts]
    passed = sum(cell.ottla.result == PASSED for cell in counted)
    return f"{passed} of {len(counted)}"


def everything(rows: Mapping[str, Row]) -> str:
    """A page with a line for each scenario, a column for each client."""
    parts = [HEAD]
    for catalogue, some in by_catalogue(rows):
        header = ["scenario", *(f"{row.client} {row.version}" for row in some.values())]
        for area in catalogue.areas:
            lines = [
                [each.title, *(mark(row.cells.get(each.name)) for row in some.values())]
                for each in catalogue.scenarios.values()
                if each.area == area.name
            ]
            parts += [f"## {area.title}", markdown_table(header, lines)]
    parts += notes(rows, "What clients do not offer", lambda cell: cell.kafka.result == NOT_OFFERED)
    parts += notes(rows, "What fails against Apache Kafka, too", fails_on_kafka)
    parts += notes(rows, "What fails against Ottla only", fails_here_only)
    return "\n\n".join(parts) + "\n"


def fails_on_kafka(cell: Cell) -> bool:
    return cell.kafka.result not in {PASSED, NOT_OFFERED}


def fails_here_only(cell: Cell) -> bool:
    return cell.counts and cell.ottla.result != PASSED


def mark(cell: Cell | None) -> str:
    if cell is None:
        return "?"
    if cell.kafka.result == NOT_OFFERED:
        return "·"
    if not cell.counts:
        return "≠"
    return "✓" if cell.ottla.result == PASSED else "✗"


def notes(rows: Mapping[str, Row], title: str, concerns: Callable[[Cell], bool]) -> list[str]:
    """A section with the reasons of all cells that it concerns; nothing if there are none."""
    lines = []
    for row in rows.values():
        by_reason: dict[str, list[str]] = {}
        for name, cell in row.cells.items():
            if concerns(cell):
                reason = cell.kafka.reason or cell.ottla.reason
                by_reason.setdefault(reason, []).append(f"`{name}`")
        lines += [
            f"* {row.client} {row.version}: {reason} ({', '.join(names)})."
            for reason, names in by_reason.items()
        ]
    return [f"## {title}", "\n".join(lines)] if lines else []


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def in_readme() -> str:
    """The table as it stands in the README."""
    _, found, rest = README.read_text().partition(BEGIN)
    table, ended, _ = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{README.name} has no place for the matrix: {BEGIN} … {END}")
    return table.strip()


def write(rows: Mapping[str, Row]) -> None:
    """Put the tables where they are read."""
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n{summary(rows)}\n{END}{after}")
    ALL_FILE.write_text(everything(rows))
