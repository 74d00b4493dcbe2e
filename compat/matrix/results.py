"""The results that are committed, and from which the tables are printed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from compat.matrix.drivers import DRIVERS
from compat.scenarios.outcome import PASSED, Outcome

RESULTS_FILE = Path(__file__).with_name("results.json")


class Verdict(NamedTuple):
    """What became of a scenario against one broker."""

    result: str
    reason: str


class Cell(NamedTuple):
    """What became of a scenario against both brokers."""

    kafka: Verdict
    ottla: Verdict

    @property
    def counts(self) -> bool:
        """Whether the client can do it at all: it does against Apache Kafka."""
        return self.kafka.result == PASSED


class Row(NamedTuple):
    """One client."""

    client: str
    language: str
    version: str
    cells: dict[str, Cell]


def make_row(client: str, kafka: Mapping[str, Outcome], ottla: Mapping[str, Outcome]) -> Row:
    versions = {outcome.version for outcome in (*kafka.values(), *ottla.values()) if outcome.version}
    if len(versions) != 1:
        raise ValueError(f"{client} has several versions or none: {sorted(versions)}")
    cells = {
        name: Cell(_verdict(kafka[name]), _verdict(ottla[name]))
        for name in DRIVERS[client].catalogue().scenarios
    }
    return Row(client, DRIVERS[client].language, versions.pop(), cells)


def _verdict(outcome: Outcome) -> Verdict:
    return Verdict(outcome.result, outcome.reason)


def load() -> dict[str, Row]:
    """Rows by client, in the order of the drivers."""
    if not RESULTS_FILE.exists():
        return {}
    document = json.loads(RESULTS_FILE.read_text())
    rows = {
        client: Row(
            client=client,
            language=fields["language"],
            version=fields["version"],
            cells={
                name: Cell(Verdict(*cell["kafka"]), Verdict(*cell["ottla"]))
                for name, cell in fields["scenarios"].items()
            },
        )
        for client, fields in document.items()
    }
    return {client: rows[client] for client in DRIVERS if client in rows}


def save(rows: Mapping[str, Row]) -> None:
    """Write rows, a line for each scenario, so that a change is a line of a diff."""
    parts = [_row_text(rows[client]) for client in DRIVERS if client in rows]
    RESULTS_FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _row_text(row: Row) -> str:
    cells = [
        f"   {json.dumps(name)}: {json.dumps({'kafka': cell.kafka, 'ottla': cell.ottla})}"
        for name, cell in row.cells.items()
    ]
    head = f'  "language": {json.dumps(row.language)},\n  "version": {json.dumps(row.version)},\n'
    body = ",\n".join(cells)
    return f' {json.dumps(row.client)}: {{\n{head}  "scenarios": {{\n{body}\n  }}\n }}'


def bugs(row: Row) -> list[str]:
    """What passes against Apache Kafka and not against Ottla, in words."""
    return [
        f"{row.client}, {name}: {cell.ottla.result}: {cell.ottla.reason}"
        for name, cell in row.cells.items()
        if cell.counts and cell.ottla.result != PASSED
    ]
